//! A core's ready tasks: prompt ones (foreground and system) apart from background ones.
//!
//! The loop in `runtime` decides which task runs next. Invariants: tasks of one kind run in the
//! order in which they became ready; nothing stays borrowed when a method returns.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::class::Class;
use crate::task::TaskKey;

/// Ready tasks, oldest first.
#[derive(Default)]
pub(crate) struct Ready {
    /// Foreground and system tasks.
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

    /// Takes out the task at `position`, counted through the prompt ones first.
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

    /// Returns the number of ready tasks.
    pub(crate) fn all(&self) -> usize {
        self.prompt() + self.background()
    }

    /// Returns the number of ready foreground and system tasks.
    pub(crate) fn prompt(&self) -> usize {
        self.prompt.borrow().len()
    }

    /// Returns the number of ready [`Class::Background`] tasks.
    pub(crate) fn background(&self) -> usize {
        self.background.borrow().len()
    }
}
