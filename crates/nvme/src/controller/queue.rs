//! State of a queue on the drive's side: command identifiers in flight, head pointer, and the
//! permit that answers a command exactly once.
//!
//! Invariants: a command identifier is in flight at most once; dropping a [`Permit`] unanswered
//! while its queue is open is a bug of ours and panics. [`Permit::forget`] is for requests that
//! their host has dropped; only an Asynchronous Event Request can be.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::capsule::Cqe;
use crate::fabrics::{CATTR_NO_FLOW_CONTROL, Connect};
use crate::status::Status;

#[derive(Debug)]
struct State {
    qid: u16,
    entries: u16,
    flow_control: bool,
    open: Cell<bool>,
    head: Cell<u16>,
    outstanding: Cell<u16>,
    // One bit per command identifier.
    in_flight: RefCell<Vec<u64>>,
}

/// One submission queue with its completion queue.
#[derive(Clone, Debug)]
pub struct Queue(Rc<State>);

/// Reason to refuse a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its identifier is in flight: answer with [`Status::COMMAND_ID_CONFLICT`].
    Conflict,
    /// The host has more commands outstanding than the queue has entries: close the connection.
    Overflow,
}

impl Queue {
    /// Returns the queue before Connect: admin, two entries, so that only Connect fits.
    pub fn unconnected() -> Self {
        Self::with(0, 2, true)
    }

    /// Returns the queue that a checked Connect command asks for.
    pub fn of(connect: &Connect) -> Self {
        let flow_control = connect.cattr() & CATTR_NO_FLOW_CONTROL == 0;
        Self::with(connect.qid(), connect.sqsize().saturating_add(1), flow_control)
    }

    fn with(qid: u16, entries: u16, flow_control: bool) -> Self {
        Self(Rc::new(State {
            qid,
            entries,
            flow_control,
            open: Cell::new(true),
            head: Cell::new(0),
            outstanding: Cell::new(0),
            in_flight: RefCell::new(vec![0; 1 << 10]),
        }))
    }

    /// Returns the queue id; 0 is the admin queue.
    pub fn qid(&self) -> u16 {
        self.0.qid
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> u16 {
        self.0.entries
    }

    /// Returns the number of commands begun and not yet answered.
    pub fn outstanding(&self) -> u16 {
        self.0.outstanding.get()
    }

    /// Returns true if data may carry the SUCCESS flag in place of a response capsule: only then
    /// does the host not need the head pointer of one.
    pub fn may_skip_response(&self) -> bool {
        !self.0.flow_control
    }

    /// Begins a command.
    ///
    /// # Errors
    /// [`Refusal`] when the identifier is in flight or the queue overflows.
    pub fn begin(&self, cid: u16) -> Result<Permit, Refusal> {
        let state = &self.0;
        let head = state.head.get() + 1;
        state.head.set(if head >= state.entries { 0 } else { head });
        self.admit(cid)
    }

    /// Begins a command that was refused with [`Refusal::Conflict`], once the earlier command of
    /// that identifier is forgotten ([`Permit::forget`]).
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn admit(&self, cid: u16) -> Result<Permit, Refusal> {
        let state = &self.0;
        if state.outstanding.get() >= state.entries {
            return Err(Refusal::Overflow);
        }
        let (word, bit) = (usize::from(cid >> 6), 1u64 << (cid & 63));
        let mut in_flight = state.in_flight.borrow_mut();
        if in_flight[word] & bit != 0 {
            return Err(Refusal::Conflict);
        }
        in_flight[word] |= bit;
        state.outstanding.set(state.outstanding.get() + 1);
        Ok(Permit { cid, queue: self.clone(), answered: false })
    }

    /// Returns a completion for a command that was refused with [`Refusal::Conflict`].
    pub fn conflict(&self, cid: u16) -> Cqe {
        self.completion(cid, Status::COMMAND_ID_CONFLICT, 0)
    }

    /// Closes the queue after its connection has ended; permits may then be dropped.
    pub fn close(&self) {
        self.0.open.set(false);
    }

    fn completion(&self, cid: u16, status: Status, result: u64) -> Cqe {
        let mut cqe = Cqe::zeroed();
        let head = if self.0.flow_control { self.0.head.get() } else { 0xFFFF };
        cqe.set_result(result).set_sqhd(head).set_sqid(0).set_cid(cid).set_status(status);
        cqe
    }
}

/// The right, and the duty, to answer one command.
#[derive(Debug)]
pub struct Permit {
    cid: u16,
    queue: Queue,
    answered: bool,
}

impl Permit {
    /// Returns the command identifier.
    pub fn cid(&self) -> u16 {
        self.cid
    }

    /// Returns the queue the command came from.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Answers the command: returns the completion to send, and ends the permit.
    pub fn complete(mut self, status: Status, result: u64) -> Cqe {
        self.answered = true;
        self.release();
        self.queue.completion(self.cid, status, result)
    }

    /// Drops the command unanswered: its host has forgotten it.
    pub fn forget(mut self) {
        self.answered = true;
        self.release();
    }

    fn release(&self) {
        let state = &self.queue.0;
        let (word, bit) = (usize::from(self.cid >> 6), 1u64 << (self.cid & 63));
        state.in_flight.borrow_mut()[word] &= !bit;
        state.outstanding.set(state.outstanding.get() - 1);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let excused = self.answered || !self.queue.0.open.get() || std::thread::panicking();
        assert!(excused, "command {} never answered", self.cid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(entries: u16, cattr: u8) -> Queue {
        let mut connect = Connect::zeroed();
        connect.set_qid(1).set_sqsize(entries - 1).set_cattr(cattr);
        Queue::of(&connect)
    }

    #[test]
    fn an_identifier_is_in_flight_once() {
        let queue = queue(4, 0);
        let permit = queue.begin(7).unwrap();
        assert_eq!(queue.begin(7).err(), Some(Refusal::Conflict));
        assert_eq!(queue.conflict(7).status(), Status::COMMAND_ID_CONFLICT);
        assert_eq!(permit.complete(Status::SUCCESS, 5).result(), 5);
        let again = queue.begin(7).unwrap();
        assert_eq!(again.complete(Status::SUCCESS, 0).status(), Status::SUCCESS);
        assert_eq!(queue.outstanding(), 0);
    }

    #[test]
    fn a_forgotten_command_gives_its_identifier_up_and_the_head_counts_commands() {
        let queue = queue(4, 0);
        let request = queue.begin(3).unwrap();
        assert_eq!(queue.begin(3).err(), Some(Refusal::Conflict));
        request.forget();
        let cqe = queue.admit(3).unwrap().complete(Status::SUCCESS, 0);
        assert_eq!((cqe.sqhd(), queue.outstanding()), (2, 0));
    }

    #[test]
    fn the_head_pointer_wraps_and_is_unused_without_flow_control() {
        let queue = queue(2, 0);
        let heads: Vec<u16> = (0..4u16)
            .map(|cid| queue.begin(cid).unwrap().complete(Status::SUCCESS, 0).sqhd())
            .collect();
        assert_eq!(heads, [1, 0, 1, 0]);
        let free = super::tests::queue(2, CATTR_NO_FLOW_CONTROL);
        assert!(free.may_skip_response());
        assert_eq!(free.begin(1).unwrap().complete(Status::SUCCESS, 0).sqhd(), 0xFFFF);
    }

    #[test]
    fn a_full_queue_overflows() {
        let queue = queue(2, 0);
        let permits: Vec<Permit> = (0..2).map(|cid| queue.begin(cid).unwrap()).collect();
        assert_eq!(queue.begin(9).err(), Some(Refusal::Overflow));
        queue.close();
        drop(permits);
    }

    #[test]
    #[should_panic(expected = "command 3 never answered")]
    fn an_unanswered_command_is_our_bug() {
        let queue = queue(4, 0);
        drop(queue.begin(3).unwrap());
    }
}
