//! [`Outgoing`]: queue of the bytes that a connection sends. Capsules are copied together, PDUs
//! with data stay as they are.
//!
//! A long PDU comes in parts. Invariants: bytes leave in the order in which they were queued,
//! whatever part of them a send takes; nothing comes between the parts of a PDU.

use std::collections::VecDeque;
use std::io::IoSlice;

use csd_reactor::Buffer;

/// Most slices of one send.
pub const SLICES_MAX: usize = 64;

#[derive(Debug)]
enum QueuedBytes {
    /// Capsules, copied together.
    Small(Vec<u8>),
    /// A PDU with data, or a part of one.
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
    // Bytes of all pieces that were not sent.
    ready: usize,
    // Bytes of capsules among all that is queued.
    small: usize,
    // True while parts of the last PDU in `pieces` are missing.
    is_open: bool,
    // PDUs that follow it, and their bytes.
    behind: VecDeque<QueuedBytes>,
    behind_bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl Outgoing {
    /// Queues a copy of these bytes.
    pub fn push_small(&mut self, bytes: &[u8]) {
        self.small += bytes.len();
        let line = self.line(bytes.len());
        if let Some(QueuedBytes::Small(last)) = line.back_mut() {
            return last.extend_from_slice(bytes);
        }
        let mut small = self.spare.pop().unwrap_or_default();
        small.extend_from_slice(bytes);
        self.line(0).push_back(QueuedBytes::Small(small));
    }

    /// Queues a PDU with data.
    pub fn push_large(&mut self, pdu: Buffer) {
        self.line(pdu.len()).push_back(QueuedBytes::Large(pdu));
    }

    /// Queues the next part of a PDU. Until its `last` part is queued, other PDUs wait behind it.
    /// The caller sees to it that parts of one PDU only come.
    pub fn push_part(&mut self, part: Buffer, last: bool) {
        self.ready += part.len();
        self.pieces.push_back(QueuedBytes::Large(part));
        self.is_open = !last;
        if last {
            self.ready += std::mem::take(&mut self.behind_bytes);
            self.pieces.append(&mut self.behind);
        }
    }

    /// Returns the queue that takes `bytes` bytes of another PDU, and counts them.
    fn line(&mut self, bytes: usize) -> &mut VecDeque<QueuedBytes> {
        if self.is_open {
            self.behind_bytes += bytes;
            return &mut self.behind;
        }
        self.ready += bytes;
        &mut self.pieces
    }

    /// Returns the bytes that are queued and not sent.
    pub fn queued_bytes(&self) -> usize {
        self.ready + self.behind_bytes
    }

    /// Returns those of them that do not wait for parts of a PDU.
    pub fn ready_bytes(&self) -> usize {
        self.ready
    }

    /// Returns those of them that are capsules.
    pub fn small_bytes(&self) -> usize {
        self.small
    }

    /// Returns true when there is nothing that can be sent.
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
        self.ready -= count;
        while let Some(piece) = self.pieces.front() {
            let left = piece.bytes().len() - self.gone;
            if matches!(piece, QueuedBytes::Small(_)) {
                self.small -= left.min(count);
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `most` bytes at a time; returns all of them.
    fn drained(outgoing: &mut Outgoing, most: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !outgoing.is_empty() {
            let sent = outgoing.send(most, |slices| {
                slices.iter().for_each(|slice| all.extend_from_slice(slice));
                Ok::<_, ()>(Some(slices.iter().map(|slice| slice.len()).sum()))
            });
            assert!(sent.unwrap().is_some_and(|count| count > 0));
        }
        all
    }

    #[test]
    fn nothing_comes_between_the_parts_of_a_pdu() {
        for most in 1..9 {
            let mut outgoing = Outgoing::default();
            outgoing.push_small(&[1]);
            outgoing.push_part(Buffer::from_slice(&[2; 3]), false);
            outgoing.push_small(&[5; 2]);
            outgoing.push_large(Buffer::from_slice(&[6; 2]));
            assert_eq!((outgoing.queued_bytes(), outgoing.ready_bytes()), (8, 4));
            assert_eq!(drained(&mut outgoing, most), [1, 2, 2, 2]);
            assert_eq!((outgoing.queued_bytes(), outgoing.small_bytes()), (4, 2));
            outgoing.push_part(Buffer::from_slice(&[3]), false);
            outgoing.push_part(Buffer::from_slice(&[4]), true);
            outgoing.push_small(&[7]);
            assert_eq!(drained(&mut outgoing, most), [3, 4, 5, 5, 6, 6, 7]);
            assert_eq!((outgoing.queued_bytes(), outgoing.small_bytes()), (0, 0));
        }
    }
}
