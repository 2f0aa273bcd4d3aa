//! `csd drive log`: the log of a drive's last executions.

use csd_initiator::Compute;
use csd_nvme::vendor::executions::Entry;
use csd_store::array::COMPUTE_NSID;
use serde_json::{Value, json};

use crate::ask_drives::ask;
use crate::cli::drive_log::Log;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::{duration, grouped, program_id, seconds, size};

/// Shows the log of the named drive, or of all drives of the array.
pub(crate) fn log(options: &Log, context: &Context) -> Result<Report, Failure> {
    let drives = ask(options.drive.as_ref(), context, async |controller, nsid| {
        Compute::open(controller, nsid.unwrap_or(COMPUTE_NSID))?.executions().await
    })?;
    let mut table = Table::new(&[
        ("drive", Align::Left),
        ("number", Align::Right),
        ("program", Align::Right),
        ("read", Align::Right),
        ("written", Align::Right),
        ("work", Align::Right),
        ("reading", Align::Right),
        ("computing", Align::Right),
        ("writing", Align::Right),
        ("total", Align::Right),
        ("host", Align::Left),
        ("outcome", Align::Left),
    ]);
    let (mut described, mut warnings) = (Vec::new(), Vec::new());
    for (name, log) in drives {
        let (ended, entries) = match log {
            Ok(log) => log,
            Err(why) => {
                warnings.push(format!("drive {name}: {why}"));
                continue;
            }
        };
        let shown = || entries.iter().filter(|entry| !options.failed || failed(entry));
        shown().for_each(|entry| table.row(row(&name, entry)));
        let entries: Vec<Value> = shown().map(describe).collect();
        described.push(json!({ "drive": name, "ended": ended, "executions": entries }));
    }
    let result = json!({ "drives": described });
    Ok(Report::new(table.render(), result).with_warnings(warnings))
}

fn failed(entry: &Entry) -> bool {
    !entry.status().is_success()
}

fn outcome(entry: &Entry) -> String {
    match (failed(entry), entry.reason_text()) {
        (false, _) => "done".to_owned(),
        (true, reason) if reason.is_empty() => entry.status().to_string(),
        (true, reason) => format!("{}: {reason}", entry.status()),
    }
}

fn row(drive: &str, entry: &Entry) -> Vec<String> {
    let time = |ns: u64| duration(seconds(ns));
    vec![
        drive.to_owned(),
        entry.number().to_string(),
        program_id(entry.program()),
        size(entry.bytes_read()),
        size(entry.bytes_written()),
        grouped(entry.work()),
        time(entry.reading_ns()),
        time(entry.computing_ns()),
        time(entry.writing_ns()),
        time(entry.total_ns()),
        entry.host_text(),
        outcome(entry),
    ]
}

fn describe(entry: &Entry) -> Value {
    json!({
        "number": entry.number(),
        "program": program_id(entry.program()),
        "index": entry.index(),
        "status": entry.status_code(),
        "reason": entry.reason_text(),
        "cores": entry.cores(),
        "controller": entry.cntlid(),
        "host": entry.host_text(),
        "read_bytes": entry.bytes_read(),
        "written_bytes": entry.bytes_written(),
        "work": entry.work().to_string(),
        "reading_s": seconds(entry.reading_ns()),
        "computing_s": seconds(entry.computing_ns()),
        "writing_s": seconds(entry.writing_ns()),
        "total_s": seconds(entry.total_ns()),
    })
}

#[cfg(test)]
mod tests {
    use csd_nvme::status::Status;

    use super::*;

    #[test]
    fn an_outcome_says_why() {
        let mut entry = Entry::zeroed();
        assert_eq!(outcome(&entry), "done");
        entry.set_status_code(Status::SOURCE_MISSING.0);
        assert_eq!(outcome(&entry), Status::SOURCE_MISSING.to_string());
        entry.explain("chunk 7");
        assert!(outcome(&entry).ends_with(": chunk 7"), "{}", outcome(&entry));
    }
}
