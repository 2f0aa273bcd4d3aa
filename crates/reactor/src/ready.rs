//! A core's ready tasks: prompt ones (foreground and system), then those that yield to them, by
//! class.
//!
//! The loop in `runtime` decides which task runs next. Invariants: tasks of one kind run in the
//! order in which they became ready; nothing stays borrowed when a method returns; `all` is the
//! number of tasks in all queues.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::class::Class;
use crate::task::TaskKey;

/// Classes of the tasks that yield, in the order of their queues.
pub(crate) const YIELDING: [Class; 3] = [Class::Tunnel, Class::Execution, Class::Service];

/// Ready tasks by kind, oldest first.
#[derive(Default)]
pub(crate) struct Ready {
    queues: [RefCell<VecDeque<TaskKey>>; 1 + YIELDING.len()],
    all: Cell<usize>,
}

/// Returns the queue of a class: the first one is that of prompt tasks.
fn queue_of(class: Class) -> usize {
    YIELDING.iter().position(|yielding| *yielding == class).map_or(0, |at| at + 1)
}

impl Ready {
    pub(crate) fn push(&self, key: TaskKey) {
        self.queues[queue_of(key.class)].borrow_mut().push_back(key);
        self.all.set(self.all.get() + 1);
    }

    /// Takes out the task at `position`, counted through the queues in their order.
    pub(crate) fn take(&self, mut position: usize) -> Option<TaskKey> {
        for queue in &self.queues {
            let mut queue = queue.borrow_mut();
            if position < queue.len() {
                self.all.set(self.all.get() - 1);
                return queue.remove(position);
            }
            position -= queue.len();
        }
        None
    }

    pub(crate) fn clear(&self) {
        self.queues.iter().for_each(|queue| queue.borrow_mut().clear());
        self.all.set(0);
    }

    /// Returns the number of ready tasks.
    pub(crate) fn all(&self) -> usize {
        self.all.get()
    }

    /// Returns the number of ready foreground and system tasks.
    pub(crate) fn prompt(&self) -> usize {
        self.queues[0].borrow().len()
    }

    /// Returns the number of ready tasks of a class that yields, and the position of the first.
    pub(crate) fn yielding(&self, class: Class) -> (usize, usize) {
        let queue = queue_of(class);
        let before = self.queues[..queue].iter().map(|queue| queue.borrow().len()).sum();
        (self.queues[queue].borrow().len(), before)
    }
}
