//! [`Mark`]: for each shard of a drive with a volatile cache, the end of its log up to which it is
//! durable.
//!
//! Two copies lie in the medium's head, each in one sector, which does not tear. Invariants: a mark
//! is written only when everything before its positions is durable; of two whole copies the one
//! with the higher epoch counts.

use csd_nvme::layout;
use csd_reactor::{Buffer, join};

use crate::error::MediaError;
use crate::format::{PAGE_BYTES, SETTINGS_OFFSETS, SHARDS};
use crate::media::Media;
use crate::record::{SECTOR_BYTES, SegmentRange};

/// Offsets of the two copies, 64 KiB behind the pages of settings.
pub const MARK_OFFSETS: [u64; 2] =
    [SETTINGS_OFFSETS[0] + GAP_BYTES, SETTINGS_OFFSETS[1] + GAP_BYTES];
const GAP_BYTES: u64 = 64 << 10;

const MARK_MAGIC: u32 = u32::from_le_bytes(*b"CMRK");
const MARK_BYTES: usize = Head::SIZE + SHARDS as usize * Entry::SIZE;

layout! {
    /// Head of a mark.
    struct Head[32] {
        /// "CMRK".
        magic / set_magic: u32 @ 0,
        /// CRC-32C of the 352 bytes of the mark with this field zero.
        checksum / set_checksum: u32 @ 4,
        /// Identifier of the drive.
        uuid / set_uuid: [16] @ 8,
        /// Epoch that the mark closes.
        epoch / set_epoch: u64 @ 24,
    }
}

layout! {
    /// Position of one shard.
    struct Entry[20] {
        /// Sequence of the segment.
        sequence / set_sequence: u64 @ 0,
        /// Sector at which the log ends there.
        end_sector / set_end_sector: u32 @ 8,
        /// Sector of the last checkpoint before the end, 0 when there is none.
        checkpoint_sector / set_checkpoint_sector: u32 @ 12,
        /// Length of that checkpoint in bytes.
        checkpoint_bytes / set_checkpoint_bytes: u32 @ 16,
    }
}

/// An end of a shard's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Sequence of the newest segment; 0 when the shard had none.
    pub sequence: u64,
    /// Offset in it behind the last group.
    pub end: u64,
    /// Last checkpoint before the end.
    pub checkpoint: Option<SegmentRange>,
}

impl Position {
    /// Returns true if both are the same end.
    pub fn is_at(&self, other: &Self) -> bool {
        (self.sequence, self.end) == (other.sequence, other.end)
    }
}

/// Positions of all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Epoch that it closes.
    pub epoch: u64,
    /// Positions by shard number.
    pub positions: [Position; SHARDS as usize],
}

impl Mark {
    /// Encodes the mark for the drive with this identifier.
    pub fn encode(&self, uuid: &[u8; 16]) -> Vec<u8> {
        let mut head = Head::zeroed();
        head.set_magic(MARK_MAGIC).set_uuid(uuid).set_epoch(self.epoch);
        let mut bytes = head.as_bytes().to_vec();
        for position in &self.positions {
            let mut entry = Entry::zeroed();
            let end =
                u32::try_from(position.end / SECTOR_BYTES).expect("a segment has few sectors");
            let (sector, length) = SegmentRange::fields(position.checkpoint);
            entry.set_sequence(position.sequence).set_end_sector(end);
            entry.set_checkpoint_sector(sector).set_checkpoint_bytes(length);
            bytes.extend_from_slice(entry.as_bytes());
        }
        let checksum = crc32c::crc32c(&bytes);
        head.set_checksum(checksum);
        bytes[..Head::SIZE].copy_from_slice(head.as_bytes());
        bytes
    }

    /// Decodes the mark of the drive with this identifier; `None` when it is not whole.
    pub fn decode(bytes: &[u8], uuid: &[u8; 16]) -> Option<Self> {
        let bytes = bytes.get(..MARK_BYTES)?;
        let head = Head::parse(bytes)?;
        let (mut unsigned, mut entries) = (head, bytes[Head::SIZE..].chunks_exact(Entry::SIZE));
        unsigned.set_checksum(0);
        let sum = crc32c::crc32c(unsigned.as_bytes());
        let sum = crc32c::crc32c_append(sum, &bytes[Head::SIZE..]);
        if head.magic() != MARK_MAGIC || head.checksum() != sum || head.uuid() != *uuid {
            return None;
        }
        let mut mark = Self { epoch: head.epoch(), ..Self::default() };
        for position in &mut mark.positions {
            let entry = Entry::parse(entries.next()?)?;
            *position = Position {
                sequence: entry.sequence(),
                end: u64::from(entry.end_sector()) * SECTOR_BYTES,
                checkpoint: SegmentRange::of(entry.checkpoint_sector(), entry.checkpoint_bytes()),
            };
        }
        Some(mark)
    }

    /// Reads both copies; `None` for one that is not whole.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn read(media: &Media, uuid: &[u8; 16]) -> Result<[Option<Self>; 2], MediaError> {
        let mut copies = [None; 2];
        for (copy, at) in copies.iter_mut().zip(MARK_OFFSETS) {
            let page = usize::try_from(PAGE_BYTES).expect("a page");
            let (result, page) = media.read(at, Buffer::zeroed(page)).await;
            result?;
            *copy = Self::decode(&page, uuid);
        }
        Ok(copies)
    }

    /// Returns the copy that counts.
    pub fn newest(copies: [Option<Self>; 2]) -> Option<Self> {
        copies.into_iter().flatten().max_by_key(|mark| mark.epoch)
    }

    /// Writes both copies. They are durable after the next sync.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn write(&self, media: &Media, uuid: &[u8; 16]) -> Result<(), MediaError> {
        let bytes = self.encode(uuid);
        let write = |at| {
            let mut page = Buffer::zeroed(usize::try_from(PAGE_BYTES).expect("a page"));
            page[..bytes.len()].copy_from_slice(&bytes);
            media.write(at, vec![page])
        };
        let (one, other) = join(write(MARK_OFFSETS[0]), write(MARK_OFFSETS[1])).await;
        one.0.and(other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_round_trip_and_every_bit_is_guarded() {
        let mut mark = Mark { epoch: 9, ..Mark::default() };
        for (number, position) in (1..).zip(&mut mark.positions) {
            let checkpoint = Some(SegmentRange { offset: 8192, bytes: 64 * number });
            let checkpoint = checkpoint.filter(|_| number % 2 == 0);
            *position = Position { sequence: number, end: 16_384 * number, checkpoint };
        }
        let mut bytes = mark.encode(&[7; 16]);
        assert_eq!(bytes.len(), 352);
        assert!(bytes.len() as u64 <= SECTOR_BYTES, "a longer one could tear");
        assert_eq!(Mark::decode(&bytes, &[7; 16]), Some(mark));
        assert_eq!(Mark::decode(&bytes, &[8; 16]), None, "another drive");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::decode(&bytes, &[7; 16]), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let older = Mark { epoch: 8, ..mark };
        for copies in [[Some(mark), Some(older)], [Some(older), Some(mark)], [None, Some(mark)]] {
            assert_eq!(Mark::newest(copies), Some(mark));
        }
        assert_eq!(Mark::newest([None; 2]), None);
    }
}
