//! Queue of outgoing capsules and granted transfers, which become PDUs when their turn comes.
//!
//! Payloads are sent without copying, except for a command that the drive failed early, and few
//! PDUs are prepared ahead. Invariants: a PDU once begun is sent whole; transfers take turns by
//! PDU, so a capsule waits for at most one PDU of each.

use std::collections::VecDeque;
use std::io::IoSlice;

use csd_nvme::host::queue::Queue;
use csd_nvme::tcp::encoder::Prefix;
use csd_reactor::Buffer;

use super::commands::Commands;

/// Maximum slices of one send.
pub(super) const SLICES: usize = 64;
/// Maximum bytes of one H2CData PDU, even if the drive allows more.
const DATA_BYTES_MAX: u32 = 128 << 10;
/// Number of pieces prepared ahead: enough for one send.
const PIECES: usize = SLICES;

/// An item that waits for its turn.
#[allow(clippy::large_enum_variant)] // a box would be an allocation for every command
enum Item {
    /// A command, with this many bytes of its payload in the capsule.
    Capsule { cid: u16, head: Prefix, carried: u32 },
    /// A granted part of a command's payload.
    Transfer { cid: u16, ttag: u16, offset: u32, end: u32 },
}

/// A contiguous part of a PDU.
#[allow(clippy::large_enum_variant)] // as above
enum Piece {
    /// The bytes before data; `capsule` is the command whose capsule they begin.
    Head { prefix: Prefix, capsule: Option<u16> },
    /// Bytes of a command's payload.
    Data { cid: u16, offset: u32, length: u32 },
    /// Digest of the data before it.
    Digest([u8; 4]),
    /// Rest of a payload whose command has ended.
    Orphan(Vec<u8>),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Head { prefix, .. } => prefix.len(),
            Self::Data { length, .. } => *length as usize,
            Self::Digest(bytes) => bytes.len(),
            Self::Orphan(bytes) => bytes.len(),
        }
    }
}

/// Outgoing items and pieces of one connection; see the module's text.
pub(super) struct Outgoing {
    data_bytes_max: u32,
    items: VecDeque<Item>,
    ready: VecDeque<Piece>,
    /// Number of bytes of the first piece that have been sent.
    sent: usize,
}

impl Outgoing {
    /// Returns an empty queue, for a drive that accepts this many bytes in an H2CData PDU.
    pub(super) fn new(h2c_data_bytes_max: u32) -> Self {
        // Only a transfer's last PDU may have a length that is not a multiple of 4.
        let data_bytes_max = h2c_data_bytes_max.min(DATA_BYTES_MAX) & !3;
        Self { data_bytes_max, items: VecDeque::new(), ready: VecDeque::new(), sent: 0 }
    }

    pub(super) fn capsule(&mut self, cid: u16, head: Prefix, carried: u32) {
        self.items.push_back(Item::Capsule { cid, head, carried });
    }

    pub(super) fn transfer(&mut self, cid: u16, ttag: u16, offset: u32, length: u32) {
        // The queue has checked that the sum does not overflow.
        self.items.push_back(Item::Transfer { cid, ttag, offset, end: offset + length });
    }

    /// Returns true if the next byte begins a PDU, so that another PDU may be sent first.
    pub(super) fn at_boundary(&self) -> bool {
        self.sent == 0 && matches!(self.ready.front(), None | Some(Piece::Head { .. }))
    }

    /// Fills in the next slices to send; returns their number, 0 if there is nothing to send.
    pub(super) fn slices<'a>(
        &'a mut self,
        queue: &Queue,
        commands: &'a Commands,
        slices: &mut [IoSlice<'a>; SLICES],
    ) -> usize {
        while self.ready.len() < PIECES
            && let Some(item) = self.items.pop_front()
        {
            self.cut(item, queue, commands);
        }
        let mut fill = Fill { slices, count: 0, skip: self.sent };
        for piece in &self.ready {
            let more = match piece {
                Piece::Head { prefix, .. } => fill.push(prefix),
                Piece::Digest(bytes) => fill.push(bytes),
                Piece::Orphan(bytes) => fill.push(bytes),
                Piece::Data { cid, offset, length } => {
                    let payload = payload(commands, *cid);
                    parts(payload, *offset, *length).all(|part| fill.push(part))
                }
            };
            if !more {
                break;
            }
        }
        fill.count
    }

    /// Cuts the next PDU of an item into pieces; requeues the rest of the item.
    fn cut(&mut self, item: Item, queue: &Queue, commands: &Commands) {
        let wire = queue.connection();
        let (prefix, capsule, cid, offset, length) = match item {
            Item::Capsule { cid, head, carried } => (head, Some(cid), cid, 0, carried),
            Item::Transfer { cid, ttag, offset, end } => {
                let length = (end - offset).min(self.data_bytes_max);
                let next = offset + length;
                if next < end {
                    self.items.push_back(Item::Transfer { cid, ttag, offset: next, end });
                }
                let prefix = wire.data_prefix(cid, ttag, offset, length, next == end);
                (prefix, None, cid, offset, length)
            }
        };
        self.ready.push_back(Piece::Head { prefix, capsule });
        if length > 0 {
            self.ready.push_back(Piece::Data { cid, offset, length });
            let data = parts(payload(commands, cid), offset, length);
            let digest = wire.encoder().data_digest(data);
            self.ready.extend(digest.map(Piece::Digest));
        }
    }

    /// Removes the first `count` sent bytes; returns the number of payload bytes among them.
    pub(super) fn consume(&mut self, count: usize, commands: &mut Commands) -> u64 {
        let mut payload = 0;
        self.sent += count;
        while let Some(piece) = self.ready.front()
            && self.sent >= piece.len()
        {
            self.sent -= piece.len();
            match self.ready.pop_front() {
                Some(Piece::Head { capsule: Some(cid), .. }) => commands.get(cid).sent = true,
                Some(Piece::Data { cid, length, .. }) => {
                    commands.get(cid).unsent -= length;
                    payload += u64::from(length);
                }
                Some(Piece::Orphan(bytes)) => payload += bytes.len() as u64,
                _ => {}
            }
        }
        payload
    }

    /// Handles the early end of a command: PDUs already cut keep a copy of their data, the rest of
    /// a transfer is not sent.
    pub(super) fn orphan(&mut self, ended: u16, payload: &[Buffer]) {
        for piece in &mut self.ready {
            if let Piece::Data { cid, offset, length } = *piece
                && cid == ended
            {
                *piece = Piece::Orphan(parts(payload, offset, length).flatten().copied().collect());
            }
        }
        self.items.retain(|item| !matches!(item, Item::Transfer { cid, .. } if *cid == ended));
    }
}

fn payload(commands: &Commands, cid: u16) -> &[Buffer] {
    commands.find(cid).map_or(&[], |command| &command.payload)
}

/// Returns the `length` bytes from `offset` on of consecutive buffers.
fn parts(payload: &[Buffer], offset: u32, length: u32) -> impl Iterator<Item = &[u8]> {
    let (mut skip, mut left) = (offset as usize, length as usize);
    payload.iter().filter_map(move |buffer| {
        let start = skip.min(buffer.len());
        skip -= start;
        let part = &buffer[start..];
        let part = &part[..left.min(part.len())];
        left -= part.len();
        (!part.is_empty()).then_some(part)
    })
}

/// Array of slices that is being filled.
struct Fill<'s, 'a> {
    slices: &'s mut [IoSlice<'a>; SLICES],
    count: usize,
    /// Number of bytes to skip because they have been sent.
    skip: usize,
}

impl<'a> Fill<'_, 'a> {
    /// Adds a slice; returns false if the array is full.
    fn push(&mut self, bytes: &'a [u8]) -> bool {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let bytes = &bytes[skipped..];
        if !bytes.is_empty() {
            self.slices[self.count] = IoSlice::new(bytes);
            self.count += 1;
        }
        self.count < SLICES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cross_buffers_and_skip_empty_ones() {
        let payload: Vec<Buffer> =
            [&b"abc"[..], b"", b"defg", b"h"].map(Buffer::from_slice).into_iter().collect();
        let whole = |offset, length| parts(&payload, offset, length).collect::<Vec<_>>().concat();
        assert_eq!(whole(0, 8), b"abcdefgh");
        assert_eq!(whole(2, 3), b"cde");
        assert_eq!(whole(3, 4), b"defg");
        assert_eq!(parts(&payload, 3, 4).count(), 1);
        assert_eq!(whole(7, 1), b"h");
        assert_eq!(whole(8, 0), b"");
    }

    #[test]
    fn filled_slices_skip_what_was_sent_and_stop_when_full() {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut fill = Fill { slices: &mut slices, count: 0, skip: 4 };
        assert!(fill.push(b"abc") && fill.push(b"defg"));
        assert_eq!((fill.count, fill.skip), (1, 0));
        let pushed = (0..SLICES).take_while(|_| fill.push(b"x")).count();
        assert_eq!(pushed, SLICES - 2);
        assert_eq!(&*slices[0], b"efg");
    }
}
