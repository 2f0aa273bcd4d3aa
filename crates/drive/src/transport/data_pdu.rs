//! [`DataPdu`]: the data of one command as one C2HData PDU, whatever its length. Its pieces are
//! queued as they are read.
//!
//! The standard allows several PDUs, but hosts have been met that take only one (SPDK 26.05, for a
//! buffer in several parts). A PDU of more than one piece has the connection for itself from its
//! header to its end, so commands take turns in order; one that waits for its turn reads ahead up
//! to `WINDOW_BYTES`. Other PDUs wait behind it. Invariants: a PDU that has begun is queued
//! whole, also if its command fails; a command takes its right to memory before its turn and keeps
//! it, so the one whose turn it is waits for nothing that a command behind it holds.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use csd_nvme::status::Status;
use csd_reactor::{Acquire, Buffer, SemaphorePermit, worked};

use super::backpressure::Reserved;
use super::link::{HEADROOM, Link, TAILROOM};
use super::request::Request;
use crate::limits::PIECE_BYTES_MAX;

/// Most bytes of a command that are read before its turn.
const WINDOW_BYTES: u32 = 1 << 20;

/// The data of a command on its way to the queue of outgoing bytes.
pub struct DataPdu<'a> {
    request: &'a Request,
    length: u32,
    // Bytes of the pieces that were put, and of those that are queued.
    put: u32,
    queued: u32,
    // True for a command without a result: the end of its data may stand for its response.
    bare: bool,
    digest: u32,
    held: Option<SemaphorePermit>,
    line: Acquire,
    turn: Option<SemaphorePermit>,
    ahead: VecDeque<(Buffer, Reserved<'a>)>,
}

impl Request {
    /// Queues data as one PDU, each piece when the connection has space for it. `bare` is true for
    /// a command without a result.
    pub async fn send(&self, data: &[u8], bare: bool) {
        let length = u32::try_from(data.len()).expect("within the transfer limit");
        let mut pdu = DataPdu::new(self, length, bare);
        pdu.put_all(data).await;
    }
}

impl<'a> DataPdu<'a> {
    /// Returns a PDU of `length` bytes, of which none were put. `bare` is true for a command
    /// without a result.
    pub fn new(request: &'a Request, length: u32, bare: bool) -> Self {
        let line = request.link.turns.acquire(1);
        let (held, turn, ahead) = (None, None, VecDeque::new());
        Self { request, length, put: 0, queued: 0, bare, digest: 0, held, line, turn, ahead }
    }

    /// Returns the length of the next piece in bytes; 0 when there is none.
    pub fn next_bytes(&self) -> u32 {
        (self.length - self.put).min(PIECE_BYTES_MAX)
    }

    /// Returns the offset of the next piece in the data.
    pub fn offset(&self) -> u32 {
        self.put
    }

    /// Returns a buffer for the next piece.
    pub fn buffer(&self) -> Buffer {
        Buffer::with_room(HEADROOM, self.next_bytes() as usize, TAILROOM)
    }

    fn link(&self) -> &'a Link {
        &self.request.link
    }

    /// Returns true if the data is one piece.
    pub fn is_whole(&self) -> bool {
        self.length <= PIECE_BYTES_MAX
    }

    /// Waits until the next piece may be read: with `ahead` also before it can be queued.
    pub async fn room(&mut self, ahead: bool) -> Reserved<'a> {
        let (link, bytes) = (self.link(), u64::from(self.next_bytes()));
        if self.held.is_none() {
            let window = self.length.min(WINDOW_BYTES);
            self.held = Some(link.acquire_answer(window.into()).await);
        }
        if self.is_whole() {
            if !ahead {
                link.wait_for_space().await;
            }
            return link.reserve(bytes).await;
        }
        // Without memory it waits for its turn alone: then it may send what it has.
        let may_read = ahead && self.put - self.queued < WINDOW_BYTES && !link.must_wait();
        self.take_turn(!may_read).await;
        if self.turn.is_none() {
            return link.take(bytes);
        }
        self.flush().await;
        link.wait_for_part().await;
        link.take(bytes)
    }

    /// Waits until a piece that was read ahead may be queued, if it is the only one.
    pub async fn space(&self) {
        if self.is_whole() {
            self.link().wait_for_space().await;
        }
    }

    /// Adds the next piece, of [`Self::next_bytes`] bytes, in the memory that `room` stands for.
    pub fn put(&mut self, piece: Buffer, room: Reserved<'a>) {
        debug_assert_eq!(piece.len(), self.next_bytes() as usize);
        self.put += self.next_bytes();
        if self.is_whole() || (self.turn.is_some() && self.ahead.is_empty()) {
            self.queue(piece);
        } else {
            self.ahead.push_back((piece, room));
        }
    }

    /// Adds all of the data, each piece when there is space for it.
    pub async fn put_all(&mut self, data: &[u8]) {
        for bytes in data.chunks(PIECE_BYTES_MAX as usize) {
            if self.is_whole() {
                self.space().await;
            } else {
                self.take_turn(true).await;
                self.link().wait_for_part().await;
            }
            let mut piece = self.buffer();
            worked(bytes.len() as u64);
            piece.copy_from_slice(bytes);
            self.put(piece, self.link().take(0));
        }
    }

    /// Ends the PDU as its command ended. Of a command that failed the missing data are zeros if
    /// the PDU has begun; otherwise there is no PDU.
    ///
    /// # Errors
    /// The one of the command.
    pub async fn end(mut self, ended: Result<(), Status>) -> Result<(), Status> {
        if ended.is_ok() {
            if !self.ahead.is_empty() {
                self.take_turn(true).await;
                self.flush().await;
            }
            debug_assert_eq!(self.queued, self.length);
        } else if self.queued > 0 {
            while self.next_bytes() > 0 {
                let room = self.room(false).await;
                let mut zeros = self.buffer();
                worked(zeros.len() as u64);
                zeros.fill(0);
                self.put(zeros, room);
            }
        }
        ended
    }

    /// Takes the turn if it has come, or `waits` for it. The place in line is kept.
    async fn take_turn(&mut self, waits: bool) {
        if self.turn.is_some() {
            return;
        }
        let link = self.link();
        if waits {
            self.turn = Some(link.host.there(&mut self.line).await);
            return;
        }
        self.turn = poll_fn(|cx| match Pin::new(&mut self.line).poll(cx) {
            Poll::Ready(turn) => Poll::Ready(Some(turn)),
            Poll::Pending => Poll::Ready(None),
        })
        .await;
    }

    /// Queues what was read ahead.
    async fn flush(&mut self) {
        while !self.ahead.is_empty() {
            self.link().wait_for_part().await;
            if let Some((piece, room)) = self.ahead.pop_front() {
                self.queue(piece);
                drop(room);
            }
        }
    }

    fn queue(&mut self, mut piece: Buffer) {
        let wire = self.link().wire.borrow();
        let is_first = self.queued == 0;
        self.queued += u32::try_from(piece.len()).expect("at most 128 KiB");
        let is_last = self.queued == self.length;
        if wire.encoder().digests.data {
            self.digest = crc32c::crc32c_append(self.digest, &piece);
            if is_last {
                let digest = self.digest.to_le_bytes();
                piece.append(digest.len()).copy_from_slice(&digest);
            }
        }
        if is_first {
            // A longer PDU may still fail, and only a response can say so.
            let told = self.bare && self.is_whole() && self.request.may_skip_response();
            let prefix = wire.data_prefix(self.request.id().1, 0, self.length, true, told);
            piece.prepend(prefix.len()).copy_from_slice(&prefix);
            self.request.told.set(told);
        }
        drop(wire);
        self.link().push_part(piece, self.is_whole(), is_last);
    }
}
