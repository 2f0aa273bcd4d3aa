//! The choice of a core for background work that a host's command gave rise to, by the policy in
//! force (`csd-sched`).
//!
//! The state that cores share is [`CoreChoice`]: the policy, the work that waits on each core, the
//! loads in the latest window of requests, and the latest decisions. Each core decides by itself
//! (`Chooser`). Loads are read when a task arises after a window's end, so that an idle drive
//! reads nothing. Invariant: a task is done once, whatever becomes of the policy meanwhile.

mod chooser;
mod page;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_sched::{Decision, Monitor, Policy, Task, Trace, Window};

use crate::controller::CoreCounters;

pub(crate) use chooser::Chooser;
pub use page::decisions;

/// Requests in a window (Park et al., section V.A).
const WINDOW_REQUESTS: u64 = 60;

/// State that all cores share.
#[derive(Debug)]
pub struct CoreChoice {
    /// Number of the policy.
    policy: AtomicU8,
    /// Counters of each core.
    counters: Vec<Arc<CoreCounters>>,
    /// Background work that waits on each core or is under way there, ns.
    queued_ns: Vec<AtomicU64>,
    /// Requests of all cores at the end of the latest window.
    ended_at: AtomicU64,
    /// Number of the latest window.
    window: AtomicU64,
    monitor: Mutex<Monitor>,
    trace: Mutex<Trace>,
}

impl CoreChoice {
    /// Makes the state of cores that are idle now.
    pub(crate) fn new(policy: Policy, counters: Vec<Arc<CoreCounters>>, now_ns: u64) -> Self {
        let cores = counters.len();
        Self {
            policy: AtomicU8::new(policy.number()),
            counters,
            queued_ns: (0..cores).map(|_| AtomicU64::new(0)).collect(),
            ended_at: AtomicU64::new(0),
            window: AtomicU64::new(0),
            monitor: Mutex::new(Monitor::new(cores, WINDOW_REQUESTS, now_ns)),
            trace: Mutex::new(Trace::new(csd_nvme::vendor::decisions::ENTRIES_MAX)),
        }
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> Policy {
        Policy::of_number(self.policy.load(Relaxed)).unwrap_or_default()
    }

    /// Puts another policy in force, from the next task on.
    pub fn set_policy(&self, policy: Policy) {
        self.policy.store(policy.number(), Relaxed);
    }

    /// Returns the number of tasks that a core was chosen for since the drive started.
    pub fn decisions(&self) -> u64 {
        lock(&self.trace).decisions()
    }

    /// Returns the number of windows that have ended.
    pub fn windows(&self) -> u64 {
        self.window.load(Relaxed)
    }

    /// Returns the number of cores.
    fn cores(&self) -> usize {
        self.counters.len()
    }

    /// Returns the number of requests that a core has begun.
    fn requests(&self, core: usize) -> u64 {
        let counters = &self.counters[core];
        counters.reads.load(Relaxed) + counters.writes.load(Relaxed)
    }

    /// Returns true if the caller is to read the loads, because requests have ended the window.
    fn ends_window(&self) -> bool {
        let requests: u64 = (0..self.cores()).map(|core| self.requests(core)).sum();
        let before = self.ended_at.load(Relaxed);
        requests.saturating_sub(before) >= WINDOW_REQUESTS
            && self.ended_at.compare_exchange(before, requests, Relaxed, Relaxed).is_ok()
    }

    /// Takes over what the cores have said: the time in ns that foreground work of each has taken,
    /// and its number of requests.
    fn end_window(&self, now_ns: u64, cores: &[(u64, u64)]) {
        lock(&self.monitor).update(now_ns, |core| cores[core]);
        self.window.fetch_add(1, Relaxed);
    }

    fn latest_window(&self) -> Window {
        lock(&self.monitor).window().clone()
    }

    fn note(&self, at_ns: u64, policy: Policy, task: Task, decision: Decision, window: &Window) {
        lock(&self.trace).push(csd_sched::Entry {
            number: 0,
            at_ns,
            policy,
            task,
            decision,
            origin_utilisation: window.utilisation[task.origin],
            core_utilisation: window.utilisation[decision.core],
        });
    }
}

/// Locks what no panic can leave half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_reads_the_loads_of_a_window() {
        let choice = CoreChoice::new(Policy::Bts, vec![Arc::default(), Arc::default()], 0);
        let store = |count| CoreCounters::add(&choice.counters[0].writes, count);
        store(WINDOW_REQUESTS - 1);
        assert!(!choice.ends_window());
        store(6);
        assert!(choice.ends_window());
        assert!(!choice.ends_window(), "another one does already");
        choice.end_window(1_000, &[(500, 1), (0, 0)]);
        assert_eq!((choice.windows(), choice.latest_window().utilisation), (1, vec![0.5, 0.0]));
        store(WINDOW_REQUESTS - 1);
        assert!(!choice.ends_window());
        CoreCounters::add(&choice.counters[1].reads, 1);
        assert!(choice.ends_window());
    }

    #[test]
    fn the_policy_is_the_one_that_was_set() {
        let choice = CoreChoice::new(Policy::Local, vec![Arc::default()], 0);
        assert_eq!(choice.policy(), Policy::Local);
        for policy in Policy::ALL {
            choice.set_policy(policy);
            assert_eq!(choice.policy(), policy);
        }
    }
}
