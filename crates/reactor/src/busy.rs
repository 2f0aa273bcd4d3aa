//! Where a core's time went: [`BusyTimes`].
//!
//! Never measures by itself: the core's loop adds what it measured. Times are those of the core's
//! clock, so time for which the operating system took the CPU away counts as busy; lane time is
//! CPU time of the lane's own thread.

use std::cell::Cell;

use crate::class::Class;

/// A snapshot of a core's counters since it started, or of a span by [`BusyTimes::since`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes {
    /// Polling [`Class::Foreground`] tasks, ns.
    pub foreground_ns: u64,
    /// Polling [`Class::Background`] tasks, ns.
    pub background_ns: u64,
    /// Polling [`Class::System`] tasks, and the loop itself while there was work, ns.
    pub system_ns: u64,
    /// Spinning for work that had not come yet, ns; not busy.
    pub spin_ns: u64,
    /// Steps of the compute lane, ns.
    pub compute_ns: u64,
    /// Task polls.
    pub polls: u64,
    /// Rounds of the loop.
    pub turns: u64,
    /// Times the core went to sleep.
    pub sleeps: u64,
    /// Times the compute lane was boosted to normal priority, because it starved.
    pub compute_boosts: u64,
}

impl BusyTimes {
    /// What was added after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            foreground_ns: self.foreground_ns.saturating_sub(earlier.foreground_ns),
            background_ns: self.background_ns.saturating_sub(earlier.background_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            spin_ns: self.spin_ns.saturating_sub(earlier.spin_ns),
            compute_ns: self.compute_ns.saturating_sub(earlier.compute_ns),
            polls: self.polls.saturating_sub(earlier.polls),
            turns: self.turns.saturating_sub(earlier.turns),
            sleeps: self.sleeps.saturating_sub(earlier.sleeps),
            compute_boosts: self.compute_boosts.saturating_sub(earlier.compute_boosts),
        }
    }

    /// Busy time of the reactor thread over all classes, ns.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.foreground_ns + self.background_ns + self.system_ns
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
            Class::Background => times.background_ns += spent_ns,
            Class::System => times.system_ns += spent_ns,
        });
    }

    /// Attributes the time since the last call to spinning.
    pub(crate) fn spun_until(&self, now_ns: u64) {
        let spent_ns = now_ns.saturating_sub(self.stamp_ns.replace(now_ns));
        self.update(|times| times.spin_ns += spent_ns);
    }

    /// Attributes the time since the last call to nobody: the core slept.
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
