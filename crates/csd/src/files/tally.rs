//! [`Tally`]: the items of a command that failed or were left out, each printed at once.
//!
//! Invariant: a command with a failed item fails (exit code 1), and one that left an item out ends
//! with exit code 4.

use serde_json::{Value, json};

use crate::context::Context;
use crate::report::{Failure, Report, places, print_error};

/// Failed items, items that were left out, and warnings.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    json: bool,
    verbose: bool,
    done: usize,
    failed: Vec<Value>,
    /// The only failure, for a command of one item.
    first: Option<Failure>,
    skipped: Vec<Value>,
    warnings: Vec<String>,
}

impl Tally {
    /// Begins a command's tally.
    pub(crate) fn new(context: &Context) -> Self {
        Self { json: context.json, verbose: context.verbose, ..Self::default() }
    }

    /// Counts an item that was done.
    pub(crate) fn done(&mut self) {
        self.done += 1;
    }

    /// Notes an item that failed.
    pub(crate) fn fail(&mut self, item: &str, failure: Failure) {
        self.say("error", item, &failure.message);
        self.failed.push(json!({ "item": item, "message": failure.message }));
        self.first.get_or_insert(failure);
    }

    /// Notes an item that is left out.
    pub(crate) fn skip(&mut self, item: &str, why: &str) {
        self.say("warning", item, &format!("left out: {why}"));
        self.skipped.push(json!({ "item": item, "message": why }));
    }

    /// Notes warnings of an item that was done.
    pub(crate) fn warn(&mut self, warnings: Vec<String>) {
        self.warnings.extend(warnings);
    }

    /// Returns true if an item failed.
    pub(crate) fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Returns the number of items that were left out.
    pub(crate) fn left_out(&self) -> usize {
        self.skipped.len()
    }

    /// Prints a line about an item, unless programs read the outcome.
    fn say(&self, kind: &str, item: &str, message: &str) {
        if !self.json {
            let message = if self.verbose { message.into() } else { places(message) };
            print_error(&format!("{kind}: {item}: {message}"));
        }
    }

    /// Returns the outcome of the command: `text` and `result`, or the failure of some items.
    ///
    /// # Errors
    /// The only item's own failure, or else one of class "run" that lists all.
    pub(crate) fn finish(mut self, text: String, mut result: Value) -> Result<Report, Failure> {
        self.warnings.sort();
        self.warnings.dedup();
        if !self.skipped.is_empty() {
            result["skipped"] = std::mem::take(&mut self.skipped).into();
        }
        let items = self.done + self.failed.len();
        if let Some(first) = self.first {
            if !self.json {
                crate::report::print(&crate::escape::escape_lines(&text));
                let warnings = self.warnings.iter();
                warnings.for_each(|warning| print_error(&format!("warning: {warning}")));
            }
            result["failed"] = self.failed.clone().into();
            let message = format!("{} of {items} failed: see above", self.failed.len());
            let message = if self.json { listed(&self.failed, items) } else { message };
            let exit_code = if items == 1 { first.exit_code } else { None };
            let class = if items == 1 { first.class } else { crate::report::Class::Run };
            return Err(Failure { detail: result, exit_code, ..Failure::new(class, message) });
        }
        let left_out = result["skipped"].as_array().map_or(0, Vec::len);
        let mut report = Report::new(text, result).with_warnings(self.warnings);
        if left_out > 0 {
            report.warn(format!("{left_out} left out: see above"));
        }
        Ok(report)
    }
}

/// Returns the message of failed items for programs.
fn listed(failed: &[Value], items: usize) -> String {
    let lines: Vec<String> = failed
        .iter()
        .map(|one| format!("\n  {}: {}", text(&one["item"]), text(&one["message"])))
        .collect();
    format!("{} of {items} failed:{}", failed.len(), lines.concat())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
