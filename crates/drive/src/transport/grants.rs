//! The memory that one connection may hold: for data that its host is granted to send (R2T), and
//! for answers that are being read.
//!
//! Does not say how fast a host must send; that is the connection's `watch`. Invariants: a
//! connection holds at most `GRANTS_BYTES_MAX` of the pool that all connections share, and
//! [`FLOOR_BYTES`] of its own; a command holds both rights until it has ended.
//!
//! k slow hosts cannot delay another host's transfer of at most [`FLOOR_BYTES`]: only the
//! connection's own commands take of its floor, and they wait for each other in order. A longer
//! transfer waits in line for the shared pool. Every other connection in the pool either moves its
//! data fast enough to finish within the time after which hosts give a command up, or is closed by
//! its watch, which looks twice in ten seconds. So the line moves on after at most ten seconds, and
//! k hosts that send next to nothing delay a long transfer by at most ten seconds for each time
//! that they fill the pool before it in the line.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use csd_reactor::{Semaphore, SemaphorePermit};

use super::budget::{Budget, FLOOR_BYTES};
use super::transfer::{Transfer, Transfers};

/// Most bytes of granted data that a connection's commands hold, whatever state they are in.
const GRANTS_BYTES_MAX: u32 = 16 << 20;
/// Most bytes that a connection's commands hold for answers being read; one piece each at least.
const ANSWERS_BYTES_MAX: u32 = 4 << 20;
/// Unit of the semaphores in bytes.
const UNIT_BYTES: u32 = 4096;

/// The rights of a command to the memory of its data: of the connection, and of the core.
pub type Granted = (SemaphorePermit, SemaphorePermit);

/// The grants of one connection.
pub struct Grants {
    pool: Semaphore,
    floor: Semaphore,
    answers: Semaphore,
    transfers: Transfers,
    received_bytes: Cell<usize>,
}

fn units(bytes: u32) -> usize {
    bytes.div_ceil(UNIT_BYTES) as usize
}

impl Default for Grants {
    fn default() -> Self {
        let semaphore = |bytes| Semaphore::new(units(bytes));
        Self {
            pool: semaphore(GRANTS_BYTES_MAX),
            floor: semaphore(FLOOR_BYTES),
            answers: semaphore(ANSWERS_BYTES_MAX),
            transfers: Transfers::default(),
            received_bytes: Cell::new(0),
        }
    }
}

impl Grants {
    /// Waits for memory for `bytes` bytes: of the floor if they fit there, else of the pool.
    pub async fn acquire(&self, budget: &Budget, bytes: u32) -> Granted {
        let pool = async { (self.acquire_own(bytes).await, budget.grant(bytes).await) };
        if bytes > FLOOR_BYTES {
            return pool.await;
        }
        let floor = async { (self.floor.acquire(units(bytes)).await, budget.floor(bytes).await) };
        let (mut floor, mut pool) = (pin!(floor), pin!(pool));
        poll_fn(|cx| match floor.as_mut().poll(cx) {
            Poll::Pending => pool.as_mut().poll(cx),
            ready => ready,
        })
        .await
    }

    /// Waits for this connection's share of memory that is counted elsewhere.
    pub async fn acquire_own(&self, bytes: u32) -> SemaphorePermit {
        self.pool.acquire(units(bytes.min(GRANTS_BYTES_MAX))).await
    }

    /// Waits for the right to hold `bytes` bytes of an answer. A longer answer than the connection
    /// may hold takes all of that.
    pub async fn acquire_answer(&self, bytes: u64) -> SemaphorePermit {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(ANSWERS_BYTES_MAX);
        self.answers.acquire(units(bytes)).await
    }

    /// Begins a transfer of `bytes` bytes under a tag that was just granted.
    pub(super) fn begin(&self, ttag: u16, bytes: u32) -> Rc<Transfer> {
        self.transfers.begin(ttag, bytes)
    }

    /// Copies received data to its place in a transfer.
    pub fn fill(&self, ttag: u16, offset: u32, bytes: &[u8]) {
        self.note_received(bytes.len());
        self.transfers.fill(ttag, offset, bytes);
    }

    /// Calls `visit` with the place for data of a transfer: from `offset` on, at most `most` bytes
    /// and not beyond one piece.
    pub fn with_slice<T>(
        &self,
        ttag: u16,
        offset: u32,
        most: usize,
        visit: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        self.transfers.with_slice(ttag, offset, most, visit)
    }

    /// Notes the end of a PDU of a transfer. The last one ends the transfer.
    pub fn end(&self, ttag: u16, complete: bool, digest_matches: bool) {
        self.transfers.end(ttag, complete, digest_matches);
    }

    /// Notes granted data that was received.
    pub fn note_received(&self, bytes: usize) {
        self.received_bytes.set(self.received_bytes.get() + bytes);
    }

    /// Returns the bytes of granted data that were received since the last call.
    pub fn take_received(&self) -> usize {
        self.received_bytes.take()
    }

    /// Returns the number of the oldest grant whose data is not complete.
    pub fn oldest(&self) -> Option<u64> {
        self.transfers.oldest()
    }

    /// Returns the bytes of all grants whose data is not complete.
    pub fn bytes(&self) -> usize {
        self.transfers.bytes()
    }

    /// Returns true when no granted data is outstanding.
    pub fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// Drops all transfers: the host is gone and sends no more data.
    pub fn clear(&self) {
        self.transfers.clear();
    }
}
