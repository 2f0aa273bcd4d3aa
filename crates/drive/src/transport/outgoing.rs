//! [`Outgoing`]: queue of the bytes that a connection sends. Capsules are copied together, PDUs
//! with data stay as they are.
//!
//! Invariant: bytes leave in the order in which they were queued, whatever part of them a send
//! takes.

use std::collections::VecDeque;
use std::io::IoSlice;

use csd_reactor::Buffer;

/// Most slices of one send.
pub const SLICES_MAX: usize = 64;

#[derive(Debug)]
enum QueuedBytes {
    /// Capsules, copied together.
    Small(Vec<u8>),
    /// A PDU with data.
    Large(Buffer),
}

impl QueuedBytes {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(buffer) => buffer,
        }
    }
}

/// Queue of the bytes to send.
#[derive(Debug, Default)]
pub struct Outgoing {
    pieces: VecDeque<QueuedBytes>,
    // Bytes of the first piece that were sent.
    gone: usize,
    queued: usize,
    spare: Vec<Vec<u8>>,
}

impl Outgoing {
    /// Queues a copy of these bytes.
    pub fn push_small(&mut self, bytes: &[u8]) {
        self.queued += bytes.len();
        if let Some(QueuedBytes::Small(last)) = self.pieces.back_mut() {
            return last.extend_from_slice(bytes);
        }
        let mut small = self.spare.pop().unwrap_or_default();
        small.extend_from_slice(bytes);
        self.pieces.push_back(QueuedBytes::Small(small));
    }

    /// Queues a PDU with data.
    pub fn push_large(&mut self, pdu: Buffer) {
        self.queued += pdu.len();
        self.pieces.push_back(QueuedBytes::Large(pdu));
    }

    /// Returns the bytes that are queued and not sent.
    pub fn queued_bytes(&self) -> usize {
        self.queued
    }

    /// Returns true when there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Calls `send` with the next slices, of at most `most` bytes. It returns the number of bytes
    /// that it sent.
    pub fn send<E>(
        &mut self,
        most: usize,
        send: impl FnOnce(&[IoSlice<'_>]) -> Result<Option<usize>, E>,
    ) -> Result<Option<usize>, E> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let (mut used, mut left) = (0, most);
        for (slot, piece) in slices.iter_mut().zip(&self.pieces) {
            let skip = if used == 0 { self.gone } else { 0 };
            let bytes = &piece.bytes()[skip..];
            let bytes = &bytes[..bytes.len().min(left)];
            if bytes.is_empty() {
                break;
            }
            *slot = IoSlice::new(bytes);
            used += 1;
            left -= bytes.len();
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
            if let Some(QueuedBytes::Small(mut small)) = self.pieces.pop_front() {
                small.clear();
                self.spare.push(small);
            }
        }
    }
}
