//! `csd array rebalance`: objects that do not lie on all drives are moved to all of them.

use std::rc::Rc;
use std::sync::Arc;

use csd_store::array::Array;
use csd_store::catalogue::{Entry, grow};
use csd_store::object::{self, Limits, Rebalanced};
use serde_json::{Value, json};

use crate::cli;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::stop_flag;
use crate::scrub::entries;
use crate::units::{grouped, size};

/// Moves the named objects, or all.
pub(crate) fn rebalance(options: &cli::Rebalance, context: &Context) -> Result<Report, Failure> {
    let bar = Bar::new(context, "rebalance", None);
    let (total, progress) = (bar.total(), Arc::clone(&bar.progress));
    let (names, bytes_per_s) = (options.names.clone(), options.rate);
    let done = context.with_array_to_write(async move |array: &Array| {
        // Objects shall lie on every drive.
        grow::all_up(array)?;
        let voters = array.voters();
        if voters.len() < array.slots().len() {
            return Err(Failure::run(array.down().join("; ")));
        }
        let entries = entries(array, &names, None).await?;
        let small = |index: usize| u16::try_from(index).expect("an array has at most 1024 drives");
        let drives: Vec<u16> = voters.iter().map(|drive| small(drive.index)).collect();
        let total = Rc::new(move |bytes| total.set(bytes));
        let limits = Limits { bytes_per_s, stop: stop_flag(), total, progress };
        Ok(object::rebalance(array, &entries, &drives, &limits).await)
    })?;
    drop(bar);
    report(done)
}

/// Reports what was moved.
///
/// # Errors
/// A failure if the command was interrupted.
pub(super) fn report(done: Rebalanced) -> Result<Report, Failure> {
    let bytes = done.moved.iter().map(|entry| entry.bytes).sum();
    let failed: Vec<Value> = done
        .failed
        .iter()
        .map(|(name, why)| json!({ "object": name, "why": why.to_string() }))
        .collect();
    let names: Vec<&String> = done.moved.iter().map(|entry: &Entry| &entry.name).collect();
    let result = json!({
        "moved": names,
        "moved_bytes": bytes,
        "untouched": done.untouched,
        "failed": failed,
    });
    if done.is_interrupted {
        let message = "interrupted: run it again to go on";
        return Err(Failure { detail: result, ..Failure::run(message) });
    }
    let objects = if names.len() == 1 { "object" } else { "objects" };
    let text = format!(
        "{} {objects} moved ({}), {} untouched, {} failed\n",
        grouped(names.len() as u64),
        size(bytes),
        grouped(done.untouched),
        grouped(failed.len() as u64),
    );
    let mut report = Report::new(text, result);
    for (name, why) in &done.failed {
        report.warn(format!("object {name:?} stays where it was: {why}"));
    }
    done.warnings.into_iter().for_each(|warning| report.warn(warning));
    Ok(report)
}
