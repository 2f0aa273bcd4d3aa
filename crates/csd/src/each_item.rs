//! [`each_item`]: runs one command for several objects or keys.
//!
//! Tries every item, even after failures. Invariant: each failure is reported, and the command
//! fails if there is one.

use serde_json::json;

use crate::context::Context;
use crate::escape::escape_lines;
use crate::report::{Failure, Report, print, print_error};

/// Calls `one` for each of `items` and reports a list of their results. If some fail, returns a
/// failure of class "run" that lists them.
pub(crate) fn each_item<T: AsRef<str>>(
    items: &[T],
    context: &Context,
    one: impl Fn(&T) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let (mut done, mut failed, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        match one(item) {
            Ok(report) => {
                // Printed at once, because the next item may take long.
                if !context.json && !context.quiet {
                    print(&escape_lines(&report.text));
                }
                done.push(report.result);
                warnings.extend(report.warnings);
            }
            Err(failure) => failed.push((item.as_ref(), failure.message)),
        }
    }
    warnings.sort();
    warnings.dedup();
    if failed.is_empty() {
        return Ok(Report::new("", json!({ "objects": done })).with_warnings(warnings));
    }
    if !context.json {
        warnings.iter().for_each(|warning| print_error(&format!("warning: {warning}")));
    }
    let lines: Vec<_> =
        failed.iter().map(|(item, why)| format!("\n  {}", about_item(item, why))).collect();
    let message = format!("{} of {} failed:{}", failed.len(), items.len(), lines.concat());
    let failed: Vec<_> =
        failed.iter().map(|(item, why)| json!({ "item": item, "message": why })).collect();
    let detail = json!({ "objects": done, "failed": failed });
    Err(Failure { detail, ..Failure::run(message) })
}

/// Returns a message about an item that begins with its name, once.
pub(crate) fn about_item(item: &str, message: &str) -> String {
    match message.strip_prefix(item) {
        Some(rest) if rest.starts_with([' ', ':', ',']) => message.to_owned(),
        _ => format!("{item}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_name_once() {
        assert_eq!(about_item("a/x", "a/x is short"), "a/x is short");
        assert_eq!(about_item("a/x", "a/x, line 3: no"), "a/x, line 3: no");
        assert_eq!(about_item("a", "an object exists"), "a: an object exists");
        assert_eq!(about_item("a", "no a"), "a: no a");
    }
}
