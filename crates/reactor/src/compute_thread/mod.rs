//! The compute lane: long computations beside the reactor, on a thread that runs only when nobody
//! else wants the CPU ([`compute`], [`compute_fn`]); where strangers want it all the time, on one
//! of normal priority (`guard`).
//!
//! Jobs of [`Class::System`] have a thread of their own at normal priority: short ones that may not
//! starve on a busy machine, such as a host's authentication. What takes long and cannot be
//! stepped, such as compiling, has one too, of the lane's priority ([`compute_long`]).
//!
//! Never runs a job on the reactor's thread (but the simulation, which has no other). Invariants:
//! foreground jobs go before background ones, jobs of one class take turns step by step; a job is
//! dropped between steps once its future is; a panic ends its job and not the lane.

mod job;
mod starvation;
mod worker;

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::class::Class;
use crate::core::current;
use crate::oneshot::{Receiver, Sender, oneshot};

pub(crate) use job::{ComputeLoad, ErasedJob, JobQueue, Stepped};
pub(crate) use worker::ComputeThreads;

/// How far a step brought a job. `cost_ns` is the step's modelled cost: the simulation charges it
/// to its clock, real runs ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<T> {
    /// There is more to do.
    More {
        /// Modelled cost of this step, ns.
        cost_ns: u64,
    },
    /// The job is done.
    Done {
        /// Modelled cost of this step, ns.
        cost_ns: u64,
        /// The job's result.
        output: T,
    },
}

/// A computation that goes step by step, so that it can be aborted, shared and simulated. A step
/// should take about a millisecond.
pub trait Job: Send + 'static {
    /// What it computes.
    type Output: Send + 'static;
    /// Does the next piece of work.
    fn step(&mut self) -> Progress<Self::Output>;
    /// Is told the CPU time of each step once it has ended, the last one too; in the simulation
    /// its modelled cost. Must not panic.
    fn ran(&mut self, _spent_ns: u64) {}
}

/// The job panicked, or no lane could be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputeFailed;

impl fmt::Display for ComputeFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the computation failed")
    }
}

impl std::error::Error for ComputeFailed {}

/// Gives `job` to this core's compute lane.
///
/// # Panics
/// Outside a core.
pub fn compute<J: Job>(class: Class, job: J) -> Compute<J> {
    let (reply, result) = oneshot();
    let running = Running { job, reply: Some(reply), output: None };
    current().backend.compute(class, Box::new(running));
    Compute { result }
}

/// Gives a closure to this core's compute lane, as a job of one step of the given modelled cost.
///
/// # Panics
/// Outside a core.
pub fn compute_fn<T, F>(class: Class, cost_ns: u64, run: F) -> Compute<Single<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    compute(class, Single { run: Some(run), cost_ns })
}

/// Gives a closure that may take long to a thread of its own, of the lane's priority: jobs of the
/// lane take their turns meanwhile. One such closure runs at a time on a core. In the simulation it
/// is a background job of the modelled cost.
///
/// # Panics
/// Outside a core.
pub fn compute_long<T, F>(cost_ns: u64, run: F) -> Compute<Single<F>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (reply, result) = oneshot();
    let job = Single { run: Some(run), cost_ns };
    current().backend.compute_long(Box::new(Running { job, reply: Some(reply), output: None }));
    Compute { result }
}

/// The job of [`compute_fn`].
pub struct Single<F> {
    run: Option<F>,
    cost_ns: u64,
}

impl<T: Send + 'static, F: FnOnce() -> T + Send + 'static> Job for Single<F> {
    type Output = T;

    fn step(&mut self) -> Progress<T> {
        let run = self.run.take().expect("a job is not stepped after it is done");
        Progress::Done { cost_ns: self.cost_ns, output: run() }
    }
}

/// The result of a job; dropping it aborts the job before its next step.
#[must_use = "dropping it aborts the job"]
pub struct Compute<J: Job> {
    result: Receiver<J::Output>,
}

impl<J: Job> Future for Compute<J> {
    type Output = Result<J::Output, ComputeFailed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result).poll(cx).map(|output| output.ok_or(ComputeFailed))
    }
}

struct Running<J: Job> {
    job: J,
    reply: Option<Sender<J::Output>>,
    output: Option<J::Output>,
}

impl<J: Job> ErasedJob for Running<J> {
    fn step(&mut self) -> Stepped {
        // A job that panicked is never looked at again, so it need not be unwind-safe.
        match catch_unwind(AssertUnwindSafe(|| self.job.step())) {
            Ok(Progress::More { cost_ns }) => Stepped { cost_ns, more: true },
            Ok(Progress::Done { cost_ns, output }) => {
                self.output = Some(output);
                Stepped { cost_ns, more: false }
            }
            Err(_) => Stepped { cost_ns: 0, more: false },
        }
    }

    fn ran(&mut self, spent_ns: u64) {
        self.job.ran(spent_ns);
    }

    fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_none_or(Sender::is_abandoned)
    }

    fn finish(mut self: Box<Self>) {
        if let (Some(reply), Some(output)) = (self.reply.take(), self.output.take()) {
            reply.send(output);
        }
    }
}
