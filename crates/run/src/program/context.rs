//! The state of a program's run, as the host's executions and the drives' see it.
//!
//! Starts nothing. Invariant: the answer of a chunk is added once, by who has executed it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_initiator::Options;
use csd_reactor::Semaphore;
use csd_store::array::Plan;

use super::gather::Gather;
use super::lines::{Cut, Heads, UsedHeads};
use super::owner::Owner;
use super::{Answer, RunOptions, Task};
use crate::error::Error;
use crate::ledger::Ledger;
use crate::queue::Queue;
use crate::work::Common;

/// State shared by the cores of a run.
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) options: Options,
    pub(super) task: Arc<Task>,
    pub(super) run_options: RunOptions,
    pub(super) queue: Arc<Queue>,
    pub(super) gather: Gather,
    pub(super) ledger: Arc<Ledger>,
    sums: Mutex<Sums>,
    /// Reasons why the host did units that drives refused or failed to do.
    refused: Mutex<Vec<String>>,
    /// True if heads of lines are read from whole chunks.
    pub(super) whole_heads: bool,
    /// Heads that executions have used.
    used_heads: UsedHeads,
    /// True once an execution turned out to have used a wrong head.
    mistrusts_heads: AtomicBool,
}

/// Totals of the work done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) bytes: u64,
    pub(super) executions: u64,
    pub(super) handed_bytes: u64,
}

impl Shared {
    pub(super) fn new(
        plan: &Plan,
        options: &Options,
        task: &Arc<Task>,
        run_options: &RunOptions,
        whole_heads: bool,
    ) -> Self {
        Self {
            plan: plan.clone(),
            options: options.clone(),
            task: Arc::clone(task),
            run_options: run_options.clone(),
            queue: Arc::new(Queue::new(task.piles()).with_order(task.consumer.is_some())),
            gather: Gather::new(task),
            ledger: Arc::default(),
            sums: Mutex::default(),
            refused: Mutex::default(),
            whole_heads,
            used_heads: UsedHeads::default(),
            mistrusts_heads: AtomicBool::new(false),
        }
    }

    /// Returns true if the run must begin again, with heads of lines from whole chunks.
    pub(super) fn mistrusts_heads(&self) -> bool {
        self.mistrusts_heads.load(Ordering::Relaxed)
    }

    /// Returns true if the run has ended early, because its consumer needs no more.
    pub(super) fn is_enough(&self) -> bool {
        self.gather.is_enough()
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sums(&self) -> Sums {
        *self.locked()
    }

    /// Notes why the host does a unit that a drive refuses or fails to do.
    pub(super) fn refuse(&self, why: &Error) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).push(why.to_string());
    }

    pub(super) fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the answer of a run that is over.
    pub(super) fn answer(&self) -> Answer {
        self.gather.take().unwrap_or_default()
    }
}

/// State shared by the workers of one core.
pub(super) struct StepContext {
    pub(super) shared: Arc<Shared>,
    pub(super) common: Common,
    pub(super) heads: Heads,
    /// Permit for the core's compute thread: one execution at a time, because an execution's wall
    /// time is bounded.
    pub(super) compute_turn: Semaphore,
    /// Owner of the program in the drives; its identifier is the holder of their memory, too.
    pub(super) owner: Owner,
}

impl StepContext {
    pub(super) fn task(&self) -> &Task {
        &self.shared.task
    }

    /// Returns true if the execution over a unit sees nothing.
    pub(super) fn sees_nothing(&self, unit: u32, cut: &Cut) -> bool {
        let task = self.task();
        task.group(unit).is_none() && cut.is_empty(task.layout.chunk_len(unit))
    }

    /// Adds the answer of a chunk; returns the number of elements that the first object has in it.
    pub(super) async fn done(
        &self,
        chunk: u32,
        answer: Option<Answer>,
        cut: &Cut,
    ) -> Result<u64, Error> {
        let task = self.task();
        if !self.shared.whole_heads && !self.shared.used_heads.agree(chunk, cut) {
            self.shared.mistrusts_heads.store(true, Ordering::Relaxed);
            self.common.queue.stop();
        }
        let (executions, bytes) = (u64::from(answer.is_some()), task.unit_bytes(chunk));
        self.shared.gather.add(chunk, answer).await?;
        if self.shared.is_enough() {
            self.common.queue.stop();
        }
        {
            let mut sums = self.shared.locked();
            sums.bytes += bytes;
            sums.executions += executions;
            sums.handed_bytes += cut.handed.len() as u64;
        }
        self.common.progress.add(bytes);
        Ok(task.unit_elements(chunk))
    }
}
