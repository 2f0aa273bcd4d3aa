//! Computational Programs command set: Execute Program and the list of programs.
//!
//! Source: NVM Express Computational Programs Command Set Specification 1.1, "Execute Program" and
//! "Program List". Its text was not available to us, only public source code that cites it, so
//! every offset stands in this module and nowhere else. The header of the Program List log page is
//! unverified.

use crate::capsule::Sqe;
use crate::opcode::Cp;
use crate::program::RANGES_MAX;
use crate::status::Status;
use crate::wire::{bits, layout};

layout! {
    /// Execute Program command.
    pub struct ExecuteProgram[64] {
        /// Program Index (PIND).
        pind / set_pind: u16 @ 8,
        /// Memory Range Set ID (RSID), 0 is none.
        rsid / set_rsid: u16 @ 10,
        /// Number of memory Ranges (NUMR) at the head of the data.
        numr / set_numr: u32 @ 12,
        /// Data Length (DLEN) in bytes.
        dlen / set_dlen: u32 @ 16,
        /// Command parameter 1 (CPARAM1).
        cparam1 / set_cparam1: u64 @ 40,
        /// Command parameter 2 (CPARAM2).
        cparam2 / set_cparam2: u64 @ 48,
    }
}

/// Maximum bytes of data of an execution, in this implementation.
pub const DATA_BYTES_MAX: u32 = 1 << 20;

/// A parsed command of the compute namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Execute a program.
    Execute {
        /// Program index.
        program: u16,
        /// Length of the data in bytes.
        length: u32,
        /// Location of its memory ranges; without ranges the data names the inputs
        /// ([`crate::vendor::execute`]).
        ranges: Ranges,
        /// Limits, and which range it writes.
        controls: Controls,
    },
}

/// Location of the memory ranges of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// There are none.
    None,
    /// In the set with this identifier.
    Set(u16),
    /// This number of descriptors stands at the head of the data.
    Data(u8),
}

bits! {
    /// Command parameter 1 of Execute Program as our drives read it. This is our own definition:
    /// the standard leaves both parameters to programs. A host that does not know it sends zeros.
    pub struct Controls: u64 {
        /// Memory range that the program writes, from 1; 0 for none. The other ranges are its
        /// streams, in order.
        output / with_output: 0..=7,
        /// True if the first 8 bytes of that range receive the number of bytes written, and the
        /// output follows them. Without ranges, that range is the memory that the payload names.
        counted / with_counted: 8..=8,
        /// Maximum memory of the program in MiB; 0 for the drive's limit.
        memory_mib / with_memory_mib: 16..=31,
        /// Maximum time of the execution in ms; 0 for the drive's limit.
        time_ms / with_time_ms: 32..=63,
    }
}

impl Controls {
    /// Undefined bits.
    const RESERVED: u64 = 0xFE00;
}

impl Command {
    /// Parses a submission queue entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`]; [`Status::RANGES_EXCEEDED`] for more ranges than an execution
    /// may have; [`Status::INVALID_FIELD`] for both a set and ranges, data longer than
    /// [`DATA_BYTES_MAX`], and parameters that our drives do not know.
    ///
    /// A DLEN of 0 means all of the data that the command transfers: Linux passes dwords 2, 3 and
    /// 10 to 15 of a command through and leaves dword 4 zero, and every execution has data.
    pub fn parse(sqe: &Sqe) -> Result<Self, Status> {
        if Cp(sqe.opcode()) != Cp::EXECUTE_PROGRAM {
            return Err(Status::INVALID_OPCODE);
        }
        let view = ExecuteProgram::from_bytes(*sqe.as_bytes());
        let ranges = match (view.rsid(), view.numr()) {
            (0, 0) => Ranges::None,
            (0, count) if count > RANGES_MAX.into() => return Err(Status::RANGES_EXCEEDED),
            (0, count) => Ranges::Data(u8::try_from(count).expect("at most 8")),
            (set, 0) => Ranges::Set(set),
            _ => return Err(Status::INVALID_FIELD),
        };
        let controls = Controls(view.cparam1());
        if view.cparam2() != 0 || controls.0 & Controls::RESERVED != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if (ranges == Ranges::None && controls.output() != 0)
            || (ranges != Ranges::None && controls.output() == 0 && controls.counted() != 0)
        {
            return Err(Status::INVALID_FIELD);
        }
        let length = match view.dlen() {
            0 => sqe.sgl().length(),
            length => length,
        };
        if length > DATA_BYTES_MAX {
            return Err(Status::INVALID_FIELD);
        }
        Ok(Self::Execute { program: view.pind(), length, ranges, controls })
    }
}

/// Returns Execute Program `program` with `length` bytes of data.
pub fn execute(nsid: u32, program: u16, length: u32) -> Sqe {
    execute_ranges(nsid, program, length, Ranges::None, Controls::default())
}

/// Returns Execute Program `program` over memory ranges, with `length` bytes of data.
pub fn execute_ranges(
    nsid: u32,
    program: u16,
    length: u32,
    ranges: Ranges,
    controls: Controls,
) -> Sqe {
    let mut view = ExecuteProgram::from_bytes(*Sqe::new(Cp::EXECUTE_PROGRAM.0, nsid).as_bytes());
    view.set_pind(program).set_dlen(length).set_cparam1(controls.0);
    match ranges {
        Ranges::None => {}
        Ranges::Set(rsid) => {
            view.set_rsid(rsid);
        }
        Ranges::Data(count) => {
            view.set_numr(count.into());
        }
    }
    Sqe::from_bytes(*view.as_bytes())
}

layout! {
    /// Program descriptor of the Program List log.
    pub struct ProgramDescriptor[64] {
        /// Occupancy, activation and identifier type.
        state / set_state: u8 @ 0,
        /// Program Type (PTYPE), 0 is device-defined.
        ptype / set_ptype: u8 @ 1,
        /// Program Identifier (PID).
        pid / set_pid: u64 @ 8,
        /// Name of a built-in kernel, zero-terminated: in bytes the standard leaves reserved.
        name / set_name: [16] @ 48,
    }
}

bits! {
    /// First byte of a program descriptor.
    pub struct ProgramState: u8 {
        /// Program entry occupied (PEOCC): 0 empty, 1 downloaded, 2 device-defined.
        occupied / with_occupied: 0..=1,
        /// Activated (ACT).
        active / with_active: 2..=2,
        /// Program Identifier Type (PIT): 0 none, 1 unique.
        pit / with_pit: 3..=5,
    }
}

/// PEOCC of a program that a host has loaded.
pub const DOWNLOADED: u8 = 1;
/// PEOCC of a device-defined program.
pub const DEVICE_DEFINED: u8 = 2;

/// Size in bytes of the provisional Program List header: u32 count, then zeros.
pub const PROGRAM_LIST_HEADER_BYTES: usize = 64;

/// Returns the data of the Program List log: a header with the count, then 64-byte descriptors by
/// index.
pub fn program_list(programs: &[ProgramDescriptor]) -> Vec<u8> {
    let mut data = vec![0; PROGRAM_LIST_HEADER_BYTES];
    let count = u32::try_from(programs.len()).expect("a drive has few programs");
    data[..4].copy_from_slice(&count.to_le_bytes());
    programs.iter().for_each(|program| data.extend_from_slice(program.as_bytes()));
    data
}

/// Parses the data of the Program List log; `None` when it is cut short.
pub fn parse_program_list(data: &[u8]) -> Option<Vec<ProgramDescriptor>> {
    let count = usize::try_from(u32::from_le_bytes(*data.first_chunk()?)).ok()?;
    let rest = data.get(PROGRAM_LIST_HEADER_BYTES..)?;
    if rest.len() / ProgramDescriptor::SIZE < count {
        return None;
    }
    rest.chunks_exact(ProgramDescriptor::SIZE).take(count).map(ProgramDescriptor::parse).collect()
}

/// Returns a device-defined, always active program with this identifier and name.
pub fn device_defined(pid: u64, name: &str) -> ProgramDescriptor {
    let state = ProgramState::default().with_occupied(DEVICE_DEFINED).with_active(1).with_pit(1);
    let mut program = ProgramDescriptor::zeroed();
    program.set_state(state.0).set_pid(pid).set_name(&crate::wire::fixed_text(name, 0));
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capsule::Sgl;

    #[test]
    fn a_program_list_round_trips_and_refuses_short_data() {
        let programs = [device_defined(1, "count"), device_defined(2, "vector-add")];
        let data = program_list(&programs);
        assert_eq!(parse_program_list(&data).unwrap(), programs);
        assert!(parse_program_list(&data[..data.len() - 1]).is_none());
        assert!(parse_program_list(&[255; 64]).is_none());
    }

    #[test]
    fn ranges_and_controls_have_their_bytes() {
        let controls = Controls::default().with_output(2).with_memory_mib(3).with_time_ms(4);
        let sqe = execute_ranges(5, 17, 64, Ranges::Set(9), controls);
        let bytes = sqe.as_bytes();
        assert_eq!((bytes[0], &bytes[8..12], bytes[16]), (1, &[17, 0, 9, 0][..], 64));
        assert_eq!(bytes[40..48], [2, 0, 3, 0, 4, 0, 0, 0]);
        let ranges = Ranges::Set(9);
        let expected = Command::Execute { program: 17, length: 64, ranges, controls };
        assert_eq!(Command::parse(&sqe), Ok(expected));
        let sqe = execute_ranges(5, 17, 64, Ranges::Data(8), Controls::default());
        assert_eq!(sqe.as_bytes()[12..16], [8, 0, 0, 0]);
    }

    #[test]
    fn ranges_are_of_one_kind_and_not_too_many() {
        let parse = |rsid: u16, numr: u32, cparam1: u64| {
            let mut view = ExecuteProgram::from_bytes(*execute(5, 0, 64).as_bytes());
            view.set_rsid(rsid).set_numr(numr).set_cparam1(cparam1);
            Command::parse(&Sqe::from_bytes(*view.as_bytes())).err()
        };
        assert_eq!(parse(0, 9, 0), Some(Status::RANGES_EXCEEDED));
        assert_eq!(parse(1, 1, 0), Some(Status::INVALID_FIELD));
        assert_eq!(parse(0, 0, 1), Some(Status::INVALID_FIELD), "an output of no ranges");
        assert_eq!(parse(0, 1, 0x100), Some(Status::INVALID_FIELD), "counts nothing");
        assert_eq!(parse(0, 1, 0x201), Some(Status::INVALID_FIELD), "reserved");
        assert_eq!((parse(0, 8, 8), parse(1, 0, 8)), (None, None));
        assert_eq!(parse(0, 0, 0x100), None, "the payload says where");
    }

    #[test]
    fn a_host_that_cannot_say_the_length_transfers_it() {
        let parsed = |dlen: u32, transfer: u32| {
            let mut sqe = execute(5, 2, dlen);
            sqe.set_sgl(Sgl::transport(transfer));
            Command::parse(&sqe)
        };
        let (ranges, controls) = (Ranges::None, Controls::default());
        let execution = |length| Ok(Command::Execute { program: 2, length, ranges, controls });
        assert_eq!(parsed(0, 112), execution(112));
        assert_eq!(parsed(64, 112), execution(64));
        assert_eq!(parsed(0, DATA_BYTES_MAX), execution(DATA_BYTES_MAX));
        assert_eq!(parsed(0, DATA_BYTES_MAX + 1), Err(Status::INVALID_FIELD));
    }
}
