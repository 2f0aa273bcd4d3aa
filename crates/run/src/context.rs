//! The context of a run: what all of its cores and steps use, and what the workers of one step use.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_initiator::Options;
use csd_kernels::kernel::{self, Position};
use csd_kernels::program::Program;
use csd_store::array::Plan;

use crate::ledger::Ledger;
use crate::queue::Taken;
use crate::tally::Tally;
use crate::target::Destination;
use crate::work::Common;
use crate::{Job, RunOptions};

/// Data of a run that all of its cores and steps use.
pub(crate) struct RunContext {
    pub(crate) plan: Plan,
    pub(crate) options: Options,
    pub(crate) job: Arc<Job>,
    pub(crate) run_options: RunOptions,
    pub(crate) target: Destination,
    pub(crate) ledger: Arc<Ledger>,
    /// True if the host takes over the units of lost drives.
    pub(crate) takes_over: bool,
    /// Answers of the step so far.
    tally: Mutex<Tally>,
}

impl RunContext {
    pub(crate) fn new(
        plan: &Plan,
        options: &Options,
        job: &Arc<Job>,
        target: Option<Destination>,
        run_options: &RunOptions,
    ) -> Self {
        let target = target.unwrap_or_else(|| Destination::without_object(job));
        let takes_over = job.can_lose_drives() && !matches!(target, Destination::Object { .. });
        Self {
            plan: plan.clone(),
            options: options.clone(),
            job: Arc::clone(job),
            run_options: run_options.clone(),
            target,
            ledger: Arc::default(),
            takes_over,
            tally: Mutex::default(),
        }
    }

    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State shared by the workers of one core during a step.
pub(crate) struct StepContext {
    pub(crate) common: Common,
    pub(crate) run: Arc<RunContext>,
    /// Vector that every unit reads, little-endian; empty if there is none.
    pub(crate) vector: Arc<Vec<u8>>,
    /// Holder of the lease of the drives' memory: a number unique to the run; 0 if the run needs no
    /// memory.
    pub(crate) holder: u64,
    /// Programs of this core that have finished a part and can be reused for another one of the
    /// step.
    pub(crate) idle: RefCell<Vec<Box<dyn Program>>>,
}

impl StepContext {
    pub(crate) fn job(&self) -> &Job {
        &self.run.job
    }

    /// Adds the answer of an execution over `taken`, whose items are at `position`; returns the
    /// number of its elements.
    pub(crate) fn done(&self, taken: &Taken, position: &Position, answer: kernel::Answer) -> u64 {
        let (job, bytes) = (self.job(), self.job().run_bytes(&taken.run));
        self.run.tally().add(job, taken, position, answer);
        self.common.progress.add(bytes);
        bytes / job.inputs[0].element.bytes() as u64
    }
}
