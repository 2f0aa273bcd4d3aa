//! What a connection's loop and its commands share: the wire's state, what is to be sent, what is
//! being received.
//!
//! Never: the socket. Invariants: pieces leave in the order in which they were pushed; a grant is
//! made only for buffers that are there.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::rc::Rc;
use std::task::Waker;

use csd_nvme::capsule::Cqe;
use csd_nvme::controller::Event;
use csd_nvme::controller::queue::{Permit, Queue};
use csd_nvme::status::Status;
use csd_nvme::tcp::controller::Connection as Wire;
use csd_reactor::{Buffer, Notify};

use super::auth::Gate;
use super::session::Session;
use super::{LIMITS, PDU_DATA_BYTES_MAX};

/// Slices given to one send.
pub const SLICES_MAX: usize = 64;
/// Commands that send data wait while this much is queued.
const QUEUED_BYTES_MAX: usize = 1 << 20;
/// Headroom that a buffer of data needs before it, whatever the alignment asked for.
pub const HEADROOM: usize = 256;
/// Tailroom for the data digest.
pub const TAILROOM: usize = 4;

#[derive(Debug)]
enum Piece {
    /// Capsules, gathered.
    Small(Vec<u8>),
    /// A PDU with data.
    Large(Buffer),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(buffer) => buffer,
        }
    }
}

/// What is to be sent, in order.
#[derive(Debug, Default)]
pub struct Outgoing {
    pieces: VecDeque<Piece>,
    // Bytes of the first piece that are gone.
    gone: usize,
    queued: usize,
    spare: Vec<Vec<u8>>,
}

impl Outgoing {
    fn push_small(&mut self, bytes: &[u8]) {
        self.queued += bytes.len();
        if let Some(Piece::Small(last)) = self.pieces.back_mut() {
            return last.extend_from_slice(bytes);
        }
        let mut small = self.spare.pop().unwrap_or_default();
        small.extend_from_slice(bytes);
        self.pieces.push_back(Piece::Small(small));
    }

    /// True when there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Calls `send` with what is to be sent next; it says how much of it went.
    pub fn send<E>(
        &mut self,
        send: impl FnOnce(&[IoSlice<'_>]) -> Result<Option<usize>, E>,
    ) -> Result<Option<usize>, E> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut used = 0;
        for (slot, piece) in slices.iter_mut().zip(&self.pieces) {
            let skip = if used == 0 { self.gone } else { 0 };
            *slot = IoSlice::new(&piece.bytes()[skip..]);
            used += 1;
        }
        let sent = send(&slices[..used])?;
        if let Some(count) = sent {
            self.advance(count);
        }
        Ok(sent)
    }

    fn advance(&mut self, mut count: usize) {
        self.queued -= count;
        while let Some(piece) = self.pieces.front() {
            let left = piece.bytes().len() - self.gone;
            if count < left {
                self.gone += count;
                return;
            }
            count -= left;
            self.gone = 0;
            if let Some(Piece::Small(mut small)) = self.pieces.pop_front() {
                small.clear();
                self.spare.push(small);
            }
        }
    }
}

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
    queue: RefCell<Queue>,
    transfers: RefCell<BTreeMap<u16, Rc<Transfer>>>,
    room: Notify,
    ended: Cell<bool>,
    // The loop's waker, for changes that come from outside its turns.
    waker: RefCell<Option<Waker>>,
    in_turn: Cell<bool>,
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

impl Link {
    /// A connection on which nothing was received.
    pub fn new() -> Self {
        Self {
            wire: RefCell::new(Wire::new(LIMITS)),
            outgoing: RefCell::default(),
            session: RefCell::new(Session::Unconnected),
            gate: Gate::default(),
            queue: RefCell::new(Queue::unconnected()),
            transfers: RefCell::default(),
            room: Notify::new(),
            ended: Cell::new(false),
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

    /// True while so much is queued that no more should be received.
    pub fn is_congested(&self) -> bool {
        self.outgoing.borrow().queued >= QUEUED_BYTES_MAX
    }

    /// Waits until a command may queue data.
    pub async fn room(&self) {
        while self.is_congested() {
            self.room.notified().await;
        }
    }

    /// Tells waiting commands that something was sent.
    pub fn sent(&self) {
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
        let mut outgoing = self.outgoing.borrow_mut();
        outgoing.queued += pdu.len();
        outgoing.pieces.push_back(Piece::Large(pdu));
        drop(outgoing);
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
        let transfer = Rc::new(Transfer { pieces: pieces(bytes).into(), ..Transfer::default() });
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

    /// Tells the host of an event, if this is an admin queue with a request held for it.
    pub fn raise(&self, event: Event) {
        let completed = match &mut *self.session.borrow_mut() {
            Session::Admin(admin) => admin.raise(event),
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
