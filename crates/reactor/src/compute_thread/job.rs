//! [`ErasedJob`]: a job of the lane whose type is forgotten, and the queue of such jobs.

use std::collections::VecDeque;

use crate::class::Class;

/// What a step of some job came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stepped {
    pub(crate) cost_ns: u64,
    pub(crate) more: bool,
}

/// A job whose type is forgotten.
pub(crate) trait ErasedJob: Send {
    /// Does a step; never panics.
    fn step(&mut self) -> Stepped;
    /// What the step took.
    fn ran(&mut self, spent_ns: u64);
    /// Whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool;
    /// Delivers the output after the last step. Without it, or one, the waiter sees a failure.
    fn finish(self: Box<Self>);
}

/// Jobs waiting for their next step. Also the simulation's queue.
#[derive(Default)]
pub(crate) struct JobQueue {
    foreground: VecDeque<Box<dyn ErasedJob>>,
    others: VecDeque<Box<dyn ErasedJob>>,
}

impl JobQueue {
    pub(crate) fn push(&mut self, class: Class, job: Box<dyn ErasedJob>) {
        match class {
            Class::Foreground => self.foreground.push_back(job),
            Class::Background | Class::System => self.others.push_back(job),
        }
    }

    /// The job whose turn it is, and the class to give it back under.
    pub(crate) fn pop(&mut self) -> Option<(Class, Box<dyn ErasedJob>)> {
        let foreground = self.foreground.pop_front().map(|job| (Class::Foreground, job));
        foreground.or_else(|| self.others.pop_front().map(|job| (Class::Background, job)))
    }
}

/// What a core's lane does and did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ComputeLoad {
    /// It has work.
    pub(crate) works: bool,
    /// CPU time it has used, ns.
    pub(crate) cpu_ns: u64,
    /// How often it was boosted.
    pub(crate) boosts: u64,
}
