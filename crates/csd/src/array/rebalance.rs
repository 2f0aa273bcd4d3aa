//! `csd array rebalance`: objects that do not lie on all drives are moved to all of them.

use std::rc::Rc;

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
use crate::units::{counted, grouped, size};

/// Moves the named objects, or all.
pub(crate) fn rebalance(options: &cli::Rebalance, context: &Context) -> Result<Report, Failure> {
    let bar = Bar::new(context, "rebalance", None);
    let (total, progress) = (bar.total(), bar.progress.clone());
    let (names, bytes_per_s) = (options.names.clone(), options.rate);
    let done = context.with_array_to_write(async move |array: &Array| {
        // Objects shall lie on every drive.
        grow::all_up(array)?;
        let drives = array.voting();
        if drives.len() < array.size() {
            return Err(Failure::run(array.down().join("; ")));
        }
        let entries = entries(array, &names, None).await?;
        let total = Rc::new(move |bytes| total.set(bytes));
        let limits = Limits { bytes_per_s, stop: stop_flag(), total, progress };
        Ok(object::rebalance(array, &entries, &drives, &limits).await)
    })?;
    drop(bar);
    report(done)
}

/// Describes what was moved for JSON output.
pub(super) fn describe(done: &Rebalanced) -> Value {
    let failed = done.failed.iter();
    let failed: Vec<Value> =
        failed.map(|(name, why)| json!({ "object": name, "why": why.to_string() })).collect();
    let names: Vec<&String> = done.moved.iter().map(|entry: &Entry| &entry.name).collect();
    let bytes: u64 = done.moved.iter().map(|entry| entry.bytes).sum();
    json!({
        "moved": names,
        "moved_bytes": bytes,
        "untouched": done.untouched,
        "failed": failed,
        "chunks": done.chunks,
        "by_drives": done.by_drives,
        "host_crossed_bytes": done.host_crossed_bytes,
    })
}

/// Reports what was moved.
///
/// # Errors
/// A failure if the command was interrupted.
pub(super) fn report(done: Rebalanced) -> Result<Report, Failure> {
    let result = describe(&done);
    if done.is_interrupted {
        let message = "interrupted: run it again to go on";
        return Err(Failure { detail: result, ..Failure::run(message) });
    }
    let text = format!(
        "{} moved ({}), {} untouched, {} failed{}\n",
        counted(done.moved.len() as u64, "object"),
        size(done.moved.iter().map(|entry| entry.bytes).sum()),
        grouped(done.untouched),
        grouped(done.failed.len() as u64),
        match done.chunks {
            0 => String::new(),
            chunks => {
                let chunks = counted(chunks, "chunk");
                format!("; {} of {chunks} by drives", grouped(done.by_drives))
            }
        },
    );
    let mut report = Report::new(text, result);
    for (name, why) in &done.failed {
        report.warn(format!("object {name:?} stays where it was: {why}"));
    }
    done.warnings.into_iter().for_each(|warning| report.warn(warning));
    Ok(report)
}
