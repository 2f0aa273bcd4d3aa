//! Synchronisation: [`Notify`], [`Semaphore`] and [`channel`] between tasks of one core,
//! [`Barrier`] between cores; [`Pacer`] limits a rate.
//!
//! Those between tasks of one core are `!Send`: they take no locks and do not cross threads.
//! Invariant: waiters are served in the order in which they first waited.

mod barrier;
pub mod channel;
mod notify;
mod pacer;
mod semaphore;

pub use barrier::{Barrier, Broken};
pub use notify::{Notified, Notify};
pub use pacer::{Pacer, transfer_time};
pub use semaphore::{Acquire, Semaphore, SemaphorePermit};

use std::collections::VecDeque;
use std::task::Waker;

/// Waiters in order, each with a ticket.
#[derive(Default)]
struct WaitList {
    waiting: VecDeque<(u64, Waker)>,
    tickets: u64,
}

impl WaitList {
    /// Waits under `ticket`, or under a new one at the end of the queue.
    fn wait(&mut self, ticket: &mut Option<u64>, waker: &Waker) {
        if let Some(ticket) = *ticket
            && let Some((_, known)) = self.waiting.iter_mut().find(|(other, _)| *other == ticket)
        {
            known.clone_from(waker);
            return;
        }
        self.tickets += 1;
        *ticket = Some(self.tickets);
        self.waiting.push_back((self.tickets, waker.clone()));
    }

    /// Leaves the queue. Returns false if the waiter was served or never queued.
    fn leave(&mut self, ticket: u64) -> bool {
        let position = self.waiting.iter().position(|(other, _)| *other == ticket);
        position.is_some_and(|position| self.waiting.remove(position).is_some())
    }

    fn next(&mut self) -> Option<Waker> {
        self.waiting.pop_front().map(|(_, waker)| waker)
    }
}
