//! Subsystem Local Memory command set: the bytes that programs and hosts share.
//!
//! Source: NVM Express Subsystem Local Memory Command Set Specification 1.2. We had no access to
//! its text, only to public source code that cites it, so every offset stands in this module and
//! nowhere else. Not verified: the status of a range beyond the end, Identify Namespace for CSI 3
//! (see [`crate::identify::IdentifyMemoryNamespace`]), and that Flush is not a command of this set.
//! Nothing in memory is durable, and a host that flushes wants it to be.

use crate::capsule::Sqe;
use crate::nvm::{self, Extent, FORMAT_MEMORY};
use crate::opcode::Slm;
use crate::status::Status;
use crate::wire::layout;

/// Ranges and lengths of this command set are multiples of a dword.
pub const UNIT_BYTES: u64 = 4;

layout! {
    /// Memory Read, Memory Write and Memory Fill command.
    pub struct Access[64] {
        /// Start Byte (SB).
        start / set_start: u64 @ 40,
        /// Length (LEN) in bytes.
        length / set_length: u32 @ 48,
    }
}

layout! {
    /// Memory Copy command: always into the memory that it names.
    pub struct Copy[64] {
        /// Length (LEN) in bytes of all sources together.
        length / set_length: u64 @ 8,
        /// Starting Destination Address (SDADDR), a byte.
        start / set_start: u64 @ 40,
        /// Number of Ranges (NR), 0's based.
        nr / set_nr: u8 @ 48,
        /// Descriptor Format, bits 3:0.
        format / set_format: u8 @ 49,
    }
}

layout! {
    /// One source of descriptor format 2h or 3h: logical blocks of a namespace.
    pub struct BlockSource[32] {
        /// Source Namespace Identifier (SNSID).
        nsid / set_nsid: u32 @ 0,
        /// Starting LBA (SLBA).
        slba / set_slba: u64 @ 8,
        /// Number of Logical Blocks (NLB), 0's based.
        nlb / set_nlb: u16 @ 16,
    }
}

layout! {
    /// One source of descriptor format 4h: bytes of a memory namespace.
    pub struct MemorySource[32] {
        /// Source Namespace Identifier (SNSID).
        nsid / set_nsid: u32 @ 0,
        /// Starting address (SADDR), a byte.
        start / set_start: u64 @ 8,
        /// Number of Bytes (NBYTE).
        length / set_length: u32 @ 16,
        /// Source Options (SOPT): bit 15 fast copy only.
        options / set_options: u16 @ 22,
    }
}

/// Descriptor formats whose sources are blocks; the second has room for longer tags, which are
/// not ours.
pub const FORMATS_BLOCK: [u8; 2] = [2, 3];

/// Bytes of a memory namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Range {
    /// Returns true if both hold a byte in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.start.saturating_add(other.length)
            && other.start < self.start.saturating_add(self.length)
    }

    /// Returns the range, if it lies on dwords and has some.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`].
    pub const fn aligned(self) -> Result<Self, Status> {
        let whole = self.start.is_multiple_of(UNIT_BYTES) && self.length.is_multiple_of(UNIT_BYTES);
        if whole && self.length > 0 { Ok(self) } else { Err(Status::INVALID_FIELD) }
    }
}

/// A source of Memory Copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Blocks of a block namespace.
    Blocks {
        /// Namespace id.
        nsid: u32,
        /// Its blocks.
        extent: Extent,
    },
    /// Bytes of a memory namespace.
    Memory {
        /// Range.
        nsid: u32,
        /// Its bytes.
        range: Range,
    },
}

/// A parsed command of a memory namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Copy into this memory: that many source descriptors follow as data.
    Copy {
        /// Destination, and total number of bytes.
        to: Range,
        /// Number of sources, 1 to 256.
        sources: u16,
        /// Their descriptor format.
        format: u8,
    },
    /// Read bytes.
    Read(Range),
    /// Write bytes.
    Write(Range),
    /// Make bytes zero.
    Fill(Range),
}

impl Command {
    /// Parses a submission queue entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`]; [`Status::INVALID_FIELD`] for what is not on dwords or empty,
    /// [`Status::INCOMPATIBLE_NAMESPACE`] for an unknown descriptor format.
    pub fn parse(sqe: &Sqe) -> Result<Self, Status> {
        let access = || {
            let view = Access::from_bytes(*sqe.as_bytes());
            Range { start: view.start(), length: view.length().into() }.aligned()
        };
        match Slm(sqe.opcode()) {
            Slm::READ => access().map(Self::Read),
            Slm::WRITE => access().map(Self::Write),
            Slm::FILL => access().map(Self::Fill),
            Slm::COPY => {
                let view = Copy::from_bytes(*sqe.as_bytes());
                let to = Range { start: view.start(), length: view.length() }.aligned()?;
                let format = view.format() & 0xF;
                if !FORMATS_BLOCK.contains(&format) && format != FORMAT_MEMORY {
                    return Err(Status::INCOMPATIBLE_NAMESPACE);
                }
                Ok(Self::Copy { to, sources: u16::from(view.nr()) + 1, format })
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Returns true if the command changes a byte.
    pub const fn changes(opcode: u8) -> bool {
        matches!(Slm(opcode), Slm::COPY | Slm::FILL | Slm::WRITE)
    }
}

/// Returns the sources of Memory Copy in one of its formats.
pub fn sources(format: u8, data: &[u8]) -> Vec<Source> {
    if format == FORMAT_MEMORY {
        let sources = memory_sources(data).into_iter();
        return sources.map(|(nsid, range)| Source::Memory { nsid, range }).collect();
    }
    let records = data.as_chunks::<32>().0.iter().map(|bytes| BlockSource::from_bytes(*bytes));
    let extent = |at: &BlockSource| Extent { slba: at.slba(), blocks: u32::from(at.nlb()) + 1 };
    records.map(|at| Source::Blocks { nsid: at.nsid(), extent: extent(&at) }).collect()
}

/// Returns the sources of descriptor format 4h: namespace and bytes. The Copy command of blocks
/// takes them too.
pub fn memory_sources(data: &[u8]) -> Vec<(u32, Range)> {
    let records = data.as_chunks::<32>().0.iter().map(|bytes| MemorySource::from_bytes(*bytes));
    let range = |at: &MemorySource| Range { start: at.start(), length: at.length().into() };
    records.map(|at| (at.nsid(), range(&at))).collect()
}

fn access(opcode: Slm, nsid: u32, range: Range) -> Sqe {
    let mut view = Access::from_bytes(*Sqe::new(opcode.0, nsid).as_bytes());
    let length = u32::try_from(range.length).expect("a command's range is below 4 GiB");
    view.set_start(range.start).set_length(length);
    Sqe::from_bytes(*view.as_bytes())
}

/// Returns a Memory Read command.
///
/// # Panics
/// From 4 GiB on, as [`write()`] and [`fill`].
pub fn read(nsid: u32, range: Range) -> Sqe {
    access(Slm::READ, nsid, range)
}

/// Returns a Memory Write command.
pub fn write(nsid: u32, range: Range) -> Sqe {
    access(Slm::WRITE, nsid, range)
}

/// Returns a Memory Fill command, which zeroes the bytes.
pub fn fill(nsid: u32, range: Range) -> Sqe {
    access(Slm::FILL, nsid, range)
}

/// Returns a Memory Copy command to byte `to`, and its data. The sources are all blocks or all
/// memory; `block_bytes` is the size of a block.
///
/// # Panics
/// When there are no sources, more than 256, both kinds, or one that its descriptor cannot say.
pub fn copy(nsid: u32, sources: &[Source], to: u64, block_bytes: u32) -> (Sqe, Vec<u8>) {
    let mut view = Copy::from_bytes(*Sqe::new(Slm::COPY.0, nsid).as_bytes());
    let nr = sources.len().checked_sub(1).and_then(|last| u8::try_from(last).ok());
    let is_memory = |source: &Source| matches!(source, Source::Memory { .. });
    let format = if sources.iter().all(is_memory) { FORMAT_MEMORY } else { FORMATS_BLOCK[0] };
    let one_kind = format == FORMAT_MEMORY || !sources.iter().any(is_memory);
    assert!(one_kind, "a copy's sources are of one kind");
    let length = |source: &Source| match source {
        Source::Blocks { extent, .. } => u64::from(extent.blocks) * u64::from(block_bytes),
        Source::Memory { range, .. } => range.length,
    };
    view.set_start(to).set_length(sources.iter().map(length).sum());
    view.set_nr(nr.expect("1 to 256 sources")).set_format(format);
    let data = sources.iter().flat_map(Source::descriptor).collect();
    (Sqe::from_bytes(*view.as_bytes()), data)
}

impl Source {
    fn descriptor(&self) -> [u8; 32] {
        match *self {
            Self::Blocks { nsid, extent } => {
                let nlb = u16::try_from(extent.blocks - 1).expect("1 to 65,536 blocks");
                let mut at = BlockSource::zeroed();
                at.set_nsid(nsid).set_slba(extent.slba).set_nlb(nlb);
                *at.as_bytes()
            }
            Self::Memory { nsid, range } => {
                let mut at = MemorySource::zeroed();
                let length = u32::try_from(range.length).expect("a source is below 4 GiB");
                at.set_nsid(nsid).set_start(range.start).set_length(length);
                *at.as_bytes()
            }
        }
    }
}

/// Returns the Copy command of blocks (NVM command set) from memory, to block `to` on, with the
/// data that goes with it.
///
/// # Panics
/// When there are no sources or more than 256, or one of 4 GiB.
pub fn copy_to_blocks(nsid: u32, sources: &[(u32, Range)], to: u64) -> (Sqe, Vec<u8>) {
    let mut view = nvm::Copy::from_bytes(*Sqe::new(crate::opcode::Nvm::COPY.0, nsid).as_bytes());
    let nr = sources.len().checked_sub(1).and_then(|last| u8::try_from(last).ok());
    view.set_sdlba(to).set_nr(nr.expect("1 to 256 sources")).set_format(FORMAT_MEMORY);
    let descriptor =
        |(nsid, range): &(u32, Range)| Source::Memory { nsid: *nsid, range: *range }.descriptor();
    let data = sources.iter().flat_map(descriptor).collect();
    (Sqe::from_bytes(*view.as_bytes()), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_fields_where_the_specification_has_them() {
        let range = Range { start: 0x0102_0304_0506_0708, length: 0x1000 };
        let sqe = write(4, range);
        let bytes = sqe.as_bytes();
        assert_eq!((bytes[0], bytes[4]), (0x05, 4));
        assert_eq!(bytes[40..48], [8, 7, 6, 5, 4, 3, 2, 1], "SB in dwords 10 and 11");
        assert_eq!(bytes[48..52], [0, 0x10, 0, 0], "LEN in dword 12");
        assert_eq!((read(4, range).opcode(), fill(4, range).opcode()), (0x02, 0x04));
        assert_eq!(Command::parse(&sqe), Ok(Command::Write(range)));
    }

    #[test]
    fn a_copy_of_blocks_has_its_length_destination_and_descriptors() {
        let extent = Extent { slba: 0x11, blocks: 3 };
        let sources = [Source::Blocks { nsid: 1, extent }; 2];
        let (sqe, data) = copy(4, &sources, 0x2000, 512);
        let bytes = sqe.as_bytes();
        assert_eq!(bytes[0], 0x01);
        assert_eq!(bytes[8..16], (6 * 512u64).to_le_bytes(), "LEN in dwords 2 and 3");
        assert_eq!(bytes[40..48], 0x2000u64.to_le_bytes(), "SDADDR");
        assert_eq!((bytes[48], bytes[49]), (1, 2), "NR 0's based, format 2h");
        assert_eq!((data.len(), data[0], data[8], data[16]), (64, 1, 0x11, 2));
        assert_eq!(super::sources(2, &data), sources);
        let to = Range { start: 0x2000, length: 6 * 512 };
        assert_eq!(Command::parse(&sqe), Ok(Command::Copy { to, sources: 2, format: 2 }));
    }

    #[test]
    fn a_copy_of_memory_has_format_4h_in_both_command_sets() {
        let range = Range { start: 8, length: 0x0400 };
        let (sqe, data) = copy(4, &[Source::Memory { nsid: 4, range }], 0x2000, 512);
        assert_eq!(sqe.as_bytes()[49], 4);
        assert_eq!((data[0], data[8], data[16..20].to_vec()), (4, 8, vec![0, 4, 0, 0]));
        assert_eq!(super::sources(4, &data), [Source::Memory { nsid: 4, range }]);
        let (sqe, same) = copy_to_blocks(1, &[(4, range)], 7);
        assert_eq!((sqe.opcode(), sqe.as_bytes()[49], same), (0x19, 4, data));
        let parsed = nvm::Command::parse(&sqe);
        let expected = nvm::Command::CopyMemory { slba: 7, ranges: 1, fua: false };
        assert_eq!(parsed, Ok(expected));
    }

    #[test]
    fn what_is_not_on_dwords_or_empty_is_refused() {
        for (start, length) in [(1, 4), (4, 6), (0, 0)] {
            let parsed = Command::parse(&read(4, Range { start, length }));
            assert_eq!(parsed, Err(Status::INVALID_FIELD), "{start} {length}");
        }
        let (mut sqe, _) =
            copy(4, &[Source::Memory { nsid: 4, range: Range { start: 0, length: 4 } }], 0, 1);
        sqe.set_cdw12(sqe.cdw12() | 0xF00);
        assert_eq!(Command::parse(&sqe), Err(Status::INCOMPATIBLE_NAMESPACE));
        assert_eq!(Command::parse(&Sqe::new(0, 4)), Err(Status::INVALID_OPCODE), "no Flush");
    }

    #[test]
    fn ranges_overlap_when_they_share_a_byte() {
        let range = |start, length| Range { start, length };
        assert!(range(0, 8).overlaps(range(4, 8)) && range(4, 8).overlaps(range(0, 8)));
        assert!(!range(0, 4).overlaps(range(4, 4)) && !range(4, 4).overlaps(range(0, 4)));
        assert!(range(u64::MAX - 1, 9).overlaps(range(0, u64::MAX)));
    }
}
