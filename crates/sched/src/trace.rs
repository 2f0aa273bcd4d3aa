//! [`Trace`]: the latest decisions.

use std::collections::VecDeque;

use crate::policy::Policy;
use crate::scheduler::{Decision, Task};

/// A decision as it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Number of the decision, from 0.
    pub number: u64,
    /// When, nanoseconds of the caller's clock.
    pub at_ns: u64,
    /// Policy in force.
    pub policy: Policy,
    /// The task.
    pub task: Task,
    /// The core and the reason.
    pub decision: Decision,
    /// Utilisation of the core on which the task arose, in the latest window.
    pub origin_utilisation: f64,
    /// Utilisation of the core that was chosen.
    pub core_utilisation: f64,
}

/// The latest decisions, up to a number of them.
#[derive(Debug)]
pub struct Trace {
    entries: VecDeque<Entry>,
    most: usize,
    decisions: u64,
}

impl Trace {
    /// Returns an empty trace of at most `most` decisions. It allocates nothing later.
    ///
    /// # Panics
    /// If `most` is 0.
    #[must_use]
    pub fn new(most: usize) -> Self {
        assert!(most > 0, "a trace holds decisions");
        Self { entries: VecDeque::with_capacity(most), most, decisions: 0 }
    }

    /// Adds a decision, and drops the oldest one if there are too many. Its number is set here.
    pub fn push(&mut self, entry: Entry) {
        if self.entries.len() == self.most {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { number: self.decisions, ..entry });
        self.decisions += 1;
    }

    /// Returns the decisions that are kept, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Returns the number of decisions ever made.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.decisions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Reason;

    #[test]
    fn it_keeps_the_latest_decisions_and_counts_all() {
        let mut trace = Trace::new(3);
        for at_ns in 0..5 {
            trace.push(Entry {
                number: 0,
                at_ns,
                policy: Policy::Bts,
                task: Task { origin: 0, work_ns: 1 },
                decision: Decision { core: 1, reason: Reason::Idle },
                origin_utilisation: 0.5,
                core_utilisation: 0.0,
            });
        }
        assert_eq!(trace.decisions(), 5);
        let kept: Vec<_> = trace.entries().map(|entry| (entry.number, entry.at_ns)).collect();
        assert_eq!(kept, [(2, 2), (3, 3), (4, 4)]);
    }
}
