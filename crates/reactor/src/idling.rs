//! How a real core waits when it has nothing to do: [`Idling`].
//!
//! Never runs a task. Invariant: a core sleeps no longer than to its next timer, nor than its lane
//! can do without being looked after.

use std::io;
use std::time::Duration;

use crate::core::Core;
use crate::instant::Instant;

/// How a core waits: whether spinning pays, learnt from how waits ended.
pub(crate) struct Idling {
    spin: Duration,
    pub(crate) turns_since_poll: u32,
    /// Background tasks were put off for a host's in the last round.
    pub(crate) background_waits: bool,
    /// Rises when work came within a spin's length, falls when it did not; spin while above 0.
    credit: u8,
}

const CREDIT_MAX: u8 = 8;

impl Idling {
    pub(crate) fn new(spin_us: u32) -> Self {
        let spin = Duration::from_micros(spin_us.into());
        Self { spin, turns_since_poll: 0, background_waits: false, credit: 0 }
    }

    pub(crate) fn wait(&mut self, core: &Core) -> io::Result<()> {
        let began = core.backend.now();
        // The lane runs on what we leave over: a spinning reactor would starve it.
        let spins = self.credit > 0 && !self.spin.is_zero() && !core.backend.compute_load().works;
        if spins && spin(core, began + self.spin)? {
            self.credit = CREDIT_MAX.min(self.credit + 1);
            return Ok(());
        }
        sleep(core)?;
        let waited = core.backend.now().since(began);
        core.meter.slept_until(core.backend.now().ns());
        self.credit = if waited <= self.spin {
            CREDIT_MAX.min(self.credit + 1)
        } else {
            self.credit.saturating_sub(1)
        };
        Ok(())
    }
}

/// Looks for work without sleeping. Whether there was any.
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

/// Sleeps in the back end until the next timer, mail or event.
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

/// Keeps the lane from starving; the time until that is due again, ns.
pub(crate) fn guard_compute(core: &Core) -> Option<u64> {
    core.backend.guard_compute(core.meter.times.get().foreground_ns)
}
