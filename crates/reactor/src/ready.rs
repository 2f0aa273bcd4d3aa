//! A core's tasks that are to be polled: those of hosts and upkeep apart from background ones.
//!
//! Never decides whose turn it is: the loop in `runtime` does. Invariants: of one kind, the task
//! that became ready first comes first; nothing stays borrowed when a method returns.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::class::Class;
use crate::task::TaskKey;

/// Tasks that are to be polled, oldest first.
#[derive(Default)]
pub(crate) struct Ready {
    /// Of hosts and upkeep.
    prompt: RefCell<VecDeque<TaskKey>>,
    background: RefCell<VecDeque<TaskKey>>,
}

impl Ready {
    pub(crate) fn push(&self, key: TaskKey) {
        let queue = match key.class {
            Class::Foreground | Class::System => &self.prompt,
            Class::Background => &self.background,
        };
        queue.borrow_mut().push_back(key);
    }

    /// The one at `position`, counted through the prompt ones first.
    pub(crate) fn take(&self, position: usize) -> Option<TaskKey> {
        match position.checked_sub(self.prompt()) {
            None => self.prompt.borrow_mut().remove(position),
            Some(position) => self.background.borrow_mut().remove(position),
        }
    }

    pub(crate) fn clear(&self) {
        self.prompt.borrow_mut().clear();
        self.background.borrow_mut().clear();
    }

    /// How many there are.
    pub(crate) fn all(&self) -> usize {
        self.prompt() + self.background()
    }

    /// How many of hosts and upkeep there are.
    pub(crate) fn prompt(&self) -> usize {
        self.prompt.borrow().len()
    }

    /// How many of [`Class::Background`] there are.
    pub(crate) fn background(&self) -> usize {
        self.background.borrow().len()
    }
}
