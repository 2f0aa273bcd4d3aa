//! [`Scheduler`]: a core for each background task, by the policy in force.

use crate::adaptive::{Adaptive, Cost};
use crate::idle_group::IdleGroup;
use crate::monitor::Window;
use crate::policy::Policy;
use crate::threshold::Threshold;

/// A background task that needs a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Core on which it arose.
    pub origin: usize,
    /// Time that it is expected to take, nanoseconds.
    pub work_ns: u64,
}

/// Why a core was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The policy keeps every task where it arose.
    Policy,
    /// At random among the idle cores.
    Idle,
    /// No core was idle; this one was the least used.
    LeastUsed,
    /// No core was idle, and none was below the threshold: it stays where it arose.
    NoneBelowThreshold,
    /// Waiting, delay of foreground work and moving together cost the least here.
    Cost,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Policy, Self::Idle, Self::LeastUsed, Self::NoneBelowThreshold, Self::Cost];

    /// Returns the number in log pages, from 1.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Returns the reason of a number; `None` if there is none.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.number() == number)
    }

    /// Returns the words for a person.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Policy => "where it arose",
            Self::Idle => "idle, at random",
            Self::LeastUsed => "least used",
            Self::NoneBelowThreshold => "none below the threshold",
            Self::Cost => "lowest cost",
        }
    }
}

/// A core for a task, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Core that does the task.
    pub core: usize,
    /// Why.
    pub reason: Reason,
}

/// Chooses cores by a policy, which may be changed at any time.
#[derive(Clone, Debug)]
pub struct Scheduler {
    policy: Policy,
    threshold: Option<Threshold>,
    /// The threshold's value in the latest window.
    limit: f64,
    window: Window,
    group: IdleGroup,
    adaptive: Adaptive,
}

impl Scheduler {
    /// Returns a scheduler of cores that are idle.
    ///
    /// # Panics
    /// If there are no cores.
    #[must_use]
    pub fn new(policy: Policy, cores: usize, threshold: Option<Threshold>, cost: Cost) -> Self {
        assert!(cores > 0, "tasks run on cores");
        let window = Window::idle(cores);
        let mut group = IdleGroup::default();
        group.rebuild(&window);
        let adaptive = Adaptive::new(cores, cost);
        Self { policy, threshold, limit: 0.0, window, group, adaptive }
    }

    /// Returns the policy in force.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Puts another policy in force, from the next decision on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Takes over what a monitor saw. The idle group is that of this window until the next call.
    ///
    /// # Panics
    /// If the window has another number of cores.
    pub fn observe(&mut self, window: &Window) {
        assert_eq!(window.cores(), self.window.cores(), "cores do not change");
        self.window.clone_from(window);
        self.group.rebuild(window);
        self.limit = self.threshold.map_or(f64::INFINITY, |threshold| threshold.of(window));
    }

    /// Returns the idle group in force.
    #[must_use]
    pub fn group(&self) -> &IdleGroup {
        &self.group
    }

    /// Returns the window in force.
    #[must_use]
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Chooses the core for a task. `queued_ns` gives the background work in nanoseconds that waits
    /// on a core now; `random` is uniform over all its values.
    ///
    /// # Panics
    /// If the task arose on a core that does not exist.
    pub fn choose(
        &mut self,
        task: Task,
        queued_ns: impl Fn(usize) -> u64,
        random: u64,
    ) -> Decision {
        match self.policy {
            Policy::Inline | Policy::Local => {
                Decision { core: task.origin, reason: Reason::Policy }
            }
            Policy::Bts => self.choose_idle(task, random),
            Policy::Adaptive => {
                let Task { origin, work_ns } = task;
                let (group, window) = (&self.group, &self.window);
                let core = self.adaptive.choose(origin, work_ns, group, window, queued_ns, random);
                Decision { core, reason: Reason::Cost }
            }
        }
    }

    fn choose_idle(&self, task: Task, random: u64) -> Decision {
        if let Some(core) = self.group.pick(random) {
            return Decision { core, reason: Reason::Idle };
        }
        let core = self.group.least_used();
        if self.window.utilisation[core] < self.limit {
            Decision { core, reason: Reason::LeastUsed }
        } else {
            Decision { core: task.origin, reason: Reason::NoneBelowThreshold }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduler(policy: Policy, threshold: Option<Threshold>, utilisation: &[f64]) -> Scheduler {
        let mut scheduler = Scheduler::new(policy, utilisation.len(), threshold, Cost::default());
        let is_active = utilisation.iter().map(|share| *share > 0.0).collect();
        scheduler.observe(&Window { is_active, utilisation: utilisation.to_vec() });
        scheduler
    }

    #[test]
    fn reasons_have_numbers_from_one_on() {
        assert_eq!(Reason::ALL.map(Reason::number), [1, 2, 3, 4, 5]);
        assert_eq!(Reason::ALL.map(|one| Reason::of_number(one.number())), Reason::ALL.map(Some));
        assert_eq!((Reason::of_number(0), Reason::of_number(6)), (None, None));
    }

    const TASK: Task = Task { origin: 1, work_ns: 50_000 };

    fn choose(scheduler: &mut Scheduler, random: u64) -> Decision {
        scheduler.choose(TASK, |_| 0, random)
    }

    #[test]
    fn inline_and_local_keep_every_task_where_it_arose() {
        for policy in [Policy::Inline, Policy::Local] {
            let mut scheduler = scheduler(policy, None, &[0.0, 1.0, 0.0]);
            let decision = Decision { core: 1, reason: Reason::Policy };
            assert_eq!(choose(&mut scheduler, 0), decision);
        }
    }

    /// "Randomly selects one core from G ... if G is not empty. Otherwise, ... the core with the
    /// lowest utilization" (Park et al., section IV.A).
    #[test]
    fn bts_picks_an_idle_core_else_the_least_used() {
        let mut some_idle = scheduler(Policy::Bts, None, &[0.5, 0.4, 0.0, 0.0]);
        let picked = [0, u64::MAX].map(|random| choose(&mut some_idle, random));
        assert_eq!(picked.map(|decision| decision.core), [2, 3]);
        assert!(picked.iter().all(|decision| decision.reason == Reason::Idle));
        let mut none_idle = scheduler(Policy::Bts, None, &[0.5, 0.4, 0.3]);
        let decision = choose(&mut none_idle, 9);
        assert_eq!(decision, Decision { core: 2, reason: Reason::LeastUsed });
    }

    #[test]
    fn a_threshold_keeps_tasks_where_they_arose_when_all_cores_are_busy() {
        let threshold = Some(Threshold::default());
        let mut all_busy = scheduler(Policy::Bts, threshold, &[0.9; 4]);
        let decision = choose(&mut all_busy, 9);
        assert_eq!(decision, Decision { core: 1, reason: Reason::NoneBelowThreshold });
        let mut one_stands_out = scheduler(Policy::Bts, threshold, &[0.9, 0.9, 0.1, 0.9]);
        let decision = choose(&mut one_stands_out, 9);
        assert_eq!(decision, Decision { core: 2, reason: Reason::LeastUsed });
    }

    #[test]
    fn a_policy_is_changed_from_one_decision_to_the_next() {
        let mut scheduler = scheduler(Policy::Local, None, &[0.9, 0.9, 0.0]);
        assert_eq!(choose(&mut scheduler, 0).core, 1);
        for policy in [Policy::Bts, Policy::Adaptive] {
            scheduler.set_policy(policy);
            assert_eq!(choose(&mut scheduler, 0).core, 2);
        }
        scheduler.set_policy(Policy::Local);
        assert_eq!(choose(&mut scheduler, 0).core, 1);
    }

    proptest::proptest! {
        #[test]
        fn every_decision_names_a_core(
            policy in 0..4_usize,
            utilisation in proptest::collection::vec(-1.0..2.0, 1..70),
            queued in proptest::num::u64::ANY,
            work_ns in proptest::num::u64::ANY,
            random in proptest::num::u64::ANY,
        ) {
            let cores = utilisation.len();
            let mut scheduler =
                scheduler(Policy::ALL[policy], Some(Threshold::default()), &utilisation);
            let task = Task { origin: cores - 1, work_ns };
            let decision = scheduler.choose(task, |core| queued >> (core % 64), random);
            proptest::prop_assert!(decision.core < cores);
        }
    }
}
