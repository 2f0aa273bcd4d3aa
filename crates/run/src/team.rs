//! [`Team`]: tasks that end with the future that started them, also when that future is dropped.

use std::collections::VecDeque;

use csd_reactor::{Class, JoinHandle, spawn};

/// Tasks of one kind; those that still run are aborted when it is dropped.
pub(crate) struct Team<T>(VecDeque<JoinHandle<T>>);

impl<T> Default for Team<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: 'static> Team<T> {
    /// Starts a task.
    pub(crate) fn add(&mut self, task: impl Future<Output = T> + 'static) {
        self.0.push_back(spawn(Class::Foreground, task));
    }

    /// Returns the number of tasks that [`Self::next`] has not returned.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Waits for the task that was started first; `None` when all have been waited for.
    pub(crate) async fn next(&mut self) -> Option<T> {
        let first = self.0.front_mut()?;
        let done = first.await;
        self.0.pop_front();
        Some(done)
    }
}

impl<T> Drop for Team<T> {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
