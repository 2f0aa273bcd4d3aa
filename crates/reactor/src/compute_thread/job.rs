//! [`ErasedJob`]: a job behind a trait object, and the queue of such jobs.

use std::collections::VecDeque;

use crate::class::Class;

/// Outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stepped {
    pub(crate) cost_ns: u64,
    pub(crate) more: bool,
}

/// A job behind a trait object.
pub(crate) trait ErasedJob: Send {
    /// Does a step. Does not panic.
    fn step(&mut self) -> Stepped;
    /// Reports the time that the last step took.
    fn ran(&mut self, spent_ns: u64);
    /// Returns true if the result is no longer awaited.
    fn is_abandoned(&self) -> bool;
    /// Delivers the output after the last step. If the job is dropped, or has no output, its waiter
    /// gets an error.
    fn finish(self: Box<Self>);
    /// Ends the job before its first step, because there is no thread for it.
    fn refuse(self: Box<Self>);
}

/// Jobs waiting for their next step. The simulation uses the same queue.
#[derive(Default)]
pub(crate) struct JobQueue {
    foreground: VecDeque<Box<dyn ErasedJob>>,
    others: VecDeque<(Class, Box<dyn ErasedJob>)>,
}

impl JobQueue {
    pub(crate) fn push(&mut self, class: Class, job: Box<dyn ErasedJob>) {
        match class {
            Class::Foreground => self.foreground.push_back(job),
            Class::Tunnel | Class::Execution | Class::Service | Class::System => {
                self.others.push_back((class, job));
            }
        }
    }

    /// Returns the next job with its class.
    pub(crate) fn pop(&mut self) -> Option<(Class, Box<dyn ErasedJob>)> {
        let foreground = self.foreground.pop_front().map(|job| (Class::Foreground, job));
        foreground.or_else(|| self.others.pop_front())
    }
}

/// State and counters of a core's compute threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ComputeLoad {
    /// True while they have work.
    pub(crate) works: bool,
    /// CPU time they have used by the class of the job, ns.
    pub(crate) cpu_ns: [u64; Class::COUNT],
    /// Number of times one got normal priority because it starved.
    pub(crate) boosts: u64,
}
