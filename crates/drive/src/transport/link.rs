//! What a connection's loop and its commands share: the wire's state, what is to be sent, what is
//! being received.
//!
//! Never: the socket. Invariants: pieces leave in the order in which they were pushed; a grant is
//! made only for buffers that are there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use csd_nvme::capsule::{Cqe, Sqe};
use csd_nvme::controller::Event;
use csd_nvme::controller::queue::{Permit, Queue};
use csd_nvme::log::ErrorEntry;
use csd_nvme::status::Status;
use csd_nvme::tcp::controller::Connection as Wire;
use csd_reactor::{Acquire, Buffer, Notify, Semaphore};

use super::outgoing::Outgoing;
use super::session::Session;
use super::{LIMITS, PDU_DATA_BYTES_MAX};
use crate::controller::Association;

/// Commands that send data wait while this much is queued.
const QUEUED_BYTES_MAX: usize = 1 << 20;
/// Most bytes that a connection's commands hold for answers being read, a piece at least each.
const ANSWERS_BYTES_MAX: u32 = 4 << 20;
/// Most bytes of granted data that a connection's commands hold, whatever state they are in.
const GRANTS_BYTES_MAX: u32 = 16 << 20;
/// Unit in which these are counted.
const UNIT_BYTES: u32 = 4096;
/// Headroom that a buffer of data needs before it, whatever the alignment asked for.
pub const HEADROOM: usize = 256;
/// Tailroom for the data digest.
pub const TAILROOM: usize = 4;

/// Data that a host was granted to send: shared by the connection, which fills it, and the command,
/// which waits for it. The tag belongs to the connection alone and may be used again as soon as
/// the data is complete, before the command has looked.
#[derive(Default)]
struct Transfer {
    pieces: RefCell<Vec<Buffer>>,
    // A data digest did not hold: fails the command, but only when all of its data has come.
    damaged: Cell<bool>,
    complete: Cell<bool>,
    done: Notify,
    // Counts the connection's grants: tells an old transfer from a new one under its tag.
    number: u64,
}

/// What moved since somebody last looked, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Motion {
    /// Bytes of granted data that were received.
    pub received: usize,
    /// Bytes that were sent.
    pub sent: usize,
    /// The oldest grant whose data is not complete.
    pub granted: Option<u64>,
    /// There is something to send.
    pub sending: bool,
}

/// One connection's shared state.
pub struct Link {
    /// The transport's state machine.
    pub wire: RefCell<Wire>,
    /// What is to be sent.
    pub outgoing: RefCell<Outgoing>,
    /// The session: admin queue, I/O queue, or not connected yet.
    pub session: RefCell<Session>,
    queue: RefCell<Queue>,
    transfers: RefCell<BTreeMap<u16, Rc<Transfer>>>,
    room: Notify,
    answers: Semaphore,
    grants: Semaphore,
    grants_made: Cell<u64>,
    received_bytes: Cell<usize>,
    sent_bytes: Cell<usize>,
    ended: Cell<bool>,
    // The connection ends when all is sent.
    leaving: Cell<bool>,
    /// The address that the host connected to.
    pub local: Option<SocketAddr>,
    draining: Cell<bool>,
    // The loop's waker, for changes that come from outside its turns.
    waker: RefCell<Option<Waker>>,
    in_turn: Cell<bool>,
}

impl Link {
    /// A connection to `local` on which nothing was received.
    pub fn new(local: Option<SocketAddr>) -> Self {
        Self {
            wire: RefCell::new(Wire::new(LIMITS)),
            outgoing: RefCell::default(),
            session: RefCell::new(Session::Unconnected),
            queue: RefCell::new(Queue::unconnected()),
            transfers: RefCell::default(),
            room: Notify::new(),
            answers: Semaphore::new((ANSWERS_BYTES_MAX / UNIT_BYTES) as usize),
            grants: Semaphore::new((GRANTS_BYTES_MAX / UNIT_BYTES) as usize),
            grants_made: Cell::new(0),
            received_bytes: Cell::new(0),
            sent_bytes: Cell::new(0),
            ended: Cell::new(false),
            leaving: Cell::new(false),
            local,
            draining: Cell::new(false),
            waker: RefCell::new(None),
            in_turn: Cell::new(false),
        }
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
        self.outgoing.borrow().queued_bytes() >= QUEUED_BYTES_MAX
    }

    /// Waits until a command may queue data.
    pub async fn room(&self) {
        while self.is_congested() {
            self.room.notified().await;
        }
    }

    /// Waits for the right to hold `bytes` bytes of an answer (one that is longer than all that
    /// may be held has it for itself): taken before the bytes are read, kept until they are queued.
    pub fn answer(&self, bytes: u64) -> Acquire {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(ANSWERS_BYTES_MAX);
        self.answers.acquire(bytes.div_ceil(UNIT_BYTES) as usize)
    }

    /// Waits for the right to hold `bytes` bytes of granted data, likewise, until the command ends.
    pub fn grant(&self, bytes: u32) -> Acquire {
        self.grants.acquire(bytes.min(GRANTS_BYTES_MAX).div_ceil(UNIT_BYTES) as usize)
    }

    /// What moved since this was last asked.
    pub fn motion(&self) -> Motion {
        Motion {
            received: self.received_bytes.take(),
            sent: self.sent_bytes.take(),
            granted: self.transfers.borrow().values().map(|transfer| transfer.number).min(),
            sending: !self.outgoing.borrow().is_empty(),
        }
    }

    /// Notes granted data that was received.
    pub fn note_received(&self, bytes: usize) {
        self.received_bytes.set(self.received_bytes.get() + bytes);
    }

    /// Tells waiting commands that something was sent.
    pub fn sent(&self, bytes: usize) {
        self.sent_bytes.set(self.sent_bytes.get() + bytes);
        if !self.is_congested() {
            self.room.notify_all();
        }
    }

    /// Queues bytes that stand for themselves.
    pub fn push(&self, bytes: &[u8]) {
        self.outgoing.borrow_mut().push_small(bytes);
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

    /// Receives `bytes` bytes of a command's data by transfer, in pieces of 128 KiB.
    ///
    /// # Errors
    /// [`Status::TRANSIENT_TRANSPORT_ERROR`] when a data digest did not hold.
    pub async fn receive(&self, cid: u16, bytes: u32) -> Result<Vec<Buffer>, Status> {
        let number = self.grants_made.get();
        self.grants_made.set(number + 1);
        let pieces = pieces(bytes).into();
        let transfer = Rc::new(Transfer { pieces, number, ..Transfer::default() });
        let (ttag, r2t) = self.wire.borrow_mut().grant(cid, 0, bytes);
        let known = self.transfers.borrow_mut().insert(ttag, Rc::clone(&transfer));
        assert!(known.is_none(), "a tag is granted again only when its transfer is complete");
        self.push(&r2t);
        while !transfer.complete.get() {
            transfer.done.notified().await;
        }
        if transfer.damaged.get() {
            return Err(Status::TRANSIENT_TRANSPORT_ERROR);
        }
        Ok(transfer.pieces.take())
    }

    /// Copies received data to its place in a transfer.
    pub fn fill(&self, ttag: u16, offset: u32, mut bytes: &[u8]) {
        let mut at = offset;
        self.note_received(bytes.len());
        while !bytes.is_empty() {
            let count = self.with_slice(ttag, at, bytes.len(), |slice| {
                slice.copy_from_slice(&bytes[..slice.len()]);
                slice.len()
            });
            bytes = &bytes[count..];
            at += u32::try_from(count).expect("within a piece");
        }
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
        let transfers = self.transfers.borrow();
        let transfer = transfers.get(&ttag).expect("the wire knows which tags are granted");
        let mut pieces = transfer.pieces.borrow_mut();
        let piece = &mut pieces[(offset / PDU_DATA_BYTES_MAX) as usize];
        let start = (offset % PDU_DATA_BYTES_MAX) as usize;
        let end = piece.len().min(start + most);
        visit(&mut piece[start..end])
    }

    /// Notes the end of a PDU of a transfer; with the last one the connection forgets it.
    pub fn transfer_end(&self, ttag: u16, complete: bool, digest_matches: bool) {
        let mut transfers = self.transfers.borrow_mut();
        let transfer = transfers.get(&ttag).expect("the wire knows which tags are granted");
        if !digest_matches {
            transfer.damaged.set(true);
        }
        if complete && let Some(transfer) = transfers.remove(&ttag) {
            transfer.complete.set(true);
            transfer.done.notify_all();
        }
    }

    /// The controller that the connection is of.
    pub fn association(&self) -> Option<Arc<Association>> {
        self.session.borrow().association().map(Arc::clone)
    }

    /// Notes a failed command in its controller's error log. What a host may expect (a key that is
    /// not there, data that differs) is no error of anyone's.
    pub fn note_error(&self, permit: &Permit, sqe: &Sqe, status: Status) {
        let expected = matches!(
            status,
            Status::KEY_DOES_NOT_EXIST
                | Status::KEY_EXISTS
                | Status::COMPARE_FAILURE
                | Status::ABORTED_FAILED_FUSED
        );
        let session = self.session.borrow();
        let Some(association) = session.association().filter(|_| !expected) else { return };
        let mut entry = ErrorEntry::zeroed();
        let mut cqe = Cqe::zeroed();
        cqe.set_status(status);
        entry.set_sqid(permit.queue().qid()).set_cid(permit.cid()).set_location(0xFFFF);
        entry.set_status_field(cqe.status_field()).set_nsid(sqe.nsid()).set_trtype(3);
        entry.set_lba(u64::from(sqe.cdw10()) | u64::from(sqe.cdw11()) << 32);
        entry.set_opcode(sqe.opcode());
        association.note_error(entry);
    }

    /// Tells the host of an event, if this is an admin queue with a request held for it.
    pub fn raise(&self, event: Event, except: Option<u16>) {
        let completed = match &mut *self.session.borrow_mut() {
            Session::Admin(admin) if except != Some(admin.cntlid()) => admin.raise(event),
            _ => None,
        };
        if let Some(cqe) = completed {
            self.respond(&cqe);
        }
    }
}

/// Buffers for `bytes` bytes, each but the last of 128 KiB.
pub fn pieces(bytes: u32) -> Vec<Buffer> {
    let mut pieces = Vec::with_capacity(bytes.div_ceil(PDU_DATA_BYTES_MAX) as usize);
    let mut left = bytes;
    while left > 0 {
        let length = left.min(PDU_DATA_BYTES_MAX);
        pieces.push(Buffer::with_room(0, length as usize, 0));
        left -= length;
    }
    pieces
}
