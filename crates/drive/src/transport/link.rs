//! What a connection's loop and its commands share: the wire's state, what is to be sent, what is
//! being received.
//!
//! Never: the socket. Invariants: pieces leave in the order in which they were pushed; a grant is
//! made only for buffers that are there.

mod room;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use csd_nvme::capsule::Cqe;
use csd_nvme::controller::queue::{Permit, Queue};
use csd_nvme::status::Status;
use csd_nvme::tcp::controller::Connection as Wire;
use csd_reactor::{Buffer, Notify, Semaphore};

use super::auth::Gate;
use super::budget::{Budget, Laden};
use super::lend::Lender;
use super::outgoing::Outgoing;
use super::presence::Presence;
use super::session::Session;
use super::transfer::Transfers;
use super::{LIMITS, PDU_DATA_BYTES_MAX};
use crate::controller::Association;

/// Most bytes that a connection's commands hold for answers being read, a piece at least each.
const ANSWERS_BYTES_MAX: u32 = 4 << 20;
/// Unit in which these are counted.
const UNIT_BYTES: u32 = 4096;
/// Headroom that a buffer of data needs before it, whatever the alignment asked for.
pub const HEADROOM: usize = 256;
/// Tailroom for the data digest.
pub const TAILROOM: usize = 4;

/// What moved since somebody last looked, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Motion {
    /// Bytes of granted data that were received.
    pub received: usize,
    /// Bytes that were sent.
    pub sent: usize,
    /// The oldest grant whose data is not complete.
    pub granted: Option<u64>,
    /// Bytes of all such grants.
    pub granted_bytes: usize,
    /// Bytes that wait to be sent.
    pub queued: usize,
}

/// One connection's shared state.
pub struct Link {
    /// The transport's state machine.
    pub wire: RefCell<Wire>,
    /// What is to be sent.
    pub outgoing: RefCell<Outgoing>,
    /// The session: admin queue, I/O queue, or not connected yet.
    pub session: RefCell<Session>,
    /// Authentication.
    pub gate: Gate,
    /// Whether the host is there.
    pub host: Presence,
    queue: RefCell<Queue>,
    transfers: Transfers,
    room: Notify,
    // Bytes of answers that are being made.
    reserved: Cell<usize>,
    answers: Semaphore,
    /// Memory for granted data.
    pub lender: Lender,
    received_bytes: Cell<usize>,
    sent_bytes: Cell<usize>,
    budget: Rc<Budget>,
    // Bytes of capsules whose commands are not answered.
    capsules: Rc<Cell<usize>>,
    // The drive has as many connections as it may: this one is only told so.
    surplus: bool,
    ended: Cell<bool>,
    // The connection ends when all is sent.
    leaving: Cell<bool>,
    /// The address that the host connected to.
    pub local: Option<SocketAddr>,
    /// The address that it connected from.
    pub peer: Option<SocketAddr>,
    draining: Cell<bool>,
    // The loop's waker, for changes that come from outside its turns.
    waker: RefCell<Option<Waker>>,
    in_turn: Cell<bool>,
}

impl Link {
    /// A connection, between our address and the peer's, on which nothing was received; one that
    /// is in surplus is told so when it connects a queue.
    pub fn new(
        (local, peer): (Option<SocketAddr>, Option<SocketAddr>),
        budget: Rc<Budget>,
        surplus: bool,
    ) -> Self {
        Self {
            budget,
            capsules: Rc::default(),
            surplus,
            wire: RefCell::new(Wire::new(LIMITS)),
            outgoing: RefCell::default(),
            session: RefCell::new(Session::Unconnected),
            gate: Gate::default(),
            host: Presence::default(),
            queue: RefCell::new(Queue::unconnected()),
            transfers: Transfers::default(),
            room: Notify::new(),
            reserved: Cell::new(0),
            answers: Semaphore::new((ANSWERS_BYTES_MAX / UNIT_BYTES) as usize),
            lender: Lender::default(),
            received_bytes: Cell::new(0),
            sent_bytes: Cell::new(0),
            ended: Cell::new(false),
            leaving: Cell::new(false),
            local,
            peer,
            draining: Cell::new(false),
            waker: RefCell::new(None),
            in_turn: Cell::new(false),
        }
    }

    /// The address of the host, for the log.
    pub fn peer(&self) -> String {
        self.peer.map_or_else(|| "?".to_owned(), |peer| peer.to_string())
    }

    /// The connection's queue.
    pub fn queue(&self) -> Queue {
        self.queue.borrow().clone()
    }

    /// Gives the connection the queue that Connect asked for.
    pub fn set_queue(&self, queue: Queue) {
        self.queue.borrow().close();
        *self.queue.borrow_mut() = queue;
    }

    /// The connection's loop begins a turn: what changes now it will see by itself.
    pub fn begin_turn(&self, waker: &Waker) {
        self.in_turn.set(true);
        let mut kept = self.waker.borrow_mut();
        match &mut *kept {
            Some(kept) => kept.clone_from(waker),
            None => *kept = Some(waker.clone()),
        }
    }

    /// The loop's turn is over: changes wake it.
    pub fn end_turn(&self) {
        self.in_turn.set(false);
    }

    fn wake(&self) {
        if !self.in_turn.get()
            && let Some(waker) = &*self.waker.borrow()
        {
            waker.wake_by_ref();
        }
    }

    /// Asks the connection's loop to end.
    pub fn end(&self) {
        self.ended.set(true);
        self.wake();
    }

    /// True once the connection is to end.
    pub fn ended(&self) -> bool {
        self.ended.get()
    }

    /// Asks the loop to end when all that is queued was sent.
    pub fn end_when_sent(&self) {
        self.leaving.set(true);
        self.wake();
    }

    /// True when [`Self::end_when_sent`] was asked for and all is sent.
    pub fn farewell(&self) -> bool {
        self.leaving.get() && self.outgoing.borrow().is_empty()
    }

    /// Has the connection take no new commands, and close once those it has are answered.
    pub fn drain(&self) {
        self.draining.set(true);
        self.wake();
    }

    /// True once no new commands are taken.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// True for the connection of an admin queue.
    pub fn is_admin(&self) -> bool {
        matches!(*self.session.borrow(), Session::Admin(_))
    }

    /// True while so much is queued that no more should be received.
    pub fn is_congested(&self) -> bool {
        self.is_full() || self.must_wait()
    }

    /// True while so much came with commands of this and other connections that no more should be
    /// received, unless it is data that was asked for.
    pub fn is_laden(&self) -> bool {
        self.budget.is_laden() && self.capsules.get() > 0 && self.transfers.is_empty()
    }

    /// Counts a command's in-capsule data for as long as the command runs.
    pub fn laden(&self, bytes: usize) -> Option<Laden> {
        (bytes > 0).then(|| Laden::new(&self.budget, &self.capsules, bytes))
    }

    /// True when the drive has as many connections as it may without this one.
    pub fn is_surplus(&self) -> bool {
        self.surplus
    }

    /// True while others wait for memory of which this connection may hold a part.
    pub fn others_wait(&self) -> bool {
        self.budget.is_waited_for() || self.budget.is_congested()
    }

    /// What moved since this was last asked.
    pub fn motion(&self) -> Motion {
        Motion {
            received: self.received_bytes.take(),
            sent: self.sent_bytes.take(),
            granted: self.transfers.oldest(),
            granted_bytes: self.transfers.bytes(),
            queued: self.outgoing.borrow().queued_bytes(),
        }
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

    /// Notes the end of a PDU of a transfer; with the last one the connection forgets it.
    pub fn transfer_end(&self, ttag: u16, complete: bool, digest_matches: bool) {
        self.transfers.end(ttag, complete, digest_matches);
    }

    /// Notes granted data that was received.
    pub fn note_received(&self, bytes: usize) {
        self.received_bytes.set(self.received_bytes.get() + bytes);
    }

    /// Tells waiting commands that something was sent.
    pub fn sent(&self, bytes: usize) {
        self.sent_bytes.set(self.sent_bytes.get() + bytes);
        self.budget.answered(bytes);
        if !self.is_full() {
            self.room.notify_all();
        }
    }

    /// Queues bytes that stand for themselves.
    pub fn push(&self, bytes: &[u8]) {
        self.outgoing.borrow_mut().push_small(bytes);
        self.budget.answer(bytes.len());
        self.wake();
    }

    /// Answers a command.
    pub fn complete(&self, permit: Permit, status: Status, result: u64) {
        self.respond(&permit.complete(status, result));
    }

    /// Queues a response capsule.
    pub fn respond(&self, cqe: &Cqe) {
        let response = self.wire.borrow().response(cqe);
        self.push(&response);
    }

    /// Queues a C2HData PDU: the buffer is the data, with room before and behind it. The last one
    /// of a successful command without a result may stand for the response.
    pub fn send_data(&self, permit: &Permit, offset: u32, data: Buffer, last: bool, bare: bool) {
        let wire = self.wire.borrow();
        let length = u32::try_from(data.len()).expect("a PDU has at most 128 KiB");
        debug_assert!(length <= PDU_DATA_BYTES_MAX);
        let success = last && bare && permit.queue().may_skip_response();
        let prefix = wire.data_prefix(permit.cid(), offset, length, last, success);
        let digest = wire.encoder().data_digest([&data[..]]);
        drop(wire);
        let mut pdu = data;
        if let Some(digest) = digest {
            pdu.append(digest.len()).copy_from_slice(&digest);
        }
        pdu.prepend(prefix.len()).copy_from_slice(&prefix);
        self.budget.answer(pdu.len());
        self.outgoing.borrow_mut().push_large(pdu);
        self.wake();
    }

    /// Ends a command whose data was sent: with a response, unless the data stood for it.
    pub fn finish_data(&self, permit: Permit, result: u64) {
        let skip = result == 0 && permit.queue().may_skip_response();
        let cqe = permit.complete(Status::SUCCESS, result);
        if !skip {
            self.respond(&cqe);
        }
    }

    /// The controller that the connection is of.
    pub fn association(&self) -> Option<Arc<Association>> {
        self.session.borrow().association().map(Arc::clone)
    }

    /// Receives `bytes` bytes of a command's data by transfer, in pieces of 128 KiB.
    ///
    /// # Errors
    /// [`Status::TRANSIENT_TRANSPORT_ERROR`] when a data digest did not hold.
    pub async fn receive(&self, cid: u16, bytes: u32) -> Result<Vec<Buffer>, Status> {
        let (ttag, r2t) = self.wire.borrow_mut().grant(cid, 0, bytes);
        let transfer = self.transfers.begin(ttag, bytes);
        self.push(&r2t);
        self.host.there(transfer.whole()).await
    }

    /// The host is gone: nothing more is received.
    pub fn part(&self) {
        self.host.leave();
        self.transfers.clear();
    }

    /// Drops what is queued.
    pub fn forget_outgoing(&self) {
        self.budget.answered(self.outgoing.take().queued_bytes());
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.forget_outgoing();
    }
}
