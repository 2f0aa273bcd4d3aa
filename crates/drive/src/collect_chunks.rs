//! The service that deletes shared chunks which no value has any more. The first core runs it.

use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_kvlog::collect::{CollectFailed, Collected, Collector};
use csd_kvlog::segments::{KvNamespace, Segments};
use csd_kvlog::service::{Pending, Service, Step};
use csd_nvme::status::Status;
use csd_reactor::{CoreId, core_id, sleep};

use crate::drive::Core;

/// Says how many chunks are shared, in words.
pub(crate) fn words(segments: &Segments) -> String {
    let sum = |of: fn(&KvNamespace) -> &AtomicU64| -> u64 {
        segments.pools.iter().map(|pool| of(pool).load(Relaxed)).sum()
    };
    format!("{} shared chunks, {} B", sum(|pool| &pool.keys), sum(|pool| &pool.used_bytes))
}

/// Pause between two looks for something to do.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the part of a core in the service.
pub(crate) fn begin(core: &Rc<Core>) -> Box<dyn Service> {
    let dedup = core.shared.dedup.as_ref().filter(|_| core_id() == CoreId(0));
    let sharing = dedup.and_then(|dedup| dedup.sharing());
    Box::new(Collecting(sharing.map(|sharing| Collector::new(&core.kv, sharing))))
}

/// Says why no shared chunk can be deleted, and what helps.
fn why(failed: &CollectFailed) -> String {
    let status = failed.status;
    let Some((nsid, key)) = failed.unreadable else {
        return format!("shared chunks cannot be deleted: {status}");
    };
    let key = key.as_bytes().escape_ascii();
    format!(
        "no shared chunk can be deleted, because the value of key {key} of namespace {nsid} cannot \
         be read ({status}): delete or replace it, then resume the service"
    )
}

/// The service on a core, if it is the first one. A step is a page of an index.
struct Collecting(Option<Collector>);

impl Service for Collecting {
    fn step(&mut self) -> Pending<'_, Step> {
        Box::pin(async {
            let Some(collector) = &mut self.0 else { return Step::Idle };
            match collector.step().await {
                Ok(Collected::Worked { bytes }) => Step::Worked { bytes },
                Ok(Collected::Nothing | Collected::Waits) => Step::Idle,
                // There is no room for deletions, or the drive stops.
                Err(CollectFailed {
                    status: Status::CAPACITY_EXCEEDED | Status::NAMESPACE_NOT_READY,
                    ..
                }) => Step::Idle,
                Err(failed) => Step::Failed(why(&failed)),
            }
        })
    }

    fn wait(&mut self) -> Pending<'_, ()> {
        let pause = if self.0.is_some() { PAUSE } else { Duration::MAX };
        Box::pin(sleep(pause))
    }
}
