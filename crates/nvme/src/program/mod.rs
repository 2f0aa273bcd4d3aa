//! Programs that hosts load: the admin commands of a compute namespace, memory ranges, and logs.
//!
//! Source: NVM Express Computational Programs Command Set Specification 1.1, "Load Program",
//! "Program Activation Management" and "Memory Range Set Management". We had no access to its text,
//! only to public source code that cites it, so every offset stands in this module and nowhere
//! else. Not verified, because sources contradict each other or are silent: which selection
//! activates a program ([`ACTIVATE`]), and the logs in `logs`.

mod logs;

use crate::capsule::Sqe;
use crate::memory::Range;
use crate::opcode::Admin;
use crate::status::Status;
use crate::wire::{bits, layout};

pub use logs::{
    LIST_HEADER_BYTES, ProgramType, ProgramTypeEntry, RangeSet, RangeSetEntry, parse_program_types,
    parse_range_sets, program_types, range_sets,
};

/// First program index that a host may load to; below are the drive's own programs.
pub const DOWNLOADABLE_FIRST: u16 = 16;
/// Number of program indexes that a host may load to.
pub const DOWNLOADABLE_COUNT: u16 = 16;
/// Maximum number of loaded programs active at once; MAXACT also counts the drive's own.
pub const ACTIVE_MAX: u16 = 8;
/// Maximum program length in bytes (MAXPB).
pub const PROGRAM_BYTES_MAX: u32 = 4 << 20;
/// Maximum bytes of all loaded programs together.
pub const ALL_PROGRAMS_BYTES_MAX: u32 = 16 << 20;
/// Maximum bytes of a program in one Load Program command.
pub const LOAD_BYTES_MAX: u32 = 1 << 20;
/// Maximum memory range sets at once (MAXMEMRS).
pub const RANGE_SETS_MAX: u16 = 64;
/// Maximum memory ranges in a set, or of one execution (MAXMEMR): the number of streams of an
/// execution.
pub const RANGES_MAX: u8 = 8;
/// Bytes of a range descriptor.
pub const RANGE_BYTES: usize = 32;
/// Maximum bytes of descriptors in the data of one command.
const RANGE_DATA_BYTES_MAX: u32 = 8192;

/// Selection of Program Activation Management: deactivate. Sources contradict each other here.
pub const DEACTIVATE: u32 = 0;
/// Selection of Program Activation Management: activate.
pub const ACTIVATE: u32 = 1;

bits! {
    /// Dword 10 of Load Program.
    pub struct LoadSelect: u32 {
        /// Program Index (PIND).
        pind / with_pind: 0..=15,
        /// Program Type (PTYPE).
        ptype / with_ptype: 16..=23,
        /// Select (SEL): 0 load, 1 unload.
        unload / with_unload: 24..=24,
        /// Program Identifier Type (PIT): 0 none, 1 unique.
        pit / with_pit: 25..=27,
    }
}

layout! {
    /// Load Program command.
    pub struct LoadProgram[64] {
        /// [`LoadSelect`].
        select / set_select: u32 @ 40,
        /// Program Size (PSIZE) in bytes.
        size / set_size: u32 @ 44,
        /// Program Identifier (PID).
        pid / set_pid: u64 @ 48,
        /// Number of Bytes (NUMB) that come with this command.
        bytes / set_bytes: u32 @ 56,
        /// Load Offset (LOFF) in bytes.
        offset / set_offset: u32 @ 60,
    }
}

bits! {
    /// Dword 10 of Program Activation Management.
    pub struct ActivationSelect: u32 {
        /// Program Index (PIND).
        pind / with_pind: 0..=15,
        /// Select (SEL): [`ACTIVATE`] or [`DEACTIVATE`].
        select / with_select: 16..=19,
    }
}

bits! {
    /// Dword 10 of Memory Range Set Management.
    pub struct RangeSetSelect: u32 {
        /// Select (SEL): 0 create, 1 delete.
        select / with_select: 0..=3,
        /// Memory Range Set ID (RSID), of a set to delete.
        rsid / with_rsid: 16..=31,
    }
}

layout! {
    /// One memory range: bytes of a memory namespace.
    pub struct RangeDescriptor[32] {
        /// Memory Namespace Identifier (MNSID).
        nsid / set_nsid: u32 @ 0,
        /// Length (LEN) in bytes.
        length / set_length: u32 @ 4,
        /// Start Byte (SB).
        start / set_start: u64 @ 8,
    }
}

/// A memory range: a namespace, and bytes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// Memory namespace.
    pub nsid: u32,
    /// Its bytes.
    pub range: Range,
}

impl MemoryRange {
    /// Returns the ranges that stand in `data`, as many as are whole.
    pub fn parse_all(data: &[u8]) -> Vec<Self> {
        let records = data.as_chunks::<RANGE_BYTES>().0.iter();
        let parse = |bytes: &[u8; RANGE_BYTES]| {
            let at = RangeDescriptor::from_bytes(*bytes);
            let range = Range { start: at.start(), length: at.length().into() };
            Self { nsid: at.nsid(), range }
        };
        records.map(parse).collect()
    }

    /// Its descriptor.
    ///
    /// # Panics
    /// From 4 GiB on.
    pub fn encode(&self) -> [u8; RANGE_BYTES] {
        let mut at = RangeDescriptor::zeroed();
        let length = u32::try_from(self.range.length).expect("a memory range is below 4 GiB");
        at.set_nsid(self.nsid).set_length(length).set_start(self.range.start);
        *at.as_bytes()
    }
}

/// Part of a program that is being loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Program index.
    pub index: u16,
    /// Program type.
    pub ptype: u8,
    /// Program identifier type.
    pub pit: u8,
    /// Program identifier.
    pub pid: u64,
    /// Length of the whole program in bytes.
    pub size: u32,
    /// Offset of these bytes in the program.
    pub offset: u32,
    /// Number of bytes that come with the command.
    pub bytes: u32,
}

/// A parsed admin command of a compute namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Load a part of a program; the last one makes it a program.
    Load(Part),
    /// Forget a program.
    Unload {
        /// Program index.
        index: u16,
    },
    /// Allow or forbid executions of a program.
    Activate {
        /// Program index.
        index: u16,
        /// Allow.
        active: bool,
    },
    /// Make a memory range set of so many ranges, which come as data.
    CreateRangeSet {
        /// Number of ranges.
        ranges: u8,
    },
    /// Forget a memory range set.
    DeleteRangeSet {
        /// Its identifier.
        rsid: u16,
    },
}

impl Command {
    /// Returns true if an opcode of the admin queue is one of these.
    pub const fn has(opcode: u8) -> bool {
        matches!(
            Admin(opcode),
            Admin::LOAD_PROGRAM | Admin::PROGRAM_ACTIVATION | Admin::MEMORY_RANGE_SET
        )
    }

    /// Returns the maximum bytes of data of a command with this opcode.
    pub const fn data_bytes_max(opcode: u8) -> u32 {
        match Admin(opcode) {
            Admin::LOAD_PROGRAM => LOAD_BYTES_MAX,
            _ => RANGE_DATA_BYTES_MAX,
        }
    }

    /// Parses a submission queue entry, with the number of bytes that came with it.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`]; [`Status::INVALID_FIELD`] for unknown selections, empty
    /// programs, parts that do not lie in their program or are not what came;
    /// [`Status::PROGRAM_TOO_BIG`]; [`Status::RANGES_EXCEEDED`].
    pub fn parse(sqe: &Sqe, data: usize) -> Result<Self, Status> {
        match Admin(sqe.opcode()) {
            Admin::LOAD_PROGRAM => Self::parse_load(sqe, data),
            Admin::PROGRAM_ACTIVATION => {
                let view = ActivationSelect(sqe.cdw10());
                let index = index(view.pind());
                match view.select() {
                    ACTIVATE => Ok(Self::Activate { index, active: true }),
                    DEACTIVATE => Ok(Self::Activate { index, active: false }),
                    _ => Err(Status::INVALID_FIELD),
                }
            }
            Admin::MEMORY_RANGE_SET => {
                let view = RangeSetSelect(sqe.cdw10());
                let [ranges, ..] = sqe.cdw11().to_le_bytes();
                match view.select() {
                    0 if ranges > RANGES_MAX => Err(Status::RANGES_EXCEEDED),
                    0 if ranges == 0 || data != usize::from(ranges) * RANGE_BYTES => {
                        Err(Status::INVALID_FIELD)
                    }
                    0 => Ok(Self::CreateRangeSet { ranges }),
                    1 => Ok(Self::DeleteRangeSet { rsid: index(view.rsid()) }),
                    _ => Err(Status::INVALID_FIELD),
                }
            }
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    fn parse_load(sqe: &Sqe, data: usize) -> Result<Self, Status> {
        let view = LoadProgram::from_bytes(*sqe.as_bytes());
        let select = LoadSelect(view.select());
        let index = index(select.pind());
        if select.unload() == 1 {
            return Ok(Self::Unload { index });
        }
        if view.size() > PROGRAM_BYTES_MAX {
            return Err(Status::PROGRAM_TOO_BIG);
        }
        let end = view.offset().checked_add(view.bytes());
        let inside = end.is_some_and(|end| end <= view.size());
        if view.bytes() == 0 || !inside || view.bytes() as usize != data {
            return Err(Status::INVALID_FIELD);
        }
        let [_, _, ptype, _] = view.select().to_le_bytes();
        let [pit, ..] = select.pit().to_le_bytes();
        let (size, offset, bytes) = (view.size(), view.offset(), view.bytes());
        Ok(Self::Load(Part { index, ptype, pit, pid: view.pid(), size, offset, bytes }))
    }
}

/// Returns the 16 bits of a field.
fn index(field: u32) -> u16 {
    u16::try_from(field).expect("a field of 16 bits")
}

fn command(opcode: Admin, nsid: u32, dword: u32) -> Sqe {
    let mut sqe = Sqe::new(opcode.0, nsid);
    sqe.set_cdw10(dword);
    sqe
}

/// Returns Load Program with one part.
pub fn load(nsid: u32, part: &Part) -> Sqe {
    let select = LoadSelect::default().with_pind(part.index.into()).with_ptype(part.ptype.into());
    let sqe = command(Admin::LOAD_PROGRAM, nsid, select.with_pit(part.pit.into()).0);
    let mut view = LoadProgram::from_bytes(*sqe.as_bytes());
    view.set_size(part.size).set_pid(part.pid).set_bytes(part.bytes).set_offset(part.offset);
    Sqe::from_bytes(*view.as_bytes())
}

/// Returns Load Program that unloads.
pub fn unload(nsid: u32, index: u16) -> Sqe {
    let select = LoadSelect::default().with_pind(index.into()).with_unload(1);
    command(Admin::LOAD_PROGRAM, nsid, select.0)
}

/// Returns Program Activation Management.
pub fn activate(nsid: u32, index: u16, active: bool) -> Sqe {
    let select = if active { ACTIVATE } else { DEACTIVATE };
    let select = ActivationSelect::default().with_pind(index.into()).with_select(select);
    command(Admin::PROGRAM_ACTIVATION, nsid, select.0)
}

/// Returns Memory Range Set Management that creates a set, and its data.
///
/// # Panics
/// When there are more than 255 ranges.
pub fn create_range_set(nsid: u32, ranges: &[MemoryRange]) -> (Sqe, Vec<u8>) {
    let mut sqe = command(Admin::MEMORY_RANGE_SET, nsid, 0);
    let count = u8::try_from(ranges.len()).expect("few ranges");
    sqe.set_cdw11(count.into());
    (sqe, ranges.iter().flat_map(MemoryRange::encode).collect())
}

/// Returns Memory Range Set Management that deletes a set.
pub fn delete_range_set(nsid: u32, rsid: u16) -> Sqe {
    let select = RangeSetSelect::default().with_select(1).with_rsid(rsid.into());
    command(Admin::MEMORY_RANGE_SET, nsid, select.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part = Part {
        index: 16,
        ptype: 0xC1,
        pit: 1,
        pid: 0x0807_0605_0403_0201,
        size: 100,
        offset: 60,
        bytes: 40,
    };

    fn range(start: u64, length: u64) -> MemoryRange {
        MemoryRange { nsid: 4, range: Range { start, length } }
    }

    #[test]
    fn load_program_has_its_fields_where_the_specification_has_them() {
        let sqe = load(5, &PART);
        let bytes = sqe.as_bytes();
        assert_eq!((bytes[0], bytes[4]), (0x85, 5));
        assert_eq!(bytes[40..44], [16, 0, 0xC1, 1 << 1], "PIND, PTYPE, PIT in bits 27:25");
        assert_eq!(bytes[44..48], [100, 0, 0, 0], "PSIZE");
        assert_eq!(bytes[48..56], [1, 2, 3, 4, 5, 6, 7, 8], "PID");
        assert_eq!((bytes[56], bytes[60]), (40, 60), "NUMB, LOFF");
        assert_eq!(Command::parse(&sqe, 40), Ok(Command::Load(PART)));
        assert_eq!(unload(5, 17).as_bytes()[40..44], [17, 0, 0, 1], "SEL in bit 24");
        assert_eq!(Command::parse(&unload(5, 17), 0), Ok(Command::Unload { index: 17 }));
    }

    #[test]
    fn parts_that_are_not_part_of_their_program_are_refused() {
        let parse = |part: Part, data| Command::parse(&load(5, &part), data);
        assert_eq!(parse(Part { offset: 61, ..PART }, 40), Err(Status::INVALID_FIELD));
        assert_eq!(parse(Part { offset: u32::MAX, ..PART }, 40), Err(Status::INVALID_FIELD));
        assert_eq!(parse(Part { bytes: 0, ..PART }, 0), Err(Status::INVALID_FIELD));
        assert_eq!(parse(PART, 39), Err(Status::INVALID_FIELD));
        let size = PROGRAM_BYTES_MAX + 1;
        assert_eq!(parse(Part { size, ..PART }, 40), Err(Status::PROGRAM_TOO_BIG));
    }

    #[test]
    fn activation_and_range_sets_have_their_fields_where_the_specification_has_them() {
        let sqe = activate(5, 16, true);
        assert_eq!((sqe.opcode(), sqe.cdw10()), (0x88, 1 << 16 | 16));
        assert_eq!(Command::parse(&sqe, 0), Ok(Command::Activate { index: 16, active: true }));
        assert_eq!(activate(5, 16, false).cdw10(), 16);
        let (sqe, data) = create_range_set(5, &[range(64, 32), range(0, 8)]);
        assert_eq!((sqe.opcode(), sqe.cdw10(), sqe.cdw11()), (0x89, 0, 2));
        assert_eq!((data.len(), data[0], data[4], data[8]), (64, 4, 32, 64), "MNSID, LEN, SB");
        assert_eq!(MemoryRange::parse_all(&data), [range(64, 32), range(0, 8)]);
        assert_eq!(Command::parse(&sqe, 64), Ok(Command::CreateRangeSet { ranges: 2 }));
        assert_eq!(Command::parse(&sqe, 32), Err(Status::INVALID_FIELD));
        let sqe = delete_range_set(5, 7);
        assert_eq!(sqe.cdw10(), 7 << 16 | 1);
        assert_eq!(Command::parse(&sqe, 0), Ok(Command::DeleteRangeSet { rsid: 7 }));
        let (many, data) = create_range_set(5, &[range(0, 4); 9]);
        assert_eq!(Command::parse(&many, data.len()), Err(Status::RANGES_EXCEEDED));
    }
}
