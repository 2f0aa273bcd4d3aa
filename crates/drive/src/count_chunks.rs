//! The counting of [duplicate chunks](crate::dedup) as a service of each core.

use std::rc::Rc;
use std::sync::Arc;

use crate::core_choice::Chooser;
use crate::dedup::job;
use crate::drive::{Core, Shared};
use csd_kvlog::new_values::NewValues;
use csd_kvlog::service::{Pending, Service, Step};

/// Most memory of a core for the buffers of Stores whose values are not counted yet, bytes.
const AT_HAND_BYTES: u64 = 8 << 20;

/// Returns the part of a core in the counting.
pub(crate) fn begin(core: &Rc<Core>) -> Box<dyn Service> {
    let (values, shared) = (core.kv.new_values(AT_HAND_BYTES), Arc::clone(&core.shared));
    let chooser = Chooser::new(Arc::clone(&shared.core_choice));
    Box::new(Counting { values, chooser, shared })
}

/// The counting of a core. A step is the values of a group commit, or one value of the medium; it
/// is done on the core that the policy names.
struct Counting {
    values: NewValues,
    chooser: Chooser,
    shared: Arc<Shared>,
}

impl Counting {
    async fn count(&mut self) -> Step {
        let Some(dedup) = &self.shared.dedup else { return Step::Idle };
        let batch = match self.values.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => return Step::Idle,
            Err(error) => return Step::Failed(format!("a value cannot be read: {error}")),
        };
        let bytes = batch.value_bytes();
        match self.chooser.run(dedup.job(batch), job::cost_ns(bytes)).await {
            Some(Ok(())) => Step::Worked { bytes },
            Some(Err(error)) => Step::Failed(format!("values cannot be hashed: {error}")),
            // The drive stops.
            None => Step::Idle,
        }
    }
}

impl Service for Counting {
    fn step(&mut self) -> Pending<'_, Step> {
        Box::pin(self.count())
    }

    fn wait(&mut self) -> Pending<'_, ()> {
        Box::pin(self.values.arrived())
    }
}
