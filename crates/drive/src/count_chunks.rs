//! The counting of [duplicate chunks](crate::dedup) as a service of each core, and the
//! [sharing](crate::share_chunks) of those that are found.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::core_choice::Chooser;
use crate::dedup::job;
use crate::drive::{Core, Shared};
use crate::share_chunks;
use csd_kvlog::Kv;
use csd_kvlog::new_values::NewValues;
use csd_kvlog::record::EntryKey;
use csd_kvlog::service::{Pending, Service, Step};
use csd_nvme::status::Status;

/// Most memory of a core for the buffers of Stores whose values are not counted yet, bytes.
const AT_HAND_BYTES: u64 = 8 << 20;
/// Longest time for which values are gathered before they are counted.
const GATHERED: Duration = Duration::from_millis(10);

/// Returns the part of a core in the counting.
pub(crate) fn begin(core: &Rc<Core>) -> Box<dyn Service> {
    let (values, shared) = (core.kv.new_values(AT_HAND_BYTES), Arc::clone(&core.shared));
    let chooser = Chooser::new(Arc::clone(&shared.core_choice));
    Box::new(Counting { values, chooser, shared, kv: Rc::clone(&core.kv), alike: BTreeSet::new() })
}

/// Most values that wait to share chunks while others are counted: 4 MiB of their keys.
const ALIKE_MAX: usize = 1 << 16;

/// The counting of a core. A step is about 64 KiB of values of one or more group commits, or one
/// value of the medium; it is done on the core that the policy names. When none is left, a step is
/// one value that comes to share chunks: the more is counted by then, the more it shares at once.
struct Counting {
    values: NewValues,
    chooser: Chooser,
    shared: Arc<Shared>,
    kv: Rc<Kv>,
    /// Values with chunks that other values have, too.
    alike: BTreeSet<EntryKey>,
}

impl Counting {
    async fn count(&mut self) -> Step {
        let Some(dedup) = &self.shared.dedup else { return Step::Idle };
        if self.alike.len() >= ALIKE_MAX {
            return self.share().await;
        }
        let batch = match self.values.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => return self.share().await,
            Err(error) => return Step::Failed(format!("a value cannot be read: {error}")),
        };
        let bytes = batch.value_bytes();
        match self.chooser.run(dedup.job(batch), job::cost_ns(bytes)).await {
            Some(Ok((alike, _batch))) => {
                self.alike.extend(alike);
                Step::Worked { bytes }
            }
            Some(Err(error)) => Step::Failed(format!("values cannot be hashed: {error}")),
            // The drive stops.
            None => Step::Idle,
        }
    }

    /// Lets the next value share chunks.
    async fn share(&mut self) -> Step {
        let dedup = self.shared.dedup.as_ref();
        let (Some(dedup), Some(entry)) = (dedup, self.alike.pop_first()) else { return Step::Idle };
        let Some(shared) = dedup.shared() else { return Step::Idle };
        let chunk_bytes = dedup.options().chunk_bytes as usize;
        match share_chunks::share(&self.kv, shared, entry, chunk_bytes).await {
            Ok(bytes) => Step::Worked { bytes },
            // The value is damaged. Reading it fails with the same status.
            Err(Status::UNRECOVERED_ERROR) => Step::Worked { bytes: 0 },
            Err(_) if self.shared.segments.is_closing() => Step::Idle,
            Err(status) => Step::Failed(format!("a value cannot share chunks: {status}")),
        }
    }
}

impl Service for Counting {
    fn step(&mut self) -> Pending<'_, Step> {
        Box::pin(self.count())
    }

    /// Values that arrive soon after one another are counted together: the compute thread begins
    /// once for all of them, and most commands find it at rest.
    fn wait(&mut self) -> Pending<'_, ()> {
        Box::pin(self.values.arrived(GATHERED))
    }
}
