//! Computational Programs command set: Execute Program and the list of programs.
//!
//! Source: Computational Programs Command Set Specification 1.1 by way of the facts page (c.2),
//! (c.3); a secondary reading, so every offset stands here and nowhere else. The header of the
//! Program List log is not verified (facts page (c.3)): provisional, this module alone knows it.

use crate::capsule::Sqe;
use crate::opcode::Cp;
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

/// Most bytes of data that an execution may carry here.
pub const DATA_BYTES_MAX: u32 = 1 << 20;

/// A parsed command of the compute namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Execute a program.
    Execute {
        /// Program index.
        program: u16,
        /// Length of the data (sources and parameters, see [`crate::execute`]) in bytes.
        length: u32,
    },
}

impl Command {
    /// Parses a submission queue entry.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`]; [`Status::INVALID_RANGE_SET_ID`] when a memory range set is
    /// named, [`Status::RANGES_EXCEEDED`] when ranges are (a drive without a memory namespace has
    /// none); [`Status::INVALID_FIELD`] when the data is longer than [`DATA_BYTES_MAX`].
    ///
    /// A DLEN of 0 means all of the data that the command transfers: Linux passes dwords 2, 3 and
    /// 10 to 15 of a command through and leaves dword 4 zero, and no execution is without data.
    pub fn parse(sqe: &Sqe) -> Result<Self, Status> {
        if Cp(sqe.opcode()) != Cp::EXECUTE_PROGRAM {
            return Err(Status::INVALID_OPCODE);
        }
        let view = ExecuteProgram::from_bytes(*sqe.as_bytes());
        if view.rsid() != 0 {
            return Err(Status::INVALID_RANGE_SET_ID);
        }
        if view.numr() != 0 {
            return Err(Status::RANGES_EXCEEDED);
        }
        let length = match view.dlen() {
            0 => sqe.sgl().length(),
            length => length,
        };
        if length > DATA_BYTES_MAX {
            return Err(Status::INVALID_FIELD);
        }
        Ok(Self::Execute { program: view.pind(), length })
    }
}

/// Execute Program `program` with `length` bytes of data.
pub fn execute(nsid: u32, program: u16, length: u32) -> Sqe {
    let mut view = ExecuteProgram::from_bytes(*Sqe::new(Cp::EXECUTE_PROGRAM.0, nsid).as_bytes());
    view.set_pind(program).set_dlen(length);
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

/// PEOCC of a device-defined program.
pub const DEVICE_DEFINED: u8 = 2;

/// Size in bytes of the provisional Program List header: u32 count, then zeros.
pub const PROGRAM_LIST_HEADER_BYTES: usize = 64;

/// Data of the Program List log: a header with the count, then 64-byte descriptors by index.
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

/// A device-defined, always active program with this identifier and name.
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
    fn ranges_need_a_memory_namespace() {
        let mut view = ExecuteProgram::from_bytes(*execute(5, 0, 64).as_bytes());
        view.set_numr(1);
        let sqe = Sqe::from_bytes(*view.as_bytes());
        assert_eq!(Command::parse(&sqe), Err(Status::RANGES_EXCEEDED));
    }
    #[test]
    fn a_host_that_cannot_say_the_length_transfers_it() {
        let parsed = |dlen: u32, transfer: u32| {
            let mut sqe = execute(5, 2, dlen);
            sqe.set_sgl(Sgl::transport(transfer));
            Command::parse(&sqe)
        };
        let execution = |length| Ok(Command::Execute { program: 2, length });
        assert_eq!(parsed(0, 112), execution(112));
        assert_eq!(parsed(64, 112), execution(64));
        assert_eq!(parsed(0, DATA_BYTES_MAX), execution(DATA_BYTES_MAX));
        assert_eq!(parsed(0, DATA_BYTES_MAX + 1), Err(Status::INVALID_FIELD));
    }
}
