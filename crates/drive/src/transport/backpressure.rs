//! Backpressure of a connection: a command waits for space before it reads the bytes that it will
//! send.
//!
//! Invariant: a command whose host is gone stops waiting ([`super::host_presence::HostPresence`]).

use csd_reactor::SemaphorePermit;

use super::link::Link;

/// Queued bytes at which commands that send data wait.
const QUEUED_BYTES_MAX: usize = 1 << 20;

impl Link {
    /// Returns true while so much is queued that no more should be received.
    pub fn is_congested(&self) -> bool {
        self.is_full() || self.must_wait()
    }

    pub(super) fn is_full(&self) -> bool {
        self.outgoing.borrow().queued_bytes() >= QUEUED_BYTES_MAX
    }

    /// Returns true when the memory for answers is used up and this connection holds some of it.
    fn must_wait(&self) -> bool {
        let own = !self.outgoing.borrow().is_empty() || self.reserved.get() > 0;
        own && self.budget.is_congested()
    }

    /// Waits until a command may queue data.
    pub async fn wait_for_space(&self) {
        while self.is_full() {
            self.host.there(self.space.notified()).await;
        }
    }

    /// Waits until there is memory for `bytes` bytes of an answer. The caller acquires it before it
    /// reads the bytes, and holds it until they are queued.
    pub async fn reserve(&self, bytes: u64) -> Reserved<'_> {
        while self.must_wait() {
            self.host.there(self.space.notified()).await;
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.reserved.set(self.reserved.get() + bytes);
        self.budget.answer(bytes);
        Reserved { link: self, bytes }
    }

    /// Waits for the connection's right to hold `bytes` bytes of an answer. The caller acquires it
    /// before it reads the bytes, and holds it until they are queued.
    pub async fn acquire_answer(&self, bytes: u64) -> SemaphorePermit {
        self.host.there(self.grants.acquire_answer(bytes)).await
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
        // Nothing was queued, so no later send wakes the commands that wait.
        if link.outgoing.borrow().is_empty() {
            link.space.notify_all();
        }
    }
}
