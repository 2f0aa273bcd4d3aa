//! [`Ends`]: the end of a shard's log in the current epoch and in the one before.
//!
//! Invariant: the end of an epoch is noted before a group of a later one is begun, and does not
//! change after that.

use std::cell::Cell;

use csd_reactor::sync::Notify;

use crate::mark::Position;

/// Ends of one shard's log.
#[derive(Default)]
pub(crate) struct Ends {
    // Behind the last group that was written.
    written: Cell<Position>,
    // The epoch that the shard is in, and the end of the log in the one before.
    epoch: Cell<u64>,
    before: Cell<Position>,
    is_writing: Cell<bool>,
    changed: Notify,
}

impl Ends {
    /// Begins at an end that recovery has found.
    pub(crate) fn recovered(&self, end: Position) {
        self.written.set(end);
    }

    /// Returns the end behind the last group that was written.
    pub(crate) fn written(&self) -> Position {
        self.written.get()
    }

    /// Begins to write a group of an epoch.
    pub(crate) fn begin(&self, epoch: u64) {
        self.enter(epoch);
        self.is_writing.set(true);
    }

    /// Ends writing a group, which was written up to `end`; `None` when it failed.
    pub(crate) fn end(&self, end: Option<Position>) {
        if let Some(end) = end {
            self.written.set(end);
        }
        self.is_writing.set(false);
        self.changed.notify_all();
    }

    /// Returns the end of the log in an epoch that has ended, as soon as no group of it is being
    /// written.
    pub(crate) async fn in_epoch(&self, epoch: u64) -> Position {
        while self.epoch.get() <= epoch && self.is_writing.get() {
            self.changed.notified().await;
        }
        self.enter(epoch + 1);
        self.before.get()
    }

    fn enter(&self, epoch: u64) {
        if self.epoch.get() < epoch {
            self.before.set(self.written.get());
            self.epoch.set(epoch);
        }
    }
}
