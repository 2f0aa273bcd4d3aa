//! Memory for data that a host is granted to send, as one connection takes it.
//!
//! It does not hold the data, nor does it say how fast a host must send it: that is the
//! connection's `watch`. Invariants: a connection holds at most `GRANTS_BYTES_MAX` of what all
//! connections share, and [`FLOOR_BYTES`] that are its own; both rights are kept until the command
//! has ended.
//!
//! What k slow hosts can do to another host's transfer of at most [`FLOOR_BYTES`] is nothing,
//! whatever they hold and for how long: only the connection's own commands take of its floor, and
//! these wait for each other alone, in order. A longer transfer waits in line for the shared pool.
//! Every other connection in the pool either moves its data at a pace at which all that it holds
//! comes within the time after which hosts give a command up, or is closed by its watch, which
//! looks twice in ten seconds. So the line moves on after at most ten seconds, and k hosts that
//! send next to nothing delay a long transfer by at most ten seconds for each time that they fill
//! the pool before it in the line.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use csd_reactor::{Permit, Semaphore};

use super::budget::{Budget, FLOOR_BYTES};

/// Most bytes of granted data that a connection's commands hold, whatever state they are in.
const GRANTS_BYTES_MAX: u32 = 16 << 20;
/// Unit in which they are counted.
const UNIT_BYTES: u32 = 4096;

/// The rights of a command to the memory of its data: the connection's, and the core's.
pub type Lent = (Permit, Permit);

/// What one connection may hold.
pub struct Lender {
    grants: Semaphore,
    floor: Semaphore,
}

fn units(bytes: u32) -> usize {
    bytes.div_ceil(UNIT_BYTES) as usize
}

impl Default for Lender {
    fn default() -> Self {
        let semaphore = |bytes| Semaphore::new(units(bytes));
        Self { grants: semaphore(GRANTS_BYTES_MAX), floor: semaphore(FLOOR_BYTES) }
    }
}

impl Lender {
    /// Waits for memory for `bytes` bytes: of the floor if they fit there, else of the pool.
    pub async fn lend(&self, budget: &Budget, bytes: u32) -> Lent {
        let pool = async { (self.own(bytes).await, budget.grant(bytes).await) };
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
    pub async fn own(&self, bytes: u32) -> Permit {
        self.grants.acquire(units(bytes.min(GRANTS_BYTES_MAX))).await
    }
}
