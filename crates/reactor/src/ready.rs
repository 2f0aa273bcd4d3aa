//! A core's tasks that are to be polled: those of hosts and upkeep apart from background ones.
//!
//! Never decides whose turn it is: the loop in `runtime` does. Invariant: of one kind, the task that
//! became ready first comes first.

use std::collections::VecDeque;

use crate::core::Class;
use crate::task::TaskKey;

/// Tasks that are to be polled, oldest first.
#[derive(Default)]
pub(crate) struct Ready {
    /// Of hosts and upkeep.
    prompt: VecDeque<TaskKey>,
    background: VecDeque<TaskKey>,
}

impl Ready {
    pub(crate) fn push(&mut self, key: TaskKey) {
        match key.class {
            Class::Foreground | Class::System => self.prompt.push_back(key),
            Class::Background => self.background.push_back(key),
        }
    }

    /// The one at `position`, counted through the prompt ones first.
    pub(crate) fn take(&mut self, position: usize) -> Option<TaskKey> {
        match position.checked_sub(self.prompt.len()) {
            None => self.prompt.remove(position),
            Some(position) => self.background.remove(position),
        }
    }

    /// How many there are.
    pub(crate) fn all(&self) -> usize {
        self.prompt() + self.background()
    }

    /// How many of hosts and upkeep there are.
    pub(crate) fn prompt(&self) -> usize {
        self.prompt.len()
    }

    /// How many of [`Class::Background`] there are.
    pub(crate) fn background(&self) -> usize {
        self.background.len()
    }
}
