//! Commands in flight by identifier, and tickets, through which waiting tasks get their answers.
//!
//! There are two tables, because an identifier is free again as soon as the drive has answered, but
//! the answer stays until its task fetches it. Once warm, neither allocates. Invariant: a ticket is
//! taken, then answered or abandoned, then free again.

use std::task::{Poll, Waker};

use csd_reactor::{Buffer, Instant, SemaphorePermit};

use super::{Ended, Reply};
use crate::Error;

/// One command in flight.
pub(super) struct InFlight {
    /// Name, for errors.
    pub(super) what: &'static str,
    /// Ticket of the waiting task; `None` if its future was dropped.
    pub(super) ticket: Option<u32>,
    /// Data for the drive.
    pub(super) payload: Vec<Buffer>,
    /// Buffer for data from the drive.
    pub(super) data: Buffer,
    /// Bytes of the payload that are due to be sent and have not been.
    pub(super) unsent: u32,
    /// True if the capsule's head has been sent.
    pub(super) sent: bool,
    /// Start time.
    pub(super) started: Instant,
    /// Queue entry, released when the command has ended.
    #[allow(dead_code)] // held for its destructor
    pub(super) permit: Option<SemaphorePermit>,
}

/// Commands in flight by identifier.
pub(super) struct Commands(Vec<Option<InFlight>>);

impl Commands {
    pub(super) fn new(entries: u16) -> Self {
        Self((0..entries).map(|_| None).collect())
    }

    pub(super) fn insert(&mut self, cid: u16, command: InFlight) {
        self.0[usize::from(cid)] = Some(command);
    }

    /// Returns a command in flight; the queue has checked every identifier that a drive sent.
    pub(super) fn get(&mut self, cid: u16) -> &mut InFlight {
        self.0[usize::from(cid)].as_mut().expect("the queue knows the command as in flight")
    }

    pub(super) fn find(&self, cid: u16) -> Option<&InFlight> {
        self.0.get(usize::from(cid))?.as_ref()
    }

    pub(super) fn remove(&mut self, cid: u16) -> InFlight {
        self.0[usize::from(cid)].take().expect("the queue knows the command as in flight")
    }

    /// Copies data into a command's buffer; the queue has checked that it lies within.
    pub(super) fn store(&mut self, cid: u16, offset: u32, bytes: &[u8]) {
        let offset = offset as usize;
        self.get(cid).data[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Returns the oldest command in flight.
    pub(super) fn oldest(&self) -> Option<&InFlight> {
        self.0.iter().flatten().min_by_key(|command| command.started)
    }

    /// Takes out every command.
    pub(super) fn drain(&mut self) -> Vec<InFlight> {
        self.0.iter_mut().filter_map(Option::take).collect()
    }
}

/// State of a waiting task.
enum Ticket {
    Free,
    Waiting { cid: u16, waker: Option<Waker> },
    Answered(Result<Reply, Error>, Vec<Buffer>),
}

/// Tickets of the waiting tasks.
#[derive(Default)]
pub(super) struct Tickets {
    all: Vec<Ticket>,
    free: Vec<u32>,
}

impl Tickets {
    /// Returns a ticket for the command that is about to be sent as `cid`.
    pub(super) fn take(&mut self, cid: u16) -> u32 {
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.all.push(Ticket::Free);
            u32::try_from(self.all.len() - 1).expect("fewer than 2^32 answers fit in memory")
        });
        self.all[ticket as usize] = Ticket::Waiting { cid, waker: None };
        ticket
    }

    /// Stores the answer, with the payload of a command that none came to, and wakes the task that
    /// waits for it.
    pub(super) fn give(&mut self, ticket: u32, reply: Result<Reply, Error>, unsent: Vec<Buffer>) {
        let answered = Ticket::Answered(reply, unsent);
        let waiting = std::mem::replace(&mut self.all[ticket as usize], answered);
        if let Ticket::Waiting { waker: Some(waker), .. } = waiting {
            waker.wake();
        }
    }

    /// Takes the answer, or waits for it.
    pub(super) fn poll(&mut self, ticket: u32, waker: &Waker) -> Poll<Ended> {
        let slot = &mut self.all[ticket as usize];
        match slot {
            Ticket::Waiting { waker: Some(known), .. } => known.clone_from(waker),
            Ticket::Waiting { waker: none, .. } => *none = Some(waker.clone()),
            Ticket::Answered(..) => {
                let Ticket::Answered(reply, payload) = std::mem::replace(slot, Ticket::Free) else {
                    unreachable!("matched just above");
                };
                self.free.push(ticket);
                return Poll::Ready((reply, payload));
            }
            Ticket::Free => unreachable!("a future gives its ticket up when it is answered"),
        }
        Poll::Pending
    }

    /// Returns the identifier of a ticket's command while that is in flight.
    pub(super) fn cid(&self, ticket: u32) -> Option<u16> {
        match self.all[ticket as usize] {
            Ticket::Waiting { cid, .. } => Some(cid),
            _ => None,
        }
    }

    /// Abandons a ticket; returns its command's identifier if that is still in flight.
    pub(super) fn abandon(&mut self, ticket: u32) -> Option<u16> {
        self.free.push(ticket);
        match std::mem::replace(&mut self.all[ticket as usize], Ticket::Free) {
            Ticket::Waiting { cid, .. } => Some(cid),
            _ => None,
        }
    }
}
