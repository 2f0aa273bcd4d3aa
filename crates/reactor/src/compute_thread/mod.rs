//! Compute threads: long computations next to the reactor ([`compute`], [`compute_fn`]). In drives
//! they run at the lowest priority, so that commands go first, and at normal priority while other
//! processes starve them (`starvation`).
//!
//! A core has up to three: one for jobs of every class but [`Class::System`]; one for
//! [`compute_long`], which takes long work that has no steps, such as compiling; and one of normal
//! priority for short jobs of [`Class::System`] that must not starve on a busy machine, such as a
//! host's authentication.
//!
//! No job runs on the reactor's thread, except in the simulation, which has no other. Invariants:
//! foreground jobs go before all others; foreground jobs take turns step by step, and so do the
//! others; a job is dropped between steps once its future is dropped; a panic ends its job and not
//! the thread.

mod job;
mod starvation;
mod worker;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::backend::thread::NO_THREAD;
use crate::class::Class;
use crate::current::current;
use crate::oneshot::{Receiver, Sender, oneshot};

pub(crate) use job::{ComputeLoad, ErasedJob, JobQueue, Stepped};
pub(crate) use worker::ComputeThreads;

/// Outcome of one step. `cost_ns` is the step's modelled cost: the simulation charges it to its
/// clock, real runs ignore it.
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

/// A computation in steps, so that it can be aborted, interleaved and simulated. A step should take
/// about a millisecond.
pub trait Job: Send + 'static {
    /// Type of the result.
    type Output: Send + 'static;
    /// Does the next step.
    fn step(&mut self) -> Progress<Self::Output>;
    /// Receives the CPU time of each step after it has ended, the last one included; in the
    /// simulation its modelled cost. Must not panic.
    fn ran(&mut self, _spent_ns: u64) {}
}

/// Reason why a computation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComputeFailed {
    /// The job panicked.
    #[error("the computation panicked")]
    Panicked,
    /// The system gave no thread.
    #[error("{NO_THREAD}")]
    NoThread,
}

/// Runs `job` on this core's compute thread.
///
/// # Panics
/// Outside a core.
pub fn compute<J: Job>(class: Class, job: J) -> Compute<J> {
    let (reply, result) = oneshot();
    let running = Running { job, reply: Some(reply), output: None };
    current().backend.compute(class, Box::new(running));
    Compute { result }
}

/// Runs a closure on this core's compute thread, as a job of one step with the given modelled cost.
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

/// Runs a closure that may take long on a thread of its own, at the compute thread's priority,
/// while other jobs go on taking turns. Each core runs one such closure at a time. In the
/// simulation it is an execution's job of the modelled cost.
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

/// Future of a job's result; dropping it aborts the job before its next step.
#[must_use = "dropping it aborts the job"]
pub struct Compute<J: Job> {
    result: Receiver<Result<J::Output, ComputeFailed>>,
}

impl<J: Job> Future for Compute<J> {
    type Output = Result<J::Output, ComputeFailed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = Pin::new(&mut self.result).poll(cx);
        result.map(|result| result.unwrap_or(Err(ComputeFailed::Panicked)))
    }
}

struct Running<J: Job> {
    job: J,
    reply: Option<Sender<Result<J::Output, ComputeFailed>>>,
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
            reply.send(Ok(output));
        }
    }

    fn refuse(mut self: Box<Self>) {
        if let Some(reply) = self.reply.take() {
            reply.send(Err(ComputeFailed::NoThread));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_job_without_a_thread_is_told_so_and_not_that_it_panicked() {
        let (reply, result) = oneshot();
        let job = Single { run: Some(u64::default as fn() -> u64), cost_ns: 0 };
        let running = Running { job, reply: Some(reply), output: None };
        Box::new(running).refuse();
        let mut compute = Compute::<Single<fn() -> u64>> { result };
        let polled = Pin::new(&mut compute).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Err(ComputeFailed::NoThread)));
        assert!(ComputeFailed::NoThread.to_string().contains("limit of processes or threads"));
    }
}
