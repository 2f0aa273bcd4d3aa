//! [`Adaptive`]: moves a task if that saves more than it costs.
//!
//! A task of `w` ns on a core whose foreground work takes the share `u`, and on which `q` ns of
//! background work wait, is done after about `(q + w) / (1 - u)`: background work drains in what
//! foreground work leaves. It also delays the foreground requests that arrive meanwhile, about
//! `u * w` of them a nanosecond, by a slice; moving it costs a message and cold caches. The sum of
//! the three is compared over a few cores: where the task arose, where the last one went, the least
//! used one and two random idle ones, the better of which is almost as good as the best of all
//! (Mitzenmacher, *The Power of Two Choices in Randomized Load Balancing*, 2001), at a cost that
//! does not grow with the number of cores.

use crate::idle_group::IdleGroup;
use crate::monitor::Window;

/// Costs of moving and of waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Time that moving a task to another core takes of both together, nanoseconds.
    pub move_ns: f64,
    /// Weight of the delay of foreground work against the wait of background work.
    pub foreground_weight: f64,
    /// Part of the cost of the core chosen last by which another must be better, from 0 to 1.
    pub hysteresis: f64,
}

impl Default for Cost {
    fn default() -> Self {
        Self { move_ns: 2_000.0, foreground_weight: 4.0, hysteresis: 0.1 }
    }
}

/// A core always has at least this share for background work: it yields, and is not starved.
const SHARE_MIN: f64 = 0.02;

/// The choice by cost, with the core that tasks of each core went to last.
#[derive(Clone, Debug)]
pub struct Adaptive {
    cost: Cost,
    chosen: Vec<usize>,
}

impl Adaptive {
    /// Returns the choice for this number of cores: tasks stay where they arise at first.
    #[must_use]
    pub fn new(cores: usize, cost: Cost) -> Self {
        Self { cost, chosen: (0..cores).collect() }
    }

    /// Returns the core for a task of `work_ns` that arose on core `origin`. `queued_ns` gives the
    /// background work that waits on a core now.
    pub fn choose(
        &mut self,
        origin: usize,
        work_ns: u64,
        group: &IdleGroup,
        window: &Window,
        queued_ns: impl Fn(usize) -> u64,
        random: u64,
    ) -> usize {
        let cores = window.cores();
        let cost = |core: usize| {
            let used = window.utilisation[core];
            let work = as_f64(work_ns);
            let wait = (as_f64(queued_ns(core)) + work) / (1.0 - used).max(SHARE_MIN);
            let moved = if core == origin { 0.0 } else { self.cost.move_ns };
            wait + self.cost.foreground_weight * used * work + moved
        };
        let last = self.chosen[origin];
        let last_cost = cost(last);
        let mut best = (last, last_cost);
        // Two random numbers out of one.
        let any = |random: u64| {
            let index = (u128::from(random) * cores as u128) >> 64;
            group.pick(random).or_else(|| usize::try_from(index).ok()).unwrap_or(origin)
        };
        let (first, second) = (any(random), any(random.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        for core in [origin, group.least_used(), first, second] {
            let cost = cost(core);
            if cost < best.1 {
                best = (core, cost);
            }
        }
        let is_better = best.1 < last_cost * (1.0 - self.cost.hysteresis);
        let core = if is_better { best.0 } else { last };
        self.chosen[origin] = core;
        core
    }
}

#[expect(clippy::cast_precision_loss, reason = "costs need no more than 52 bits")]
fn as_f64(ns: u64) -> f64 {
    ns as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK_NS: u64 = 10_000;

    struct Cores {
        adaptive: Adaptive,
        group: IdleGroup,
        window: Window,
    }

    impl Cores {
        fn new(utilisation: &[f64]) -> Self {
            let is_active = utilisation.iter().map(|share| *share > 0.0).collect();
            let window = Window { is_active, utilisation: utilisation.to_vec() };
            let mut group = IdleGroup::default();
            group.rebuild(&window);
            let adaptive = Adaptive::new(utilisation.len(), Cost::default());
            Self { adaptive, group, window }
        }

        fn choose(&mut self, origin: usize, queued_ns: &[u64], random: u64) -> usize {
            self.adaptive.choose(
                origin,
                WORK_NS,
                &self.group,
                &self.window,
                |core| queued_ns[core],
                random,
            )
        }
    }

    #[test]
    fn a_task_leaves_a_busy_core_for_an_idle_one() {
        let mut cores = Cores::new(&[0.8, 0.7, 0.0, 0.6]);
        assert_eq!(cores.choose(0, &[0; 4], 1), 2);
    }

    #[test]
    fn it_stays_where_moving_costs_more_than_it_saves() {
        let mut cores = Cores::new(&[0.02, 0.0]);
        assert_eq!(cores.choose(0, &[0; 2], 1), 0);
        let mut equals = Cores::new(&[0.9; 6]);
        for random in 0..50 {
            assert_eq!(equals.choose(3, &[0; 6], random << 58), 3);
        }
    }

    #[test]
    fn work_that_waits_counts() {
        let mut cores = Cores::new(&[0.8, 0.0, 0.0]);
        let queued = [0, 5_000_000, 0];
        let chosen: Vec<_> = (0..8).map(|random| cores.choose(0, &queued, random << 61)).collect();
        assert!(!chosen.contains(&1), "{chosen:?}");
        assert_eq!(chosen[7], 2);
    }

    /// Two cores whose queues differ by less than the hysteresis do not swap tasks.
    #[test]
    fn small_differences_change_nothing() {
        let mut cores = Cores::new(&[0.9, 0.0, 0.0]);
        let first = cores.choose(0, &[0; 3], 1);
        let other = 3 - first;
        let mut queued = [0; 3];
        for (here, there) in [(1_000, 0), (0, 500), (900, 100)] {
            (queued[first], queued[other]) = (here, there);
            for random in 0..20 {
                assert_eq!(cores.choose(0, &queued, random << 59), first);
            }
        }
    }
}
