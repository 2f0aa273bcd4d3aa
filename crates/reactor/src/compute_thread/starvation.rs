//! Starvation guard for the low-priority compute thread: [`StarvationGuard`].
//!
//! A thread that never runs must get a higher priority after some time, which is known as aging
//! (Silberschatz, Galvin, Gagne, "Operating system concepts"). Here it gets normal priority at
//! once, for a limited time.
//!
//! A thread under `SCHED_IDLE` gets about a thousandth of a CPU that other threads always want. If
//! the compute thread had work but received less than a tenth of the CPU in a window, while its
//! core was mostly idle for foreground work, its jobs run at normal priority for a hold time. The
//! hold time doubles each time the thread still starves afterwards. This module reads no clock and
//! changes no priority: the worker does. Invariant: a sample after an interval of much foreground
//! work never boosts.

/// Time between two samples, ns.
pub(super) const SAMPLE_NS: u64 = 5_000_000;
/// Length of a window, counted in time with work, ns.
const WINDOW_NS: u64 = 50_000_000;
/// The thread starves if it gets less than this fraction (1/n) of the time it has work.
const STARVED_BELOW: u64 = 10;
/// The core is busy if foreground work takes this fraction (1/n) of an interval or more.
const FOREGROUND_FROM: u64 = 5;
/// First hold time at normal priority, ns.
const HOLD_MIN_NS: u64 = 500_000_000;
/// Maximum hold time, ns.
const HOLD_MAX_NS: u64 = 16_000_000_000;

/// Clock readings of a core and its compute thread at one sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Current time.
    pub(super) now_ns: u64,
    /// Total time for which the thread has had work.
    pub(super) wanted_ns: u64,
    /// CPU time of the thread.
    pub(super) compute_ns: u64,
    /// Total time that the core has spent on foreground work.
    pub(super) foreground_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Low,
    /// At normal priority until this time, ns.
    Boosted(u64),
}

/// Decides when one compute thread gets normal priority.
#[derive(Debug, Default)]
pub(super) struct StarvationGuard {
    state: State,
    /// Reading of the last sample.
    last: Reading,
    /// Reading at the start of the window.
    window: Reading,
    /// Length of the last hold time; 0 if the thread has not starved since.
    hold_ns: u64,
}

impl StarvationGuard {
    /// Takes a sample; returns true if the thread should have normal priority from now on.
    pub(super) fn sample(&mut self, reading: Reading) -> bool {
        let passed_ns = reading.now_ns - self.last.now_ns;
        let foreground_ns = reading.foreground_ns - self.last.foreground_ns;
        self.last = reading;
        if foreground_ns * FOREGROUND_FROM >= passed_ns {
            self.state = State::Low;
            self.window = reading;
            return false;
        }
        match self.state {
            State::Boosted(until_ns) if reading.now_ns < until_ns => return true,
            State::Boosted(_) => {
                self.state = State::Low;
                self.window = reading;
                return false;
            }
            State::Low => {}
        }
        let wanted_ns = reading.wanted_ns - self.window.wanted_ns;
        if wanted_ns < WINDOW_NS {
            return false;
        }
        let compute_ns = reading.compute_ns - self.window.compute_ns;
        self.window = reading;
        if compute_ns * STARVED_BELOW >= wanted_ns {
            self.hold_ns = 0;
            return false;
        }
        self.hold_ns = (self.hold_ns * 2).clamp(HOLD_MIN_NS, HOLD_MAX_NS);
        self.state = State::Boosted(reading.now_ns + self.hold_ns);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples a thread that always has work for `ms`, with `share` percent of a CPU for it and
    /// `foreground` percent for hosts; returns the time at normal priority, ms.
    fn pass(guard: &mut StarvationGuard, ms: u64, share: u64, foreground: u64) -> u64 {
        let mut reading = guard.last;
        let looks = ms * 1_000_000 / SAMPLE_NS;
        let boosted = (0..looks).filter(|_| {
            reading.now_ns += SAMPLE_NS;
            reading.wanted_ns += SAMPLE_NS;
            reading.compute_ns += SAMPLE_NS * share / 100;
            reading.foreground_ns += SAMPLE_NS * foreground / 100;
            guard.sample(reading)
        });
        boosted.count() as u64 * SAMPLE_NS / 1_000_000
    }

    #[test]
    fn a_thread_with_its_share_stays_low() {
        let mut guard = StarvationGuard::default();
        assert_eq!(pass(&mut guard, 10_000, 10, 0), 0);
        assert_eq!(pass(&mut guard, 10_000, 90, 19), 0);
    }

    #[test]
    fn a_starved_thread_is_boosted_within_a_window_and_lowered_after_the_hold_time() {
        let mut guard = StarvationGuard::default();
        assert_eq!(pass(&mut guard, 45, 0, 0), 0);
        assert_eq!(pass(&mut guard, 505, 0, 0), 500);
        // A whole window decides again.
        assert_eq!(pass(&mut guard, 45, 0, 0), 0);
        assert_eq!(pass(&mut guard, 5, 0, 0), 5);
    }

    #[test]
    fn the_hold_time_doubles_up_to_a_limit_while_the_thread_starves() {
        let mut guard = StarvationGuard::default();
        // 50 ms to judge, then 0.5, 1, 2, 4, 8 and twice 16 s.
        assert_eq!(pass(&mut guard, 47_500 + 7 * 50, 5, 0), 47_500);
        // One good window resets the hold time: 0.5 s, then up to 1 s.
        assert_eq!(pass(&mut guard, 100, 50, 0), 0);
        assert_eq!(pass(&mut guard, 1000, 5, 0), 500 + 405);
    }

    #[test]
    fn foreground_work_lowers_the_thread_at_once_and_keeps_it_low() {
        let mut guard = StarvationGuard::default();
        assert_eq!(pass(&mut guard, 50, 0, 0), 5);
        assert_eq!(pass(&mut guard, 10_000, 0, 20), 0);
        // And boosted again once they are over, after a whole window of that.
        assert_eq!(pass(&mut guard, 45, 0, 0), 0);
        assert!(pass(&mut guard, 5, 0, 0) > 0);
    }

    #[test]
    fn time_without_work_does_not_count_as_starvation() {
        let mut guard = StarvationGuard::default();
        let mut reading = Reading::default();
        for _ in 0..1000 {
            reading.now_ns += SAMPLE_NS;
            reading.wanted_ns += SAMPLE_NS / 1000;
            assert!(!guard.sample(reading));
        }
    }
}
