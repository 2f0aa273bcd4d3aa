//! One sync for many: those who ask while one runs share the next.
//!
//! Invariant: whoever asks is answered by a sync that began after the asking. After a failure
//! every answer is a failure.

use std::cell::{Cell, RefCell};

use csd_reactor::Notify;

use super::Media;
use crate::error::MediaError;

/// The syncs of one core.
pub struct Syncer {
    media: Media,
    begun: Cell<u64>,
    finished: Cell<u64>,
    running: Cell<bool>,
    failure: RefCell<Option<MediaError>>,
    done: Notify,
}

impl Syncer {
    /// For this medium.
    pub fn new(media: Media) -> Self {
        Self {
            media,
            begun: Cell::new(0),
            finished: Cell::new(0),
            running: Cell::new(false),
            failure: RefCell::new(None),
            done: Notify::new(),
        }
    }

    /// Waits until a sync that begins from now on has ended.
    ///
    /// # Errors
    /// When it failed, or an earlier one did.
    pub async fn sync(&self) -> Result<(), MediaError> {
        if self.media.forgets_anyway() {
            return Ok(());
        }
        let target = self.begun.get() + 1;
        while self.finished.get() < target {
            if let Some(error) = &*self.failure.borrow() {
                return Err(error.clone());
            }
            if self.running.get() {
                self.done.notified().await;
            } else {
                self.run().await;
            }
        }
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// True once a sync has failed.
    pub fn failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    async fn run(&self) {
        // Whoever runs the sync may be dropped at its await: the guard hands over to a waiter.
        let guard = Running(self);
        self.running.set(true);
        self.begun.set(self.begun.get() + 1);
        let number = self.begun.get();
        let result = self.media.sync().await;
        if let Err(error) = result {
            *self.failure.borrow_mut() = Some(error);
        }
        self.finished.set(number);
        drop(guard);
    }
}

struct Running<'a>(&'a Syncer);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.set(false);
        self.0.done.notify_all();
    }
}
