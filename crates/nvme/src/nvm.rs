//! NVM (block) command set: Read, Write, Flush.
//!
//! Source: NVM Command Set Specification. Never: data. Counts here are already converted from
//! 0's based.

use crate::capsule::{FLAGS_FUSED, Sqe};
use crate::opcode::Nvm;
use crate::status::Status;
use crate::wire::layout;

layout! {
    /// Read and Write command.
    pub struct ReadWrite[64] {
        /// Starting LBA (SLBA).
        slba / set_slba: u64 @ 40,
        /// Number of Logical Blocks (NLB), 0's based.
        nlb / set_nlb: u16 @ 48,
        /// Control: bit 15 limited retry, bit 14 Force Unit Access, bits 13:10 protection.
        control / set_control: u16 @ 50,
    }
}

/// Control bit: Force Unit Access (FUA).
pub const CONTROL_FUA: u16 = 1 << 14;
/// Control bits: Protection Information (PRINFO), which our namespaces do not have.
pub const CONTROL_PRINFO: u16 = 0xF << 10;

/// Most blocks of one command: NLB is 16 bits, 0's based.
pub const BLOCKS_MAX: u32 = 1 << 16;

/// A run of logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First logical block.
    pub slba: u64,
    /// Number of logical blocks, 1 to [`BLOCKS_MAX`].
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
        /// Where to.
        extent: Extent,
        /// Force Unit Access.
        fua: bool,
    },
}

impl Command {
    /// Parses a submission queue entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] for other opcodes, [`Status::INVALID_FIELD`] for fused commands
    /// and protection information.
    pub fn parse(sqe: &Sqe) -> Result<Self, Status> {
        if sqe.flags() & FLAGS_FUSED != 0 {
            return Err(Status::INVALID_FIELD);
        }
        let view = ReadWrite::from_bytes(*sqe.as_bytes());
        let extent = Extent { slba: view.slba(), blocks: u32::from(view.nlb()) + 1 };
        let command = match Nvm(sqe.opcode()) {
            Nvm::FLUSH => return Ok(Self::Flush),
            Nvm::READ => Self::Read(extent),
            Nvm::WRITE => Self::Write { extent, fua: view.control() & CONTROL_FUA != 0 },
            _ => return Err(Status::INVALID_OPCODE),
        };
        if view.control() & CONTROL_PRINFO != 0 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(command)
    }
}

fn read_write(opcode: Nvm, nsid: u32, extent: Extent, control: u16) -> Sqe {
    let mut view = ReadWrite::from_bytes(*Sqe::new(opcode.0, nsid).as_bytes());
    let nlb = u16::try_from(extent.blocks - 1).expect("an extent has 1 to 65,536 blocks");
    view.set_slba(extent.slba).set_nlb(nlb).set_control(control);
    Sqe::from_bytes(*view.as_bytes())
}

/// Read command.
///
/// # Panics
/// When the extent has no block or more than [`BLOCKS_MAX`].
pub fn read(nsid: u32, extent: Extent) -> Sqe {
    read_write(Nvm::READ, nsid, extent, 0)
}

/// Write command, durable at completion when `fua`.
///
/// # Panics
/// When the extent has no block or more than [`BLOCKS_MAX`].
pub fn write(nsid: u32, extent: Extent, fua: bool) -> Sqe {
    read_write(Nvm::WRITE, nsid, extent, if fua { CONTROL_FUA } else { 0 })
}

/// Flush command; the opcode is the same in every I/O command set.
pub fn flush(nsid: u32) -> Sqe {
    Sqe::new(Nvm::FLUSH.0, nsid)
}
