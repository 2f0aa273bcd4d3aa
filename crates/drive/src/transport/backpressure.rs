//! Backpressure of a connection: a command waits for space before it reads the bytes that it will
//! send.
//!
//! Invariants: a command whose host is gone stops waiting
//! ([`super::host_presence::HostPresence`]); one whose PDU has begun waits for bytes to be sent
//! only, because all others wait for the rest of the PDU.

use csd_reactor::SemaphorePermit;

use super::link::Link;

/// Queued bytes at which commands that send data wait.
const QUEUED_BYTES_MAX: usize = 256 << 10;
/// Queued bytes of capsules at which a host that takes no answers is heard no more. The capsules of
/// a full queue are much shorter.
const CAPSULE_BYTES_MAX: usize = 64 << 10;

impl Link {
    /// Notes bytes that were sent, and wakes commands that wait for space.
    pub fn sent(&self, bytes: usize) {
        self.sent_bytes.set(self.sent_bytes.get() + bytes);
        self.budget.answered(bytes);
        if self.outgoing.borrow().ready_bytes() < QUEUED_BYTES_MAX {
            self.space.notify_all();
        }
    }

    /// Returns true while so much is queued that no more should be received.
    pub fn is_congested(&self) -> bool {
        self.is_full() || self.must_wait()
    }

    pub(super) fn is_full(&self) -> bool {
        self.outgoing.borrow().queued_bytes() >= QUEUED_BYTES_MAX
    }

    /// Returns true when the memory for answers is used up and this connection holds some of it.
    pub(super) fn must_wait(&self) -> bool {
        let own = self.outgoing.borrow().queued_bytes() > 0 || self.reserved.get() > 0;
        own && self.budget.is_congested()
    }

    /// Returns true while there are few capsules in the queue: a host that takes no answers may
    /// still be heard.
    pub(super) fn has_few_capsules(&self) -> bool {
        self.outgoing.borrow().small_bytes() < CAPSULE_BYTES_MAX
    }

    /// Waits until a command may queue data.
    pub async fn wait_for_space(&self) {
        while self.is_full() {
            self.host.there(self.space.notified()).await;
        }
    }

    /// Waits until the command whose PDU is next, or has begun, may queue a part of it.
    pub(super) async fn wait_for_part(&self) {
        loop {
            let ready = self.outgoing.borrow().ready_bytes();
            if ready < QUEUED_BYTES_MAX && (ready == 0 || !self.budget.is_congested()) {
                return;
            }
            self.host.there(self.space.notified()).await;
        }
    }

    /// Waits until there is memory for `bytes` bytes of an answer. The caller acquires it before it
    /// reads the bytes, and holds it until they are queued.
    pub async fn reserve(&self, bytes: u64) -> Reserved<'_> {
        while self.must_wait() {
            self.host.there(self.space.notified()).await;
        }
        self.take(bytes)
    }

    /// Takes memory for `bytes` bytes of an answer without waiting.
    pub(super) fn take(&self, bytes: u64) -> Reserved<'_> {
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
        if link.outgoing.borrow().ready_bytes() == 0 {
            link.space.notify_all();
        }
    }
}
