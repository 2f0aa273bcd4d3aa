//! `csd drive trace`: the cores that a drive has chosen for its latest background tasks, and why.

use csd_initiator::{Controller, Error};
use csd_nvme::NSID_ALL;
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::vendor::decisions::{Decisions, Entry, LOG_BYTES_MAX};
use csd_sched::{Policy, Reason};
use serde_json::{Value, json};

use crate::ask_drives::{ask, malformed};
use crate::cli::drive_trace::Trace;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::{counted, duration, grouped, seconds};

/// Shows the decisions of the named drive, or of all drives of the array.
pub(crate) fn trace(options: &Trace, context: &Context) -> Result<Report, Failure> {
    let drives =
        ask(options.drive.as_ref(), context, async |controller, _| decisions_of(controller).await)?;
    let mut table = Table::new(&[
        ("drive", Align::Left),
        ("number", Align::Right),
        ("ago", Align::Right),
        ("policy", Align::Left),
        ("work", Align::Right),
        ("arose on", Align::Right),
        ("load", Align::Right),
        ("went to", Align::Right),
        ("load", Align::Right),
        ("because", Align::Left),
    ]);
    let (mut described, mut warnings, mut notes) = (Vec::new(), Vec::new(), String::new());
    for (name, answer) in drives {
        let log = match answer {
            Ok(log) => log,
            Err(why) => {
                warnings.push(format!("drive {name}: {why}"));
                continue;
            }
        };
        let latest = &log.entries[log.entries.len().saturating_sub(options.last)..];
        latest.iter().for_each(|entry| table.row(row(&name, entry, log.now_ns)));
        let policy = policy_name(log.policy).unwrap_or("unknown");
        let (cores, all) = (counted(log.cores.into(), "core"), counted(log.decisions, "decision"));
        notes.push_str(&format!("{name}: {cores}, policy {policy}, {all} since its start\n"));
        described.push(json!({
            "drive": name,
            "cores": log.cores,
            "policy": policy,
            "decisions": log.decisions,
            "latest": latest.iter().map(|entry| describe(entry, log.now_ns)).collect::<Vec<_>>(),
        }));
    }
    let text = table.render() + &notes;
    Ok(Report::new(text, json!({ "drives": described })).with_warnings(warnings))
}

/// Returns the name of a policy by its number in log pages; `None` if it is one of a later version.
pub(crate) fn policy_name(number: u8) -> Option<&'static str> {
    Policy::of_number(number).map(Policy::name)
}

async fn decisions_of(controller: &Controller) -> Result<Decisions, Error> {
    let bytes = u32::try_from(LOG_BYTES_MAX).expect("it is short");
    let sqe = get_log_page(LogId::DECISIONS, NSID_ALL, Csi::NVM, 0, bytes);
    let data = controller.admin(sqe, &[], bytes).await?.data;
    Decisions::parse(&data).ok_or_else(|| malformed(controller, "log of decisions"))
}

fn reason(entry: &Entry) -> &'static str {
    Reason::of_number(entry.reason()).map_or("unknown", Reason::text)
}

fn row(drive: &str, entry: &Entry, now_ns: u64) -> Vec<String> {
    let load = |load: u16| format!("{:.0} %", f64::from(load) / 100.0);
    let ago = now_ns.saturating_sub(entry.at_ns());
    vec![
        drive.to_owned(),
        grouped(entry.number()),
        duration(seconds(ago)),
        policy_name(entry.policy()).unwrap_or("?").to_owned(),
        duration(seconds(entry.work_ns())),
        entry.origin().to_string(),
        load(entry.origin_load()),
        entry.core().to_string(),
        load(entry.core_load()),
        reason(entry).to_owned(),
    ]
}

fn describe(entry: &Entry, now_ns: u64) -> Value {
    json!({
        "number": entry.number(),
        "ago_s": seconds(now_ns.saturating_sub(entry.at_ns())),
        "policy": policy_name(entry.policy()),
        "work_s": seconds(entry.work_ns()),
        "arose_on": entry.origin(),
        "load_there": f64::from(entry.origin_load()) / 10_000.0,
        "went_to": entry.core(),
        "load_of_it": f64::from(entry.core_load()) / 10_000.0,
        "reason": reason(entry),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_words_and_unknown_ones_are_said_to_be_so() {
        for policy in Policy::ALL {
            assert_eq!(policy_name(policy.number()), Some(policy.name()));
        }
        assert_eq!((policy_name(0), policy_name(9)), (None, None));
        let mut entry = Entry::zeroed();
        assert_eq!(reason(&entry), "unknown");
        entry.set_reason(2);
        assert_eq!(reason(&entry), Reason::Idle.text());
    }
}
