//! The part of a core that other threads may touch: its mailbox, its list of woken tasks, its
//! notifier.
//!
//! This module runs no messages: the owner takes them out with [`Shared::take`]. Invariants: a
//! message is taken once; after [`Shared::close`] none is accepted; between two sleeps of the owner
//! there is at most one notification (one write to an eventfd).

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::Notifier;
use crate::class::Class;
use crate::task::TaskKey;

/// A closure on its way to another core.
pub(crate) struct Message {
    pub(crate) class: Class,
    pub(crate) run: Box<dyn FnOnce() + Send>,
}

/// The part of a core that is shared between threads.
pub(crate) struct Shared {
    inbox: Mutex<Inbox>,
    /// Set after something entered the inbox; cleared before it is taken out.
    pending: AtomicBool,
    /// Set while the owner waits in its back end; the thread that clears it notifies the owner.
    sleeping: AtomicBool,
    closed: AtomicBool,
    notifier: Box<dyn Notifier>,
}

/// Messages and woken tasks, in order of arrival.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(crate) messages: Vec<Message>,
    pub(crate) woken: Vec<TaskKey>,
}

impl Shared {
    pub(crate) fn new(notifier: Box<dyn Notifier>) -> Self {
        Self {
            inbox: Mutex::default(),
            pending: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            notifier,
        }
    }

    /// Delivers all messages at once, in order. Drops them if the core is gone; each message's
    /// destructor informs its sender.
    pub(crate) fn deliver(&self, messages: &mut Vec<Message>) {
        let mut inbox = self.lock();
        if self.is_closed() {
            drop(inbox);
            messages.clear();
            return;
        }
        inbox.messages.append(messages);
        drop(inbox);
        self.announce();
    }

    /// Delivers one message; drops it if the core is gone, as [`Self::deliver`] does.
    pub(crate) fn deliver_one(&self, message: Message) {
        let mut inbox = self.lock();
        if self.is_closed() {
            drop(inbox);
            drop(message);
            return;
        }
        inbox.messages.push(message);
        drop(inbox);
        self.announce();
    }

    /// Records that another thread woke a task.
    pub(crate) fn wake_task(&self, key: TaskKey) {
        let mut inbox = self.lock();
        if self.is_closed() {
            return;
        }
        inbox.woken.push(key);
        drop(inbox);
        self.announce();
    }

    /// Makes the owner run its loop once more.
    pub(crate) fn announce(&self) {
        // Both stores and the owner's matching pair in `before_park` are sequentially consistent:
        // either we see that it sleeps, or it sees that something is pending.
        self.pending.store(true, SeqCst);
        if self.sleeping.load(SeqCst) && self.sleeping.swap(false, SeqCst) {
            self.notifier.notify();
        }
    }

    /// For the owner: swaps the inbox's contents into `into`, which must be empty. Returns false if
    /// there are none.
    pub(crate) fn take(&self, into: &mut Inbox) -> bool {
        if !self.pending.load(SeqCst) {
            return false;
        }
        self.pending.store(false, SeqCst);
        std::mem::swap(&mut *self.lock(), into);
        true
    }

    /// For the owner: returns true if the inbox holds anything.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(SeqCst)
    }

    /// For the owner: announces that it is about to sleep. Returns false if something arrived; the
    /// owner must not sleep then.
    pub(crate) fn before_park(&self) -> bool {
        self.sleeping.store(true, SeqCst);
        if self.is_pending() {
            self.sleeping.store(false, SeqCst);
            return false;
        }
        true
    }

    /// For the owner: announces that it is awake.
    pub(crate) fn after_park(&self) {
        self.sleeping.store(false, SeqCst);
    }

    /// For the owner: refuses further messages; returns the unread ones.
    pub(crate) fn close(&self) -> Inbox {
        let mut inbox = self.lock();
        self.closed.store(true, SeqCst);
        std::mem::take(&mut *inbox)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Locks the inbox. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    struct Counted(Arc<AtomicUsize>);

    impl Notifier for Counted {
        fn notify(&self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn a_batch_of_messages_wakes_a_sleeping_core_once() {
        let count = Arc::new(AtomicUsize::new(0));
        let shared = Shared::new(Box::new(Counted(Arc::clone(&count))));
        let message = || Message { class: Class::Foreground, run: Box::new(|| {}) };
        shared.deliver_one(message());
        assert_eq!(count.load(SeqCst), 0, "it does not sleep");
        let mut inbox = Inbox::default();
        assert!(!shared.before_park() && shared.take(&mut inbox));
        for sleeps in 1..=3 {
            assert!(shared.before_park());
            (0..100).for_each(|_| shared.deliver_one(message()));
            assert_eq!(count.load(SeqCst), sleeps);
            shared.after_park();
            inbox.messages.clear();
            assert!(shared.take(&mut inbox) && inbox.messages.len() == 100);
        }
    }
}
