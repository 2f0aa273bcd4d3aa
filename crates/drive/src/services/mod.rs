//! Services: work that the drive does besides its hosts' commands. A service is a row of
//! [`SERVICES`], with settings that hosts change while the drive runs. One that has an
//! implementation of [`Service`] runs in a task on every core, which yields to hosts' commands.
//! The others are steps of something else: a checkpoint is part of a group commit, and the commands
//! of other drives come over the network.
//!
//! Invariants: a service that is idle costs no time; none begins a step while it is paused, or once
//! the drive stops; nothing that a host waits for needs a step of one that is paused.

pub(crate) mod controls;
pub(crate) mod gate;
pub(crate) mod orders;
pub(crate) mod runner;

use std::rc::Rc;
use std::sync::Arc;

use csd_kvlog::control::Control;
use csd_kvlog::service::Service;
use csd_reactor::{Class, CoreId, core_count, core_local, post, spawn};

use crate::collect_chunks;
use crate::count_chunks;
use crate::dedup::Dedup;
use crate::drive::{Core, Shared};
use crate::log::Level;
use crate::scrub;
use runner::Runner;

/// Makes the part of a core in a service.
type Begin = fn(&Rc<Core>) -> Box<dyn Service>;

/// A service of the drive.
pub(crate) struct Row {
    /// Name in metrics and commands.
    pub(crate) name: &'static str,
    /// Class of its work.
    pub(crate) class: Class,
    /// Cost of a pause, in words.
    pub(crate) pause_costs: &'static str,
    /// Returns its settings and counts.
    pub(crate) control: fn(&Shared) -> &Control,
    /// True if a policy chooses the core of its steps; else it works where its data is.
    pub(crate) moves: bool,
    /// Returns true if this drive has it.
    is_there: fn(&Shared) -> bool,
    /// Says what it has found; `None` for one that looks for nothing.
    pub(crate) found: Option<fn(&Shared) -> String>,
    /// `None` for steps of something else.
    begin: Option<Begin>,
}

/// The services of drives.
static SERVICES: [Row; 6] = [
    Row {
        name: "clean",
        class: Class::Service,
        pause_costs: "a Store or Delete that finds no free segment cleans one first, and waits",
        control: |shared| &shared.services.clean,
        moves: false,
        is_there: |_| true,
        found: None,
        begin: Some(|core| Box::new(core.kv.cleaner())),
    },
    Row {
        name: "checkpoint",
        class: Class::Foreground,
        pause_costs: "the next start reads records in place of their lists, and takes longer",
        control: |shared| &shared.segments.checkpointing,
        moves: false,
        is_there: |shared| shared.segments.has_checkpoints(),
        found: None,
        begin: None,
    },
    Row {
        name: "scrub",
        class: Class::Service,
        pause_costs: "damage at rest is found only when a host reads it",
        control: |shared| &shared.services.scrub,
        moves: false,
        is_there: |_| true,
        found: None,
        begin: Some(scrub::begin),
    },
    Row {
        name: "dedup",
        class: Class::Service,
        pause_costs: "values stored meanwhile are read from the medium to be counted",
        control: |shared| &shared.services.dedup,
        moves: true,
        is_there: |shared| shared.dedup.is_some(),
        found: Some(|shared| shared.dedup.as_ref().map(Dedup::words).unwrap_or_default()),
        begin: Some(count_chunks::begin),
    },
    Row {
        name: "collect",
        class: Class::Service,
        pause_costs: "chunks that values shared, and that no value has any more, take space",
        control: |shared| &shared.services.collect,
        moves: false,
        is_there: |shared| shared.dedup.as_ref().is_some_and(|dedup| dedup.sharing().is_some()),
        found: Some(|shared| collect_chunks::words(&shared.segments)),
        begin: Some(collect_chunks::begin),
    },
    Row {
        name: "peers",
        class: Class::Execution,
        pause_costs: "repairs and copies in which other drives need this one wait, then fail",
        control: |shared| &shared.services.peers,
        moves: false,
        is_there: |shared| shared.peers.is_some(),
        found: None,
        begin: None,
    },
];

/// Returns the services of this drive.
pub(crate) fn rows(shared: &Shared) -> impl Iterator<Item = &'static Row> {
    SERVICES.iter().filter(|row| (row.is_there)(shared))
}

/// Starts the services on every core. The drive has started: they ask other cores.
pub(crate) fn start(shared: &Arc<Shared>) {
    rows(shared).for_each(|row| log_failures(row, shared));
    for core in 0..core_count() {
        let shared = Arc::clone(shared);
        // A core that is gone has nothing to do.
        let _ = post(CoreId(core), Class::System, move || {
            let Some(core) = core_local::<Core>() else { return };
            for row in rows(&shared) {
                let Some(begin) = row.begin else { continue };
                let (shared, core) = (Arc::clone(&shared), Rc::clone(&core));
                drop(spawn(row.class, async move {
                    let runner = Runner {
                        control: (row.control)(&shared),
                        gate: &core.gate,
                        segments: &shared.segments,
                    };
                    runner.run(|| begin(&core)).await;
                }));
            }
        });
    }
}

/// Has the failures of a service logged.
fn log_failures(row: &'static Row, shared: &Arc<Shared>) {
    let drive = Arc::downgrade(shared);
    (row.control)(shared).report_failures(move |why| {
        let Some(shared) = drive.upgrade() else { return };
        let fields = [("service", row.name.to_owned()), ("reason", why.to_owned())];
        shared.log().write_rated(Level::Error, "a service failed and is paused", &fields);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_have_names_and_words_that_fit_the_log_page() {
        for row in &SERVICES {
            let same = SERVICES.iter().filter(|other| other.name == row.name);
            assert_eq!(same.count(), 1, "{}", row.name);
            assert!(row.name.len() < 16 && row.pause_costs.len() < 128, "{}", row.name);
        }
    }
}
