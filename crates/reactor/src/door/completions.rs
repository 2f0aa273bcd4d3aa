//! [`Completions`]: answers in a queue whose eventfd is readable while it holds any.
//!
//! For programs with an event loop of their own: they poll the descriptor and drain the queue.
//! Invariants: an answer leaves the queue once, in order of completion; an answer that enters an
//! empty queue makes the descriptor readable, and one write covers all that follow until the queue
//! is drained.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Process, Unanswered};
use crate::backend::Notifier;
use crate::backend::os::EventFd;

/// A queue of answers; clones are the same queue. See the module's text.
pub struct Completions<T>(Arc<Queue<T>>);

struct Queue<T> {
    done: Mutex<VecDeque<T>>,
    event: EventFd,
    process: Process,
}

impl<T> Clone for Completions<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Send> Completions<T> {
    /// Returns an empty queue.
    ///
    /// # Errors
    /// If the process may open no more descriptors.
    pub fn new() -> io::Result<Self> {
        let event = EventFd::new()?;
        let process = Process::current();
        Ok(Self(Arc::new(Queue { done: Mutex::default(), event, process })))
    }

    /// Adds an answer, from any thread.
    pub fn push(&self, answer: T) {
        let mut done = self.lock();
        let was_empty = done.is_empty();
        done.push_back(answer);
        drop(done);
        if was_empty {
            self.0.event.notify();
        }
    }

    /// Takes out at most `most` answers, oldest first. The descriptor stays readable while more are
    /// there; it may be readable once more when there are none.
    ///
    /// # Errors
    /// [`Unanswered::Forked`].
    pub fn drain(&self, most: usize) -> Result<Vec<T>, Unanswered> {
        self.0.process.check()?;
        let mut done = self.lock();
        let count = most.min(done.len());
        let taken: Vec<T> = done.drain(..count).collect();
        if done.is_empty() {
            // Under the lock: an answer that arrives now notifies after this.
            self.0.event.clear();
        }
        Ok(taken)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.0.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> AsFd for Completions<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
