//! The drive's services as hosts see them: the log page of all of them, and orders to one.

use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::vendor::services::{Entry, FAILED, Order, PAUSED, RUNS, Services, Setting};
use csd_reactor::Class;
use csd_sched::Policy;

use super::gate::{self, Gate};
use super::{Row, rows};
use crate::drive::Shared;
use crate::log::Level;

/// Returns the services of a drive, for hosts.
pub(crate) fn list(shared: &Shared) -> Services {
    let segments = &shared.segments;
    Services {
        segments: segments.count,
        free_segments: u32::try_from(segments.free_count()).unwrap_or(u32::MAX),
        is_low: segments.is_low(),
        entries: rows(shared).map(|row| entry(shared, row)).collect(),
    }
}

fn entry(shared: &Shared, row: &Row) -> Entry {
    let (control, failure) = ((row.control)(shared), (row.control)(shared).failure());
    let mut entry = Entry::zeroed();
    entry.describe(row.name, row.pause_costs, failure.as_deref().unwrap_or_default());
    let found = row.found.map(|found| found(shared)).unwrap_or_default();
    entry.note_found(&found);
    entry.set_state(match (control.is_paused(), failure) {
        (false, _) => RUNS,
        (true, None) => PAUSED,
        (true, Some(_)) => FAILED,
    });
    entry.set_class(match row.class {
        Class::Foreground => 1,
        Class::Tunnel => 2,
        Class::Execution => 3,
        Class::Service => 4,
        Class::System => 5,
    });
    if row.moves {
        entry.set_policy(shared.core_choice.policy().number());
    }
    entry.set_share(control.share()).set_rate(control.rate().unwrap_or(0));
    entry.set_steps(control.steps.load(Relaxed)).set_bytes(control.bytes.load(Relaxed));
    entry.set_busy_ns(control.busy_ns.load(Relaxed));
    *entry.set_failures(control.failures.load(Relaxed))
}

/// Gives an order of a host to a service; returns false if the drive has none of this name, or the
/// policy is unknown, or not for this one.
pub(crate) fn order(shared: &Shared, host: &str, order: &Order) -> bool {
    let Some(row) = rows(shared).find(|row| row.name == order.name) else { return false };
    let control = (row.control)(shared);
    match order.setting {
        Setting::Pause => control.pause(),
        Setting::Resume => control.resume(),
        Setting::Rate(bytes_per_s) => control.set_rate(bytes_per_s),
        Setting::Share(percent) => control.set_share(percent),
        Setting::Policy(number) => match Policy::of_number(number).filter(|_| row.moves) {
            Some(policy) => shared.core_choice.set_policy(policy),
            None => return false,
        },
    }
    gate::on_all(Gate::look);
    let fields = [
        ("service", order.name.clone()),
        ("paused", control.is_paused().to_string()),
        ("rate", control.rate().map_or("none".to_owned(), |rate| rate.to_string())),
        ("share", format!("{} %", control.share())),
        ("policy", if row.moves { shared.core_choice.policy().name() } else { "none" }.to_owned()),
        ("host", host.to_owned()),
    ];
    shared.log().write_rated(Level::Info, "a service has new settings", &fields);
    true
}
