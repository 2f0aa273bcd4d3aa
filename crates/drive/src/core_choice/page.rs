//! The log page of decisions.

use csd_nvme::vendor::decisions::{Decisions, Entry};
use csd_reactor::now;

use super::{CoreChoice, lock};

/// Returns the latest decisions, for hosts.
pub fn decisions(choice: &CoreChoice) -> Decisions {
    let trace = lock(&choice.trace);
    Decisions {
        decisions: trace.decisions(),
        now_ns: now().ns(),
        cores: core(choice.cores()),
        policy: choice.policy().number(),
        entries: trace.entries().map(entry).collect(),
    }
}

fn entry(decided: &csd_sched::Entry) -> Entry {
    let mut entry = Entry::zeroed();
    entry.set_number(decided.number).set_at_ns(decided.at_ns);
    entry.set_work_ns(decided.task.work_ns).set_origin(core(decided.task.origin));
    entry.set_core(core(decided.decision.core)).set_policy(decided.policy.number());
    entry.set_reason(decided.decision.reason.number());
    entry.set_origin_load(load(decided.origin_utilisation));
    *entry.set_core_load(load(decided.core_utilisation))
}

fn core(index: usize) -> u16 {
    u16::try_from(index).expect("a drive has at most 65,535 cores")
}

/// Returns a share in 1/10,000.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is 0 to 1")]
fn load(share: f64) -> u16 {
    (share.clamp(0.0, 1.0) * 10_000.0).round() as u16
}
