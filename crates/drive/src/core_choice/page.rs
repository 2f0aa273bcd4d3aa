//! Policies as numbers, and the log page of decisions.

use csd_nvme::vendor::decisions::{Decisions, Entry};
use csd_reactor::now;
use csd_sched::{Policy, Reason};

use super::{CoreChoice, lock};

/// Returns the number of a policy in log pages and orders.
pub(crate) fn number_of(policy: Policy) -> u8 {
    number(&Policy::ALL, policy)
}

/// Returns the policy of a number; `None` if there is none.
pub(crate) fn policy_of(number: u8) -> Option<Policy> {
    Policy::ALL.get(usize::from(number.checked_sub(1)?)).copied()
}

fn number<T: Copy + PartialEq>(all: &[T], one: T) -> u8 {
    let at = all.iter().position(|known| *known == one).map_or(0, |at| at + 1);
    u8::try_from(at).expect("a few")
}

/// Returns the latest decisions, for hosts.
pub fn decisions(choice: &CoreChoice) -> Decisions {
    let trace = lock(&choice.trace);
    Decisions {
        decisions: trace.decisions(),
        now_ns: now().ns(),
        cores: core(choice.cores()),
        policy: number_of(choice.policy()),
        entries: trace.entries().map(entry).collect(),
    }
}

fn entry(decided: &csd_sched::Entry) -> Entry {
    let mut entry = Entry::zeroed();
    entry.set_number(decided.number).set_at_ns(decided.at_ns);
    entry.set_work_ns(decided.task.work_ns).set_origin(core(decided.task.origin));
    entry.set_core(core(decided.decision.core)).set_policy(number_of(decided.policy));
    entry.set_reason(number(&Reason::ALL, decided.decision.reason));
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
