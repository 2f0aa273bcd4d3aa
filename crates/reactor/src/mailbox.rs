//! What other threads may touch of a core: its mailbox, its list of woken tasks, its wake-up call.
//!
//! Never runs anything: the owner takes messages out with [`Shared::take`]. Invariants: a message is
//! taken once; after [`Shared::close`] none is accepted; between two sleeps of the owner at most
//! one wake-up call (one write to an eventfd) is made.

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
    /// Set while the owner waits in its back end; whoever clears it rings the notifier.
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

    /// Delivers all messages at once, in order. Drops them if the core is gone: a message's
    /// destructor tells its sender.
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

    /// Notes that a task was woken by another thread.
    pub(crate) fn wake_task(&self, key: TaskKey) {
        let mut inbox = self.lock();
        if self.is_closed() {
            return;
        }
        inbox.woken.push(key);
        drop(inbox);
        self.announce();
    }

    /// Makes the owner go through its loop once more.
    pub(crate) fn announce(&self) {
        // Both stores and the owner's matching pair in `before_park` are sequentially consistent: either
        // we see that it sleeps, or it sees that something is pending.
        self.pending.store(true, SeqCst);
        if self.sleeping.load(SeqCst) && self.sleeping.swap(false, SeqCst) {
            self.notifier.notify();
        }
    }

    /// Owner: swaps the inbox's contents into `into`, which must be empty. False if there are none.
    pub(crate) fn take(&self, into: &mut Inbox) -> bool {
        if !self.pending.load(SeqCst) {
            return false;
        }
        self.pending.store(false, SeqCst);
        std::mem::swap(&mut *self.lock(), into);
        true
    }

    /// Owner: whether the inbox holds anything.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(SeqCst)
    }

    /// Owner: announces that it goes to sleep. False if something came in: do not sleep then.
    pub(crate) fn before_park(&self) -> bool {
        self.sleeping.store(true, SeqCst);
        if self.is_pending() {
            self.sleeping.store(false, SeqCst);
            return false;
        }
        true
    }

    /// Owner: is awake again.
    pub(crate) fn after_park(&self) {
        self.sleeping.store(false, SeqCst);
    }

    /// Owner: accepts no more mail; hands back what had not been read.
    pub(crate) fn close(&self) -> Inbox {
        let mut inbox = self.lock();
        self.closed.store(true, SeqCst);
        std::mem::take(&mut *inbox)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// No code that can panic runs under this lock, so a poisoned one is still in order.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
