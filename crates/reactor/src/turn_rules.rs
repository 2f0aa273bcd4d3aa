//! [`TurnRules`]: when a core's loop polls its back end, and when tasks that yield have their turn.
//! The real loop and the simulated one follow the same rules.

use crate::ready::Ready;

/// Time for the tasks of a class that yields between two checks for foreground tasks, ns; a task
/// that is being polled may overrun it.
pub(crate) const SLICE_NS: u64 = 10_000;

/// Tasks may keep themselves ready without end, so the back end is polled at least every this many
/// turns, and after a turn that ended this long after the last poll.
const TURNS_PER_POLL: u32 = 8;
const POLL_NS: u64 = 10_000;

/// The state of the rules from one turn to the next.
#[derive(Debug, Default)]
pub(crate) struct TurnRules {
    /// Turns since the back end was polled, and when that was, ns.
    turns_since_poll: u32,
    polled_ns: u64,
    /// True if the last turn deferred tasks that yield for foreground ones.
    others_wait: bool,
}

impl TurnRules {
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

    /// Returns true if tasks that yield wait for the next turn: a foreground task is ready, and
    /// they did not wait in the last one.
    pub(crate) fn others_wait(&mut self, ready: &Ready) -> bool {
        let prompt = ready.prompt();
        let others = ready.all() > prompt;
        self.others_wait = others && prompt > 0 && !self.others_wait;
        self.others_wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_end_is_polled_after_some_turns_or_some_time_of_work() {
        let mut rules = TurnRules::default();
        rules.polled(5_000);
        let due: Vec<bool> = (1..=8).map(|turn| rules.poll_is_due(Some(5_000 + turn))).collect();
        assert_eq!(due, [false, false, false, false, false, false, false, true]);
        rules.polled(6_000);
        assert!(!rules.poll_is_due(Some(6_000 + POLL_NS - 1)));
        // A turn that polled no task took no time worth counting.
        assert!(!rules.poll_is_due(None));
        assert!(rules.poll_is_due(Some(6_000 + POLL_NS)));
    }
}
