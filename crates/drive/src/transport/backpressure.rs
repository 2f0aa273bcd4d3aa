//! Room for answers: a command waits for it before it reads the bytes that it will send.
//!
//! It does not send. Invariant: a command whose host is gone waits no more ([`super::Presence`]).

use csd_reactor::Permit as Held;

use super::{ANSWERS_BYTES_MAX, Link, UNIT_BYTES};

/// Commands that send data wait while this much is queued.
const QUEUED_BYTES_MAX: usize = 1 << 20;

impl Link {
    pub(super) fn is_full(&self) -> bool {
        self.outgoing.borrow().queued_bytes() >= QUEUED_BYTES_MAX
    }

    /// True when the memory for answers is used up and a part of it is this connection's.
    pub(super) fn must_wait(&self) -> bool {
        let own = !self.outgoing.borrow().is_empty() || self.reserved.get() > 0;
        own && self.budget.is_congested()
    }

    /// Waits until a command may queue data.
    pub async fn room(&self) {
        while self.is_full() {
            self.host.there(self.room.notified()).await;
        }
    }

    /// Waits until there is memory for `bytes` bytes of an answer: before they are read, and kept
    /// until they are queued.
    pub async fn reserve(&self, bytes: u64) -> Reserved<'_> {
        while self.must_wait() {
            self.host.there(self.room.notified()).await;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.reserved.set(self.reserved.get() + bytes);
        self.budget.answer(bytes);
        Reserved { link: self, bytes }
    }

    /// Waits for the right to hold `bytes` bytes of an answer (one that is longer than all that
    /// may be held has it for itself): taken before the bytes are read, kept until they are queued.
    pub async fn answer(&self, bytes: u64) -> Held {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(ANSWERS_BYTES_MAX);
        self.host.there(self.answers.acquire(bytes.div_ceil(UNIT_BYTES) as usize)).await
    }
}

/// Memory for a piece of an answer, from before it is read until it is queued.
pub struct Reserved<'a> {
    link: &'a Link,
    bytes: usize,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let link = self.link;
        link.reserved.set(link.reserved.get() - self.bytes);
        link.budget.answered(self.bytes);
        // Nothing was queued, so nothing that is sent will wake who waits.
        if link.outgoing.borrow().is_empty() {
            link.room.notify_all();
        }
    }
}
