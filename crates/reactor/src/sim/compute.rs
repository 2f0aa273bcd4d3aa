//! Compute threads of simulated cores: one a core, which has the CPU time that the loop leaves.

use super::state::{Event, Life, State, Stepping, Trace};
use crate::class::Class;
use crate::compute_thread::ErasedJob;

/// Longest time for which a core's loop keeps the compute thread from the CPU, ns. A real one that
/// starves gets normal priority after a window of this length.
const STARVED_NS: u64 = 50_000_000;

impl State {
    /// Queues a job; an idle compute thread takes it at once.
    pub(super) fn compute_push(
        &mut self,
        at: Life,
        class: Class,
        job: Box<dyn ErasedJob>,
    ) -> Result<(), Box<dyn ErasedJob>> {
        let Some(sim) = self.core_mut(at) else { return Err(job) };
        sim.compute.push(class, job);
        if !std::mem::replace(&mut sim.compute_running, true) {
            self.schedule(0, Event::ComputeTurn(at));
        }
        Ok(())
    }

    pub(super) fn next_job(&mut self, at: Life) -> Option<(Class, Box<dyn ErasedJob>)> {
        let sim = self.core_mut(at)?;
        let next = sim.compute.pop();
        sim.compute_running = next.is_some();
        next
    }

    /// Keeps the compute thread busy for `cost_ns` of the CPU that it shares with the core's loop.
    pub(super) fn compute_busy(
        &mut self,
        at: Life,
        cost_ns: u64,
        class: Class,
        job: Box<dyn ErasedJob>,
        more: bool,
    ) {
        self.trace(Trace::Compute, at.machine, at.core, cost_ns);
        let now_ns = self.now_ns;
        let mut loop_ns = 0;
        if let Some(sim) = self.core_mut(at) {
            sim.compute_ns[class as usize] += cost_ns;
            // What the loop took already, and has not spent yet, comes first.
            loop_ns = sim.loop_ns - sim.busy_until_ns.saturating_sub(now_ns);
        }
        let latest_ns = now_ns.saturating_add(cost_ns).saturating_add(STARVED_NS);
        let stepping = Stepping { at, class, job, more, loop_ns, latest_ns };
        self.schedule(cost_ns, Event::ComputeStepped(stepping));
    }

    /// Returns a step whose time is over. One whose core's loop took the CPU meanwhile goes on for
    /// as long as that was, because the loop goes before the compute thread.
    pub(super) fn compute_stepped(&mut self, mut stepping: Stepping) -> Option<Stepping> {
        let now_ns = self.now_ns;
        let Some(sim) = self.core_mut(stepping.at) else { return Some(stepping) };
        let taken_ns = sim.loop_ns - stepping.loop_ns;
        let end_ns = now_ns.saturating_add(taken_ns).min(stepping.latest_ns);
        if end_ns <= now_ns {
            return Some(stepping);
        }
        stepping.loop_ns = sim.loop_ns;
        self.schedule_at(end_ns, Event::ComputeStepped(stepping));
        None
    }

    /// Requeues a job after a step, or returns it to be finished.
    pub(super) fn compute_return(
        &mut self,
        at: Life,
        class: Class,
        job: Box<dyn ErasedJob>,
        more: bool,
    ) -> Option<Box<dyn ErasedJob>> {
        self.schedule(0, Event::ComputeTurn(at));
        let Some(sim) = self.core_mut(at) else { return Some(job) };
        if !more {
            return Some(job);
        }
        sim.compute.push(class, job);
        None
    }
}
