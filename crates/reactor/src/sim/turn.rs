//! [`Turn`]: which task a simulated core polls next, by the rules of the real loop.
//!
//! A turn polls the foreground and system tasks that were ready when it began; then, if the back
//! end is due or none of them is ready, the tasks of each class that yields, for up to a slice. The
//! simulation reads messages and fires timers between any two polls, which a real core does once a
//! turn: it meets more orders, never fewer.

use std::ops::Range;

use crate::ready::{Ready, YIELDING};
use crate::turn_rules::{SLICE_NS, TurnRules};

/// The position of a core's loop in its turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    rules: TurnRules,
    /// Position in [`YIELDING`] of the class whose slice it is; `None` for foreground and system.
    yielding: Option<usize>,
    /// Tasks that this part of the turn may still poll.
    left: usize,
    /// End of the slice, ns.
    until_ns: u64,
}

impl Turn {
    /// Returns the positions in [`Ready`]'s order of the tasks one of which is polled now.
    ///
    /// # Panics
    /// If no task is ready.
    pub(crate) fn next(&mut self, ready: &Ready, now_ns: u64) -> Range<usize> {
        assert!(ready.all() > 0, "a core without ready tasks polls none");
        loop {
            let Some(index) = self.yielding else {
                let prompt = ready.prompt();
                if self.left > 0 && prompt > 0 {
                    self.left -= 1;
                    return 0..prompt;
                }
                self.end_prompt(ready, now_ns);
                continue;
            };
            let Some(class) = YIELDING.get(index) else {
                (self.yielding, self.left) = (None, ready.prompt());
                continue;
            };
            let (count, first) = ready.yielding(*class);
            if self.left > 0 && count > 0 && now_ns < self.until_ns {
                self.left -= 1;
                return first..first + count;
            }
            self.begin_slice(index + 1, ready, now_ns);
        }
    }

    /// Goes on after the foreground and system tasks: with the next turn, or with the first slice.
    fn end_prompt(&mut self, ready: &Ready, now_ns: u64) {
        let prompt = ready.prompt();
        if prompt > 0 && !self.rules.poll_is_due(Some(now_ns)) {
            self.left = prompt;
            return;
        }
        self.rules.polled(now_ns);
        if self.rules.others_wait(ready) {
            self.left = prompt;
        } else {
            self.begin_slice(0, ready, now_ns);
        }
    }

    fn begin_slice(&mut self, index: usize, ready: &Ready, now_ns: u64) {
        self.yielding = Some(index);
        self.left = YIELDING.get(index).map_or(0, |class| ready.yielding(*class).0);
        self.until_ns = now_ns.saturating_add(SLICE_NS);
    }
}
