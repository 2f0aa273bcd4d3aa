//! Services: work that the drive does by itself. A service is a row of [`SERVICES`] and an
//! implementation of [`Service`](csd_kvlog::service::Service); on every core it runs in a task of
//! [`Class::Service`], which yields to hosts' commands.
//!
//! Invariants: a service that is idle costs no time; none begins a step once the drive stops.

pub(crate) mod counts;
pub(crate) mod runner;

use std::rc::Rc;
use std::sync::Arc;

use csd_reactor::{Class, CoreId, core_count, core_local, post, spawn};

use crate::drive::{Core, Shared};
use crate::scrub;
use counts::{Counts, Services};
use runner::{Begun, run};

/// A service of the drive.
pub(crate) struct Row {
    /// Name in the metrics.
    pub(crate) name: &'static str,
    /// Returns its counts.
    pub(crate) counts: fn(&Services) -> &Counts,
    /// Returns the part of a core, `None` if the drive runs without this service.
    begin: fn(&Rc<Core>) -> Option<Begun>,
}

/// The services of every drive.
pub(crate) static SERVICES: [Row; 2] = [
    Row {
        name: "clean",
        counts: |services| &services.clean,
        begin: |core| Some(Begun { service: Box::new(core.kv.cleaner()), pacer: None }),
    },
    Row { name: "scrub", counts: |services| &services.scrub, begin: scrub::begin },
];

/// Starts the services on every core. The drive has started: they ask other cores.
pub(crate) fn start(shared: &Arc<Shared>) {
    for core in 0..core_count() {
        let shared = Arc::clone(shared);
        // A core that is gone has nothing to do.
        let _ = post(CoreId(core), Class::System, move || {
            let Some(core) = core_local::<Core>() else { return };
            for row in &SERVICES {
                let Some(Begun { mut service, pacer }) = (row.begin)(&core) else { continue };
                let shared = Arc::clone(&shared);
                drop(spawn(Class::Service, async move {
                    let counts = (row.counts)(&shared.services);
                    run(&mut *service, pacer, counts, &shared.segments).await;
                }));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn services_have_names_and_counts_of_their_own() {
        let services = Services::default();
        for row in &SERVICES {
            (row.counts)(&services).steps.fetch_add(1, Relaxed);
            let same = SERVICES.iter().filter(|other| other.name == row.name);
            assert_eq!(same.count(), 1, "{}", row.name);
        }
        for row in &SERVICES {
            assert_eq!((row.counts)(&services).steps.load(Relaxed), 1, "{}", row.name);
        }
    }
}
