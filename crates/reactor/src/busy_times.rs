//! [`BusyTimes`]: a core's counters of time and events.
//!
//! The core's loop measures; this module adds up. Times are those of the core's clock, so time for
//! which the operating system took the CPU away counts as busy. Compute time is CPU time of the
//! compute threads.

use std::cell::Cell;

use crate::class::Class;

/// Counters of a core since it started, or of a span by [`BusyTimes::since`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes {
    /// Time polling [`Class::Foreground`] tasks, ns.
    pub foreground_ns: u64,
    /// Time polling [`Class::Tunnel`] tasks, ns.
    pub tunnel_ns: u64,
    /// Time polling [`Class::Execution`] tasks, ns.
    pub execution_ns: u64,
    /// Time polling [`Class::Service`] tasks, ns.
    pub service_ns: u64,
    /// Time polling [`Class::System`] tasks, and in the loop itself while there was work, ns.
    pub system_ns: u64,
    /// Time spinning in wait for work, ns; not busy.
    pub spin_ns: u64,
    /// CPU time of the core's compute threads by the class of the job, in the order of [`Class`],
    /// ns.
    pub compute_ns: [u64; Class::COUNT],
    /// Number of task polls.
    pub polls: u64,
    /// Number of turns of the loop.
    pub turns: u64,
    /// Number of times the core went to sleep.
    pub sleeps: u64,
    /// Number of times a starved compute thread got normal priority.
    pub compute_boosts: u64,
}

impl BusyTimes {
    /// Returns the increments since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            foreground_ns: self.foreground_ns.saturating_sub(earlier.foreground_ns),
            tunnel_ns: self.tunnel_ns.saturating_sub(earlier.tunnel_ns),
            execution_ns: self.execution_ns.saturating_sub(earlier.execution_ns),
            service_ns: self.service_ns.saturating_sub(earlier.service_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            spin_ns: self.spin_ns.saturating_sub(earlier.spin_ns),
            compute_ns: std::array::from_fn(|class| {
                self.compute_ns[class].saturating_sub(earlier.compute_ns[class])
            }),
            polls: self.polls.saturating_sub(earlier.polls),
            turns: self.turns.saturating_sub(earlier.turns),
            sleeps: self.sleeps.saturating_sub(earlier.sleeps),
            compute_boosts: self.compute_boosts.saturating_sub(earlier.compute_boosts),
        }
    }

    /// Returns the CPU time of the core's compute threads over all classes, ns.
    #[must_use]
    pub fn all_compute_ns(&self) -> u64 {
        self.compute_ns.iter().sum()
    }

    /// Returns the busy time of the core's own thread over all classes, ns.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.foreground_ns + self.tunnel_ns + self.execution_ns + self.service_ns + self.system_ns
    }
}

/// The counters, and the clock reading up to which time has been attributed.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) times: Cell<BusyTimes>,
    stamp_ns: Cell<u64>,
}

impl Meter {
    /// Attributes the time since the last call to `class`.
    pub(crate) fn charge_until(&self, now_ns: u64, class: Class) {
        let spent_ns = now_ns.saturating_sub(self.stamp_ns.replace(now_ns));
        self.charge(spent_ns, class);
    }

    pub(crate) fn charge(&self, spent_ns: u64, class: Class) {
        self.update(|times| match class {
            Class::Foreground => times.foreground_ns += spent_ns,
            Class::Tunnel => times.tunnel_ns += spent_ns,
            Class::Execution => times.execution_ns += spent_ns,
            Class::Service => times.service_ns += spent_ns,
            Class::System => times.system_ns += spent_ns,
        });
    }

    /// Attributes the time since the last call to spinning.
    pub(crate) fn spun_until(&self, now_ns: u64) {
        let spent_ns = now_ns.saturating_sub(self.stamp_ns.replace(now_ns));
        self.update(|times| times.spin_ns += spent_ns);
    }

    /// Leaves the time since the last call unattributed: the core slept.
    pub(crate) fn slept_until(&self, now_ns: u64) {
        self.stamp_ns.set(now_ns);
        self.update(|times| times.sleeps += 1);
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut BusyTimes)) {
        let mut times = self.times.get();
        change(&mut times);
        self.times.set(times);
    }
}
