//! Pieces of a task: where they lie, their length and their digest.

use super::{Malformed, PIECE_BYTES_MAX};
use crate::vendor::location::{Location, LocationKind};
use crate::wire::{layout, take};

layout! {
    /// One piece.
    pub struct PieceRecord[32] {
        /// [`LocationKind`].
        kind / set_kind: u8 @ 0,
        /// 0: the drive that executes the task. i: the i-th peer that the task names.
        peer / set_peer: u8 @ 1,
        /// 1 if the digest is known, else 0.
        known / set_known: u8 @ 2,
        /// Reserved, 0.
        reserved / set_reserved: u8 @ 3,
        /// Namespace.
        nsid / set_nsid: u32 @ 4,
        /// Value: its key. Blocks: starting LBA (8 bytes), then 8 zero bytes.
        locator / set_locator: [16] @ 8,
        /// Number of bytes. Blocks are written whole, padded with zeros.
        bytes / set_bytes: u32 @ 24,
        /// CRC-32C of the bytes if it is known, else 0.
        crc32c / set_crc32c: u32 @ 28,
    }
}

/// A checked piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// 0: the drive that executes the task; i: entry i - 1 of [`super::Task::peers`].
    pub peer: u8,
    /// Location on that drive.
    pub location: Location,
    /// Length in bytes, 1 to [`PIECE_BYTES_MAX`].
    pub bytes: u32,
    /// CRC-32C that the bytes must have, if it is known.
    pub crc32c: Option<u32>,
}

impl Piece {
    pub(super) fn of(record: &PieceRecord, peers: usize) -> Result<Self, Malformed> {
        let (known, crc32c) = (record.known(), record.crc32c());
        if record.reserved() != 0 || known > 1 || (known == 0 && crc32c != 0) {
            return Err(Malformed("reserved bytes of a piece are not zero"));
        }
        if usize::from(record.peer()) > peers {
            return Err(Malformed("a piece is on a peer that is not named"));
        }
        if !(1..=PIECE_BYTES_MAX).contains(&record.bytes()) {
            return Err(Malformed("a piece has not 1 byte to 16 MiB"));
        }
        let (nsid, locator) = (record.nsid(), record.locator());
        let location = match LocationKind(record.kind()) {
            LocationKind::VALUE => Location::Value { nsid, key: locator },
            LocationKind::BLOCKS if locator[8..] != [0; 8] => {
                return Err(Malformed("reserved bytes of a locator are not zero"));
            }
            LocationKind::BLOCKS => {
                Location::Blocks { nsid, slba: u64::from_le_bytes(take(&locator, 0)) }
            }
            _ => return Err(Malformed("unknown kind of piece")),
        };
        let crc32c = (known == 1).then_some(crc32c);
        Ok(Self { peer: record.peer(), location, bytes: record.bytes(), crc32c })
    }

    pub(super) fn record(&self) -> PieceRecord {
        let mut record = PieceRecord::zeroed();
        record.set_peer(self.peer).set_bytes(self.bytes);
        if let Some(crc32c) = self.crc32c {
            record.set_known(1).set_crc32c(crc32c);
        }
        match self.location {
            Location::Value { nsid, key } => {
                record.set_kind(LocationKind::VALUE.0).set_nsid(nsid).set_locator(&key);
            }
            Location::Blocks { nsid, slba } => {
                let mut locator = [0; 16];
                locator[..8].copy_from_slice(&slba.to_le_bytes());
                record.set_kind(LocationKind::BLOCKS.0).set_nsid(nsid).set_locator(&locator);
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_records_are_named() {
        let location = Location::Blocks { nsid: 1, slba: 5 };
        let good = Piece { peer: 1, location, bytes: 9, crc32c: Some(0) };
        assert_eq!(Piece::of(&good.record(), 1), Ok(good));
        let wrong = |at: usize, byte: u8| {
            let mut bytes = *good.record().as_bytes();
            bytes[at] = byte;
            Piece::of(&PieceRecord::from_bytes(bytes), 1).unwrap_err().0
        };
        assert_eq!(wrong(0, 3), "unknown kind of piece");
        assert_eq!(wrong(1, 2), "a piece is on a peer that is not named");
        assert_eq!(wrong(2, 2), "reserved bytes of a piece are not zero");
        assert_eq!(wrong(3, 1), "reserved bytes of a piece are not zero");
        assert_eq!(wrong(16, 1), "reserved bytes of a locator are not zero");
        assert_eq!(wrong(24, 0), "a piece has not 1 byte to 16 MiB");
        assert_eq!(wrong(27, 1), "a piece has not 1 byte to 16 MiB");
        let unknown = Piece { crc32c: None, ..good };
        let mut record = unknown.record();
        assert_eq!(Piece::of(&record, 1), Ok(unknown));
        record.set_crc32c(1);
        assert!(Piece::of(&record, 1).is_err());
    }
}
