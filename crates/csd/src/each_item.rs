//! [`each_item`]: runs one command for several objects or keys.
//!
//! Tries every item, even after failures. Invariant: each failure is printed at once, and the
//! command fails if there is one.

use serde_json::json;

use crate::context::Context;
use crate::report::{Failure, Report};
use crate::tally::Tally;

/// Calls `one` for each of `items` and reports a list of their results.
///
/// # Errors
/// Some failed: a failure that lists them.
pub(crate) fn each_item<T: AsRef<str>>(
    items: &[T],
    context: &Context,
    one: impl Fn(&T) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let (mut tally, mut done) = (Tally::new(context).of(items.len()), Vec::new());
    for item in items {
        match one(item) {
            Ok(report) => {
                tally.done();
                // Printed at once, because the next item may take long.
                tally.tell(&report.text);
                tally.warn(report.warnings);
                done.push(report.result);
            }
            Err(failure) => tally.fail(item.as_ref(), failure),
        }
    }
    tally.finish(String::new(), json!({ "objects": done }))
}
