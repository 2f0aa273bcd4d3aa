//! NVM (block) command set: what a block namespace is asked to do.
//!
//! Source: NVM Command Set Specification. The commands here carry no data. Their counts are already
//! converted from 0's based.

use crate::capsule::{FLAGS_FUSED, Sqe};
use crate::opcode::Nvm;
use crate::status::Status;
use crate::wire::layout;

layout! {
    /// Read, Write, Compare, Write Zeroes and Verify command.
    pub struct ReadWrite[64] {
        /// Starting LBA (SLBA).
        slba / set_slba: u64 @ 40,
        /// Number of Logical Blocks (NLB), 0's based.
        nlb / set_nlb: u16 @ 48,
        /// Control: bit 15 limited retry, bit 14 Force Unit Access, bits 13:10 protection, bit 9
        /// Deallocate (Write Zeroes).
        control / set_control: u16 @ 50,
    }
}

/// Descriptor format of Copy whose sources are bytes of memory (Subsystem Local Memory).
pub const FORMAT_MEMORY: u8 = 4;
/// Control bit: Force Unit Access (FUA).
pub const CONTROL_FUA: u16 = 1 << 14;
/// Control bits: Protection Information (PRINFO), which our namespaces do not have.
pub const CONTROL_PRINFO: u16 = 0xF << 10;
/// Control bit of Write Zeroes: Deallocate (DEAC).
pub const CONTROL_DEALLOCATE: u16 = 1 << 9;

layout! {
    /// Dataset Management command.
    pub struct DatasetManagement[64] {
        /// Number of Ranges (NR), 0's based.
        nr / set_nr: u8 @ 40,
        /// Attributes: bit 2 Deallocate (AD), bits 1:0 hints.
        attributes / set_attributes: u8 @ 44,
    }
}

/// Attribute of Dataset Management: Deallocate (AD).
pub const ATTRIBUTE_DEALLOCATE: u8 = 1 << 2;

layout! {
    /// One range of Dataset Management.
    pub struct DatasetRange[16] {
        /// Context Attributes: hints.
        attributes / set_attributes: u32 @ 0,
        /// Length in logical blocks (not 0's based).
        blocks / set_blocks: u32 @ 4,
        /// Starting LBA (SLBA).
        slba / set_slba: u64 @ 8,
    }
}

layout! {
    /// Copy command.
    pub struct Copy[64] {
        /// Starting Destination LBA (SDLBA).
        sdlba / set_sdlba: u64 @ 40,
        /// Number of Ranges (NR), 0's based.
        nr / set_nr: u8 @ 48,
        /// Descriptor Format (bits 3:0) and Protection Information for reading (bits 7:4).
        format / set_format: u8 @ 49,
        /// Control: bit 14 Force Unit Access, bits 13:10 protection for writing.
        control / set_control: u16 @ 50,
    }
}

layout! {
    /// One source range of Copy, descriptor format 0.
    pub struct CopyRange[32] {
        /// Starting LBA (SLBA).
        slba / set_slba: u64 @ 8,
        /// Number of Logical Blocks (NLB), 0's based.
        nlb / set_nlb: u16 @ 16,
    }
}

/// Maximum source ranges of one Copy (MSRC).
pub const COPY_RANGES_MAX: u16 = 128;

/// Maximum blocks of one command: NLB is 16 bits, 0's based.
pub const BLOCKS_MAX: u32 = 1 << 16;

/// A run of logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First logical block.
    pub slba: u64,
    /// Number of logical blocks: 1 to [`BLOCKS_MAX`], or any number in a range of Dataset
    /// Management.
    pub blocks: u32,
}

/// A parsed command of a block namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Make completed writes durable.
    Flush,
    /// Read blocks.
    Read(Extent),
    /// Write blocks; durable at completion when `fua`.
    Write {
        /// Destination.
        extent: Extent,
        /// Force Unit Access.
        fua: bool,
    },
    /// Compare blocks with the host's data.
    Compare(Extent),
    /// Make blocks read as zeros.
    WriteZeroes {
        /// Range of blocks.
        extent: Extent,
        /// Durable at completion.
        fua: bool,
        /// Their space may be given back.
        deallocate: bool,
    },
    /// Dataset Management: that many ranges follow as data.
    Dataset {
        /// Number of ranges, 1 to 256.
        ranges: u16,
        /// Give their space back; without it the ranges are hints.
        deallocate: bool,
    },
    /// Read blocks without moving them to the host.
    Verify(Extent),
    /// Copy: that many source ranges follow as data.
    Copy {
        /// First block written.
        slba: u64,
        /// Number of source ranges, 1 to 256.
        ranges: u16,
        /// Durable at completion.
        fua: bool,
    },
    /// Copy from memory: that many source ranges follow as data, in descriptor format 4h.
    CopyMemory {
        /// First block written.
        slba: u64,
        /// Number of source ranges, 1 to 256.
        ranges: u16,
        /// Durable at completion.
        fua: bool,
    },
}

/// A command's place in a fused operation (FUSE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fused {
    /// A command of its own.
    Single,
    /// First of a pair.
    First,
    /// Second of a pair.
    Second,
    /// The reserved value.
    Reserved,
}

impl Fused {
    /// Returns the extent of a command's queue entry.
    pub const fn of(sqe: &Sqe) -> Self {
        match sqe.flags() & FLAGS_FUSED {
            0 => Self::Single,
            1 => Self::First,
            2 => Self::Second,
            _ => Self::Reserved,
        }
    }
}

impl Command {
    /// Parses a submission queue entry that stands for itself.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] for other opcodes, [`Status::INVALID_FIELD`] for fused commands
    /// and protection information.
    pub fn parse(sqe: &Sqe) -> Result<Self, Status> {
        match Fused::of(sqe) {
            Fused::Single => Self::parse_any(sqe),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Parses a submission queue entry whatever its place in a fused operation.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_any(sqe: &Sqe) -> Result<Self, Status> {
        match Nvm(sqe.opcode()) {
            Nvm::FLUSH => Ok(Self::Flush),
            Nvm::READ | Nvm::WRITE | Nvm::COMPARE | Nvm::WRITE_ZEROES | Nvm::VERIFY => {
                Self::parse_extent(sqe)
            }
            Nvm::DATASET_MANAGEMENT => {
                let view = DatasetManagement::from_bytes(*sqe.as_bytes());
                let deallocate = view.attributes() & ATTRIBUTE_DEALLOCATE != 0;
                Ok(Self::Dataset { ranges: u16::from(view.nr()) + 1, deallocate })
            }
            Nvm::COPY => {
                let view = Copy::from_bytes(*sqe.as_bytes());
                // No protection information either way: it is in the format's upper half too.
                if view.control() & CONTROL_PRINFO != 0 {
                    return Err(Status::INVALID_FIELD);
                }
                let fua = view.control() & CONTROL_FUA != 0;
                let (slba, ranges) = (view.sdlba(), u16::from(view.nr()) + 1);
                match view.format() {
                    0 => Ok(Self::Copy { slba, ranges, fua }),
                    FORMAT_MEMORY => Ok(Self::CopyMemory { slba, ranges, fua }),
                    _ => Err(Status::INVALID_FIELD),
                }
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn parse_extent(sqe: &Sqe) -> Result<Self, Status> {
        let view = ReadWrite::from_bytes(*sqe.as_bytes());
        let control = view.control();
        if control & CONTROL_PRINFO != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let extent = Extent { slba: view.slba(), blocks: u32::from(view.nlb()) + 1 };
        let fua = control & CONTROL_FUA != 0;
        match Nvm(sqe.opcode()) {
            Nvm::READ => Ok(Self::Read(extent)),
            Nvm::WRITE => Ok(Self::Write { extent, fua }),
            Nvm::COMPARE => Ok(Self::Compare(extent)),
            Nvm::WRITE_ZEROES => {
                let deallocate = control & CONTROL_DEALLOCATE != 0;
                Ok(Self::WriteZeroes { extent, fua, deallocate })
            }
            Nvm::VERIFY => Ok(Self::Verify(extent)),
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Returns true if the command names its first block in dwords 10 and 11.
    pub const fn has_lba(opcode: u8) -> bool {
        matches!(
            Nvm(opcode),
            Nvm::WRITE | Nvm::READ | Nvm::COMPARE | Nvm::WRITE_ZEROES | Nvm::VERIFY | Nvm::COPY
        )
    }

    /// Returns true if the command may change a block.
    pub const fn changes(opcode: u8) -> bool {
        matches!(Nvm(opcode), Nvm::WRITE | Nvm::WRITE_ZEROES | Nvm::DATASET_MANAGEMENT | Nvm::COPY)
    }
}

/// Returns the extents of a fused Compare and Write: one extent for both.
///
/// # Errors
/// [`Status::INVALID_FIELD`] for any other pair, or two different extents.
pub fn compare_and_write(first: &Sqe, second: &Sqe) -> Result<(Extent, bool), Status> {
    match (Command::parse_any(first)?, Command::parse_any(second)?) {
        (Command::Compare(compared), Command::Write { extent, fua })
            if compared == extent && first.nsid() == second.nsid() =>
        {
            Ok((extent, fua))
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Returns the ranges of Dataset Management; those of no blocks are left out.
pub fn dataset_ranges(data: &[u8]) -> Vec<Extent> {
    let ranges = data.as_chunks::<16>().0.iter().map(|bytes| DatasetRange::from_bytes(*bytes));
    let extents = ranges.map(|range| Extent { slba: range.slba(), blocks: range.blocks() });
    extents.filter(|extent| extent.blocks > 0).collect()
}

/// Returns the source ranges of Copy.
pub fn copy_ranges(data: &[u8]) -> Vec<Extent> {
    let ranges = data.as_chunks::<32>().0.iter().map(|bytes| CopyRange::from_bytes(*bytes));
    ranges.map(|range| Extent { slba: range.slba(), blocks: u32::from(range.nlb()) + 1 }).collect()
}

fn extent_command(opcode: Nvm, nsid: u32, extent: Extent, control: u16) -> Sqe {
    let mut view = ReadWrite::from_bytes(*Sqe::new(opcode.0, nsid).as_bytes());
    let nlb = u16::try_from(extent.blocks - 1).expect("an extent has 1 to 65,536 blocks");
    view.set_slba(extent.slba).set_nlb(nlb).set_control(control);
    Sqe::from_bytes(*view.as_bytes())
}

/// Returns a Read command.
///
/// # Panics
/// When the extent has no block or more than [`BLOCKS_MAX`].
pub fn read(nsid: u32, extent: Extent) -> Sqe {
    extent_command(Nvm::READ, nsid, extent, 0)
}

/// Returns a Write command, durable at completion if `fua`.
///
/// # Panics
/// When the extent has no block or more than [`BLOCKS_MAX`].
pub fn write(nsid: u32, extent: Extent, fua: bool) -> Sqe {
    extent_command(Nvm::WRITE, nsid, extent, if fua { CONTROL_FUA } else { 0 })
}

/// Returns a Compare command.
///
/// # Panics
/// When the extent has no block or more than [`BLOCKS_MAX`].
pub fn compare(nsid: u32, extent: Extent) -> Sqe {
    extent_command(Nvm::COMPARE, nsid, extent, 0)
}

/// Returns a Write Zeroes command; with `deallocate` the drive may free the blocks' space.
///
/// # Panics
/// When the extent has no block or more than [`BLOCKS_MAX`].
pub fn write_zeroes(nsid: u32, extent: Extent, deallocate: bool) -> Sqe {
    let control = if deallocate { CONTROL_DEALLOCATE } else { 0 };
    extent_command(Nvm::WRITE_ZEROES, nsid, extent, control)
}

/// Returns a Copy command in descriptor format 0, and its data.
///
/// # Panics
/// When there are no sources or more than 256, or one has no block or more than [`BLOCKS_MAX`].
pub fn copy(nsid: u32, sources: &[Extent], to: u64) -> (Sqe, Vec<u8>) {
    let mut view = Copy::from_bytes(*Sqe::new(Nvm::COPY.0, nsid).as_bytes());
    let nr = sources.len().checked_sub(1).and_then(|last| u8::try_from(last).ok());
    view.set_sdlba(to).set_nr(nr.expect("1 to 256 sources"));
    let range = |source: &Extent| {
        let nlb = u16::try_from(source.blocks - 1).expect("a source has 1 to 65,536 blocks");
        let mut range = CopyRange::zeroed();
        range.set_slba(source.slba).set_nlb(nlb);
        *range.as_bytes()
    };
    (Sqe::from_bytes(*view.as_bytes()), sources.iter().flat_map(range).collect())
}

/// Returns Dataset Management that deallocates these ranges, and its data.
///
/// # Panics
/// When there are no ranges or more than 256.
pub fn deallocate(nsid: u32, ranges: &[Extent]) -> (Sqe, Vec<u8>) {
    let sqe = Sqe::new(Nvm::DATASET_MANAGEMENT.0, nsid);
    let mut view = DatasetManagement::from_bytes(*sqe.as_bytes());
    let nr = ranges.len().checked_sub(1).and_then(|last| u8::try_from(last).ok());
    view.set_nr(nr.expect("1 to 256 ranges")).set_attributes(ATTRIBUTE_DEALLOCATE);
    let range = |extent: &Extent| {
        let mut range = DatasetRange::zeroed();
        range.set_slba(extent.slba).set_blocks(extent.blocks);
        *range.as_bytes()
    };
    (Sqe::from_bytes(*view.as_bytes()), ranges.iter().flat_map(range).collect())
}

/// Returns a Flush command; the opcode is the same in every I/O command set.
pub fn flush(nsid: u32) -> Sqe {
    Sqe::new(Nvm::FLUSH.0, nsid)
}
