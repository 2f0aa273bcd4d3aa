//! [`Link`]: the state that a connection's loop and its commands share.
//!
//! It owns the transport's state machine, the queue of outgoing bytes and the session. It does not
//! touch the socket. Invariants: pieces leave in the order in which they were pushed; an R2T is
//! sent only when buffers for its data exist.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use csd_nvme::capsule::Cqe;
use csd_nvme::controller::queue::{Permit, Queue};
use csd_nvme::status::Status;
use csd_nvme::tcp::controller::Connection as Wire;
use csd_reactor::{Buffer, Class, Notify, Semaphore};

use super::auth_gate::AuthGate;
use super::budget::{Budget, CapsuleCharge};
use super::cause::Cause;
use super::grants::Grants;
use super::host_presence::HostPresence;
use super::outgoing::Outgoing;
use super::session::Session;
use crate::controller::Association;
use crate::limits::TRANSPORT;
use crate::side::Side;

/// Headroom that a buffer of data needs before it, whatever the alignment asked for.
pub const HEADROOM: usize = 256;
/// Tailroom for the data digest.
pub const TAILROOM: usize = 4;

/// Bytes that moved since the last look, and bytes that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Motion {
    /// Bytes of granted data that were received.
    pub received: usize,
    /// Bytes that were sent.
    pub sent: usize,
    /// Number of the oldest grant whose data is not complete.
    pub granted: Option<u64>,
    /// Bytes of all such grants.
    pub granted_bytes: usize,
    /// Bytes that wait to be sent, and for nothing else.
    pub queued: usize,
}

/// Facts about a connection that are known when it is accepted.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Number of the connection; unique on its drive.
    pub number: u64,
    /// Side that it comes from.
    pub side: Side,
    /// True if the drive already has as many connections as it takes: Connect says so.
    pub surplus: bool,
}

/// Shared state of one connection.
pub struct Link {
    /// Number of the connection; unique on its drive.
    pub number: u64,
    /// Side that the connection comes from.
    pub side: Side,
    /// State machine of the transport.
    pub wire: RefCell<Wire>,
    /// Queue of bytes to send.
    pub outgoing: RefCell<Outgoing>,
    /// Session: admin queue, I/O queue, or not connected yet.
    pub session: RefCell<Session>,
    /// Authentication.
    pub auth: AuthGate,
    /// HostPresence of the host.
    pub host: HostPresence,
    /// Memory that the connection holds.
    pub grants: Grants,
    /// Address that the host connected to.
    pub local: Option<SocketAddr>,
    /// Address that the host connected from.
    pub peer: Option<SocketAddr>,
    pub(super) budget: Rc<Budget>,
    // Wakes commands that wait for space in the queue of outgoing bytes.
    pub(super) space: Notify,
    // Bytes of answers that are being made.
    pub(super) reserved: Cell<usize>,
    // Turn of the commands whose PDU comes in parts.
    pub(super) turns: Semaphore,
    queue: RefCell<Queue>,
    pub(super) sent_bytes: Cell<usize>,
    // Bytes of capsules whose commands are not answered.
    capsules: Rc<Cell<usize>>,
    // True if the drive already has as many connections as it takes: Connect says so.
    surplus: bool,
    ended: Cell<Option<Cause>>,
    // True if the connection ends when everything queued was sent.
    closing: Cell<bool>,
    draining: Cell<bool>,
    // Class to whose tasks the connection belongs, if it yields to those of hosts.
    class: Cell<Option<Class>>,
    // True if the host is another drive.
    of_peer: Cell<bool>,
    // Waker of the loop, for changes that come from outside its turns.
    waker: RefCell<Option<Waker>>,
    in_turn: Cell<bool>,
}

impl Link {
    /// Makes the state of a new connection between our address and the peer's. Connect of a
    /// connection in surplus is refused.
    pub fn new(
        Arrival { number, side, surplus }: Arrival,
        (local, peer): (Option<SocketAddr>, Option<SocketAddr>),
        budget: Rc<Budget>,
    ) -> Self {
        Self {
            number,
            side,
            wire: RefCell::new(Wire::new(TRANSPORT)),
            outgoing: RefCell::default(),
            session: RefCell::new(Session::Unconnected),
            auth: AuthGate::default(),
            host: HostPresence::default(),
            grants: Grants::default(),
            local,
            peer,
            budget,
            space: Notify::new(),
            reserved: Cell::new(0),
            turns: Semaphore::new(1),
            queue: RefCell::new(Queue::unconnected()),
            sent_bytes: Cell::new(0),
            capsules: Rc::default(),
            surplus,
            ended: Cell::new(None),
            closing: Cell::new(false),
            draining: Cell::new(false),
            class: Cell::new(None),
            of_peer: Cell::new(false),
            waker: RefCell::new(None),
            in_turn: Cell::new(false),
        }
    }

    /// Returns the address of the host, or the side without addresses, for the log.
    pub fn peer(&self) -> String {
        match (self.peer, self.side) {
            (Some(peer), _) => peer.to_string(),
            (None, Side::Inside) => self.side.name().to_owned(),
            (None, Side::Outside) => "?".to_owned(),
        }
    }

    /// Returns the connection's queue.
    pub fn queue(&self) -> Queue {
        self.queue.borrow().clone()
    }

    /// Gives the connection the queue that Connect asked for.
    pub fn set_queue(&self, queue: Queue) {
        self.queue.borrow().close();
        *self.queue.borrow_mut() = queue;
    }

    /// Begins a turn of the connection's loop. Until its end the loop sees changes without being
    /// woken.
    pub fn begin_turn(&self, waker: &Waker) {
        self.in_turn.set(true);
        let mut known = self.waker.borrow_mut();
        match &mut *known {
            Some(known) => known.clone_from(waker),
            None => *known = Some(waker.clone()),
        }
    }

    /// Ends the turn: from here on changes wake the loop.
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

    /// Asks the connection's loop to end. The first cause counts.
    pub fn end(&self, cause: Cause) {
        self.ended.set(self.ended.get().or(Some(cause)));
        self.wake();
    }

    /// Returns why the connection must end, once it must.
    pub fn ended(&self) -> Option<Cause> {
        self.ended.get()
    }

    /// Asks the loop to end when everything queued was sent.
    pub fn close_after_flush(&self) {
        self.closing.set(true);
        self.wake();
    }

    /// Returns true when [`Self::close_after_flush`] was called and everything is sent.
    pub fn is_closed_after_flush(&self) -> bool {
        self.closing.get() && self.outgoing.borrow().is_empty()
    }

    /// Makes the connection take no new commands, and close when those it has are answered.
    pub fn drain(&self) {
        self.draining.set(true);
        self.wake();
    }

    /// Returns true once no new commands are taken.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Notes that the connection carries packets of the tunnel: from here on its work yields to
    /// that of other connections.
    pub fn carry_tunnel(&self) {
        self.class.set(Some(Class::Tunnel));
    }

    /// Notes that the host is another drive: from here on its work yields to that of hosts.
    pub fn serve_peer(&self) {
        self.of_peer.set(true);
        self.class.set(Some(Class::Execution));
    }

    /// Returns true if the host is another drive.
    pub fn is_of_peer(&self) -> bool {
        self.of_peer.get()
    }

    /// Returns the class of the connection's task if it yields to those of hosts.
    pub fn yields(&self) -> Option<Class> {
        self.class.get()
    }

    /// Returns true for the connection of an admin queue.
    pub fn is_admin(&self) -> bool {
        matches!(*self.session.borrow(), Session::Admin(_))
    }

    /// Returns true while capsules of this and other connections hold so much memory that no more
    /// should be received, unless it is granted data.
    pub fn is_full_of_capsules(&self) -> bool {
        self.budget.is_full_of_capsules() && self.capsules.get() > 0 && self.grants.is_empty()
    }

    /// Charges a command's in-capsule data to the core's budget for as long as the command runs.
    pub fn charge_capsule(&self, bytes: usize) -> Option<CapsuleCharge> {
        (bytes > 0).then(|| CapsuleCharge::new(&self.budget, &self.capsules, bytes))
    }

    /// Returns true when the drive has as many connections as it takes without this one.
    pub fn is_surplus(&self) -> bool {
        self.surplus
    }

    /// Returns true while others wait for memory of which this connection may hold a part.
    pub fn others_wait(&self) -> bool {
        self.budget.is_waited_for() || self.budget.is_congested()
    }

    /// Returns the bytes that moved since the last call.
    pub fn motion(&self) -> Motion {
        Motion {
            received: self.grants.take_received(),
            sent: self.sent_bytes.take(),
            granted: self.grants.oldest(),
            granted_bytes: self.grants.bytes(),
            queued: self.outgoing.borrow().ready_bytes(),
        }
    }

    /// Queues a whole PDU.
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

    /// Queues the next part of a command's C2HData PDU; the first one begins with its header. Only
    /// the command whose turn it is may queue one that is not the `last`.
    pub(super) fn push_part(&self, part: Buffer, is_whole: bool, last: bool) {
        self.budget.answer(part.len());
        let mut outgoing = self.outgoing.borrow_mut();
        if is_whole {
            outgoing.push_large(part)
        } else {
            outgoing.push_part(part, last)
        }
        drop(outgoing);
        self.wake();
    }

    /// Ends a command whose data was queued: with a response, unless the data was `told` to take
    /// its place.
    pub fn finish_data(&self, permit: Permit, result: u64, told: bool) {
        let cqe = permit.complete(Status::SUCCESS, result);
        if !told {
            self.respond(&cqe);
        }
    }

    /// Returns the controller of the connection's queue.
    pub fn association(&self) -> Option<Arc<Association>> {
        self.session.borrow().association().map(Arc::clone)
    }

    /// Receives `bytes` bytes of a command's data by transfer (R2T), in pieces of 128 KiB.
    ///
    /// # Errors
    /// [`Status::TRANSIENT_TRANSPORT_ERROR`] when a data digest did not hold.
    pub async fn receive(&self, cid: u16, bytes: u32) -> Result<Vec<Buffer>, Status> {
        let (ttag, r2t) = self.wire.borrow_mut().grant(cid, 0, bytes);
        let transfer = self.grants.begin(ttag, bytes);
        self.push(&r2t);
        self.host.there(transfer.whole()).await
    }

    /// Notes that the host is gone: nothing more is received.
    pub fn disconnect(&self) {
        self.host.leave();
        self.grants.clear();
    }

    /// Drops the bytes that are queued.
    pub fn forget_outgoing(&self) {
        self.budget.answered(self.outgoing.take().queued_bytes());
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.forget_outgoing();
    }
}
