//! [`Tally`]: the items of a command that failed, were left out or were not reached, the first two
//! printed at once. An only item's failure is that of the command, which is printed at its end.
//!
//! Invariant: a command fails if an item failed or it was interrupted, with exit code 2 if all that
//! failed was wrong use, else 1; one that left an item out ends with exit code 4.

use serde_json::{Value, json};

use crate::context::Context;
use crate::escape::escape_lines;
use crate::progress::{Above, Bar};
use crate::report::{Class, Failure, Report, places, print, print_error};

/// Items that an interrupted command names.
const NAMED_MAX: usize = 10;

/// Failed items, items that were left out, and warnings.
#[derive(Default)]
pub(crate) struct Tally {
    json: bool,
    quiet: bool,
    verbose: bool,
    /// The bar above which lines are printed.
    above: Above,
    done: usize,
    failed: Vec<Value>,
    /// The first failure, which is that of a command of one item.
    first: Option<Failure>,
    /// True for a command of one item.
    is_of_one: bool,
    /// The class of all failures together.
    class: Option<Class>,
    skipped: Vec<Value>,
    /// Remarks about items that were done, for programs.
    remarks: Vec<Value>,
    /// Items that were not done when a signal came.
    left: Vec<String>,
    warnings: Vec<String>,
}

impl Tally {
    /// Begins a command's tally.
    pub(crate) fn new(context: &Context) -> Self {
        let (json, quiet, verbose) = (context.json, context.quiet, context.verbose);
        Self { json, quiet, verbose, ..Self::default() }
    }

    /// Begins the tally of a command with a progress bar.
    pub(crate) fn over(context: &Context, bar: &Bar) -> Self {
        Self { above: bar.above(), ..Self::new(context) }
    }

    /// Says that the command has so many items.
    pub(crate) fn of(self, items: usize) -> Self {
        Self { is_of_one: items == 1, ..self }
    }

    /// Counts an item that was done.
    pub(crate) fn done(&mut self) {
        self.done += 1;
    }

    /// Notes an item that failed.
    pub(crate) fn fail(&mut self, item: &str, failure: Failure) {
        if !self.is_of_one {
            self.say("error", item, &failure.message);
        }
        self.failed.push(json!({ "item": item, "message": failure.message }));
        self.class = Some(failure.class.with(self.class));
        self.first.get_or_insert(failure);
    }

    /// Notes an item that is left out.
    pub(crate) fn skip(&mut self, item: &str, why: &str) {
        self.say("warning", item, &format!("left out: {why}"));
        self.skipped.push(json!({ "item": item, "message": why }));
    }

    /// Notes an item that was not done when a signal came.
    pub(crate) fn leave(&mut self, item: &str) {
        self.left.push(item.to_owned());
    }

    /// Prints the result of an item that was done.
    pub(crate) fn tell(&self, text: &str) {
        if !self.json && !self.quiet {
            self.above.print(|| print(&escape_lines(text)));
        }
    }

    /// Notes a remark about an item that was done.
    pub(crate) fn remark(&mut self, item: &str, remark: &str) {
        self.say("note", item, remark);
        self.remarks.push(json!({ "item": item, "message": remark }));
    }

    /// Notes warnings of an item that was done.
    pub(crate) fn warn(&mut self, warnings: Vec<String>) {
        self.warnings.extend(warnings);
    }

    /// Returns true if no item failed, was left out or was not reached.
    pub(crate) fn is_clean(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty() && self.left.is_empty()
    }

    /// Prints a line about an item, unless programs read the outcome.
    fn say(&self, kind: &str, item: &str, message: &str) {
        if !self.json {
            let message = if self.verbose { message.into() } else { places(message) };
            self.above.print(|| print_error(&format!("{kind}: {}", about_item(item, &message))));
        }
    }

    /// Returns the outcome of the command: `text` and `result`, or the failure of some items.
    ///
    /// # Errors
    /// The only item's own failure, or else one of the class of all together.
    pub(crate) fn finish(mut self, text: String, mut result: Value) -> Result<Report, Failure> {
        self.warnings.sort();
        self.warnings.dedup();
        let left_out = self.skipped.len();
        if left_out > 0 {
            result["skipped"] = std::mem::take(&mut self.skipped).into();
        }
        if !self.remarks.is_empty() {
            result["notes"] = std::mem::take(&mut self.remarks).into();
        }
        if self.first.is_some() || !self.left.is_empty() {
            return Err(self.failure(&text, result));
        }
        let mut report = Report::new(text, result).with_warnings(self.warnings);
        if left_out > 0 {
            report.warn(format!("{left_out} left out, as said above"));
        }
        Ok(report)
    }

    fn failure(mut self, text: &str, mut result: Value) -> Failure {
        if !self.json {
            if !self.quiet {
                print(&escape_lines(text));
            }
            let warnings = self.warnings.iter();
            warnings.for_each(|warning| print_error(&format!("warning: {warning}")));
        }
        let items = self.done + self.failed.len() + self.left.len();
        let mut message = String::new();
        let class = self.class.filter(|_| self.left.is_empty()).unwrap_or(Class::Run);
        if !self.left.is_empty() {
            message = format!("interrupted: {} of {items} were done; ", self.done);
            message += &format!("not done: {}", named(&self.left));
            result["left"] = std::mem::take(&mut self.left).into();
        } else if items == 1
            && let Some(only) = self.first.take()
        {
            return Failure { detail: result, ..only };
        }
        if !self.failed.is_empty() {
            let between = if message.is_empty() { "" } else { "; " };
            message += &format!("{between}{} of {items} failed", self.failed.len());
            message += &if self.json { listed(&self.failed) } else { ", as said above".into() };
            result["failed"] = std::mem::take(&mut self.failed).into();
        }
        Failure { detail: result, ..Failure::new(class, message) }
    }
}

/// Returns the first of these items, and the number of the others.
fn named(items: &[String]) -> String {
    let first = items[..items.len().min(NAMED_MAX)].join(", ");
    match items.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a line for each failed item.
fn listed(failed: &[Value]) -> String {
    let line =
        |one: &Value| format!("\n  {}", about_item(text(&one["item"]), text(&one["message"])));
    format!(":{}", failed.iter().map(line).collect::<String>())
}

/// Returns a message about an item that begins with its name, once.
fn about_item(item: &str, message: &str) -> String {
    match message.strip_prefix(item) {
        Some(rest) if rest.starts_with([' ', ':', ',']) => message.to_owned(),
        _ => format!("{item}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_command_names_some_of_the_rest() {
        let mut tally = Tally { json: true, ..Tally::default() };
        tally.done();
        (0..12).for_each(|item| tally.leave(&format!("f{item}")));
        let failure = tally.finish(String::new(), json!({})).unwrap_err();
        let words = "interrupted: 1 of 13 were done; not done: f0, f1, f2, f3, f4, f5, f6, f7, f8, \
                     f9 and 2 more";
        assert_eq!(failure.message, words);
        assert_eq!(failure.detail["left"].as_array().unwrap().len(), 12);
    }

    #[test]
    fn one_item_fails_as_it_does_alone_and_several_with_a_count() {
        let failed = |done: usize, others: &[Class]| {
            let mut tally = Tally { json: true, ..Tally::default() };
            tally.fail("x", Failure::usage("no x"));
            (0..done).for_each(|_| tally.done());
            others.iter().for_each(|class| tally.fail("y", Failure::new(*class, "no y")));
            tally.finish(String::new(), json!({})).unwrap_err()
        };
        let (one, two) = (failed(0, &[]), failed(1, &[]));
        assert_eq!((one.class, one.message.as_str()), (Class::Usage, "no x"));
        assert_eq!((two.class, two.message.as_str()), (Class::Usage, "1 of 2 failed:\n  x: no x"));
        assert_eq!(failed(0, &[Class::Usage]).class, Class::Usage);
        assert_eq!(failed(0, &[Class::Usage, Class::Run]).class, Class::Run);
        assert_eq!(failed(5, &[Class::Run]).class, Class::Run);
    }

    #[test]
    fn messages_have_the_name_once() {
        assert_eq!(about_item("a/x", "a/x is short"), "a/x is short");
        assert_eq!(about_item("a/x", "a/x, line 3: no"), "a/x, line 3: no");
        assert_eq!(about_item("a", "an object exists"), "a: an object exists");
        assert_eq!(about_item("a", "no a"), "a: no a");
    }
}
