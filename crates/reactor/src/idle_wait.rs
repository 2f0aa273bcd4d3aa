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
    /// Grows when work came within a spin's length, falls when it did not; the core spins while
    /// this is above 0.
    credit: u8,
}

const CREDIT_MAX: u8 = 8;
impl IdleWait {
    pub(crate) fn new(spin_us: u32) -> Self {
        let spin = Duration::from_micros(spin_us.into());
        Self { spin, credit: 0 }
    }

    pub(crate) fn wait(&mut self, core: &Core) -> io::Result<()> {
        let began = core.backend.now();
        // Those threads may share the core's CPU: a spinning reactor would starve the compute
        // thread, which runs on idle time, and hold up a sync for as long as it spins.
        let spins = self.credit > 0 && !self.spin.is_zero() && !core.backend.works_aside();
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
