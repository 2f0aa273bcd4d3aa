//! [`IdleWait`]: how a real core waits when it has nothing to do.
//!
//! This module runs no tasks. Invariant: a core sleeps no longer than until its next timer or the
//! next check of its compute thread.

use std::io;
use std::time::Duration;

use crate::class::Class;
use crate::core::Core;
use crate::instant::Instant;

/// Wait policy of a core. It learns from past waits whether spinning pays.
pub(crate) struct IdleWait {
    spin: Duration,
    /// Turns since the back end was polled, and when that was, ns.
    turns_since_poll: u32,
    polled_ns: u64,
    /// True if the last turn deferred tasks that yield for foreground ones.
    pub(crate) others_wait: bool,
    /// Grows when work came within a spin's length, falls when it did not; the core spins while
    /// this is above 0.
    credit: u8,
}

const CREDIT_MAX: u8 = 8;
/// Tasks may keep themselves ready without end, so the back end is polled at least every this many
/// turns, and after a turn that ended this long after the last poll.
const TURNS_PER_POLL: u32 = 8;
const POLL_NS: u64 = 10_000;

impl IdleWait {
    pub(crate) fn new(spin_us: u32) -> Self {
        let spin = Duration::from_micros(spin_us.into());
        Self { spin, turns_since_poll: 0, polled_ns: 0, others_wait: false, credit: 0 }
    }

    /// Counts a turn, the last of whose tasks returned at `now_ns`. Returns true if the back end
    /// must be polled although tasks are ready.
    pub(crate) fn poll_is_due(&mut self, now_ns: Option<u64>) -> bool {
        self.turns_since_poll += 1;
        let is_late = now_ns.is_some_and(|now_ns| now_ns.saturating_sub(self.polled_ns) >= POLL_NS);
        is_late || self.turns_since_poll >= TURNS_PER_POLL
    }

    /// Records that the back end was polled.
    pub(crate) fn polled(&mut self, now_ns: u64) {
        (self.turns_since_poll, self.polled_ns) = (0, now_ns);
    }

    pub(crate) fn wait(&mut self, core: &Core) -> io::Result<()> {
        let began = core.backend.now();
        // The compute thread runs on idle time: a spinning reactor would starve it.
        let spins = self.credit > 0 && !self.spin.is_zero() && !core.backend.compute_load().works;
        if spins && spin(core, began + self.spin)? {
            self.learn(!is_for_tunnel(core));
            return Ok(());
        }
        sleep(core)?;
        let waited = core.backend.now().since(began);
        core.meter.slept_until(core.backend.now().ns());
        self.learn(waited <= self.spin && !is_for_tunnel(core));
        Ok(())
    }

    /// Notes if it paid, or would have, to spin for what ended a wait.
    fn learn(&mut self, paid: bool) {
        self.credit =
            if paid { CREDIT_MAX.min(self.credit + 1) } else { self.credit.saturating_sub(1) };
    }
}

/// Returns true if a wait ended for packets of the tunnel alone: they come in streams, and spinning
/// for the next one takes the CPU from the programs that send and receive them.
fn is_for_tunnel(core: &Core) -> bool {
    let (of_tunnel, _) = core.ready.yielding(Class::Tunnel);
    of_tunnel > 0 && of_tunnel == core.ready.all()
}

/// Looks for work without sleeping; returns true if there was any.
fn spin(core: &Core, until: Instant) -> io::Result<bool> {
    let timer = core.timers.borrow().next().unwrap_or(Instant::MAX);
    let found = loop {
        core.backend.poll(Some(0))?;
        if core.ready.all() > 0 || core.shared.is_pending() {
            break true;
        }
        let now = core.backend.now();
        if now >= timer {
            break true;
        }
        if now >= until {
            break false;
        }
        std::hint::spin_loop();
    };
    core.meter.spun_until(core.backend.now().ns());
    Ok(found)
}

/// Sleeps in the back end until the next timer, message or event.
fn sleep(core: &Core) -> io::Result<()> {
    if !core.shared.before_park() {
        return Ok(());
    }
    let timer = core.timers.borrow().next();
    let timer_ns = timer.map(|at| at.ns().saturating_sub(core.backend.now().ns()));
    let wait_ns = [timer_ns, guard_compute(core)].into_iter().flatten().min();
    let polled = core.backend.poll(wait_ns);
    core.shared.after_park();
    polled
}

/// Checks the compute thread for starvation; returns the time until the next check is due, ns.
pub(crate) fn guard_compute(core: &Core) -> Option<u64> {
    core.backend.guard_compute(core.meter.times.get().foreground_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_end_is_polled_after_some_turns_or_some_time_of_work() {
        let mut idle_wait = IdleWait::new(0);
        idle_wait.polled(5_000);
        let due: Vec<bool> =
            (1..=8).map(|turn| idle_wait.poll_is_due(Some(5_000 + turn))).collect();
        assert_eq!(due, [false, false, false, false, false, false, false, true]);
        idle_wait.polled(6_000);
        assert!(!idle_wait.poll_is_due(Some(6_000 + POLL_NS - 1)));
        // A turn that polled no task took no time worth counting.
        assert!(!idle_wait.poll_is_due(None));
        assert!(idle_wait.poll_is_due(Some(6_000 + POLL_NS)));
    }
}
