//! Parameters of Execute Program: the program, the bytes that it reads, and its limits.
//!
//! Without memory ranges the data is a payload of [`csd_nvme::vendor::execute`]. With ranges it is
//! the ranges, if they are not in a set, and then the program's parameters: every range is a
//! stream, in order, except the one that the program writes.

use csd_kernels::program::{Limits, Program};
use csd_nvme::compute::{Controls, Ranges};
use csd_nvme::memory::Range;
use csd_nvme::program::{DOWNLOADABLE_FIRST, MemoryRange, RANGE_BYTES};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Execution, Output, SourceData};

use super::cancel::Caller;
use super::library::Running;
use super::ranges::{self, Taken};
use super::{Compute, Failure, builtin};
use crate::namespace::memory::LocalMemory;

/// An Execute Program command.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Identifiers of the command.
    pub caller: Caller,
    /// NQN of its host, whose programs and range sets it may name.
    pub host: &'a str,
    /// Program index.
    pub index: u16,
    /// Memory ranges.
    pub ranges: Ranges,
    /// Limits, and the range that the program writes.
    pub controls: Controls,
}

/// A call that can run. Its program and range set are released when it is dropped.
pub(super) struct Prepared {
    pub(super) execution: Execution,
    pub(super) limits: Limits,
    /// Program, if a host has loaded it.
    pub(super) loaded: Option<Running>,
    /// Range set, which no other execution uses meanwhile.
    _set: Option<Taken>,
}

impl Prepared {
    /// Writes the number of bytes that the program wrote to memory, if the call asks for it.
    pub(super) fn write_count(&self, memory: &LocalMemory, controls: Controls, written_bytes: u64) {
        if let (1, Output::Memory { start, .. }) = (controls.counted(), self.execution.output) {
            memory.write(start - u64::from(COUNT_BYTES), &written_bytes.to_le_bytes());
        }
    }

    /// Starts the program, before its first step.
    pub(super) fn start(&self) -> Result<Box<dyn Program>, Failure> {
        match &self.loaded {
            Some(running) => {
                Ok(running.compiled.start(&self.execution.parameters, &self.limits)?)
            }
            None => builtin::start(&self.execution),
        }
    }
}

impl Compute {
    /// Checks a call as far as that needs no reading. Keeps only the parameters of its data.
    pub(super) fn prepare(&self, call: &Call<'_>, data: Vec<u8>) -> Result<Prepared, Failure> {
        let data = &data[..];
        let (shared, controls) = (&self.shared, call.controls);
        let (set, mut execution) = match call.ranges {
            Ranges::None => {
                let mut parsed = Execution::parse(data).map_err(Failure::misuse)?;
                if controls.counted() == 1 {
                    parsed.output = behind_count(parsed.output)?;
                }
                (None, parsed)
            }
            Ranges::Set(rsid) => {
                let set = shared.range_sets.take(call.host, rsid)?;
                let execution = over(&set.ranges, controls, data)?;
                (Some(set), execution)
            }
            Ranges::Data(count) => {
                let head = usize::from(count) * RANGE_BYTES;
                let (head, parameters) =
                    data.split_at_checked(head).ok_or(Status::INVALID_PROGRAM_DATA)?;
                let all = MemoryRange::parse_all(head);
                ranges::check(&shared.memory, &all)?;
                (None, over(&all, controls, parameters)?)
            }
        };
        let named = (call.ranges == Ranges::None).then_some(execution.program);
        let loaded = if call.index < DOWNLOADABLE_FIRST {
            let programs = builtin::programs();
            let program = programs.get(usize::from(call.index));
            let pid = program.ok_or(Status::INVALID_PROGRAM_INDEX)?.pid();
            if named.is_some_and(|named| named != pid) {
                return Err(Status::INVALID_PROGRAM_INDEX.into());
            }
            execution.program = pid;
            None
        } else {
            let running = shared.library.begin(call.host, call.index, named)?;
            execution.program = running.pid;
            Some(running)
        };
        apart(&execution)?;
        let limits = shared.limits_of(controls)?;
        Ok(Prepared { execution, limits, loaded, _set: set })
    }
}

/// Bytes of the count of bytes written, which precedes them.
const COUNT_BYTES: u32 = 8;

/// Returns the output behind the count of bytes written.
fn behind_count(output: Output) -> Result<Output, Failure> {
    let Output::Memory { nsid, start, bytes } = output else {
        return Err(Failure::misuse("what is counted goes to memory"));
    };
    let bytes = bytes.checked_sub(COUNT_BYTES).filter(|bytes| *bytes > 0);
    let start = start.checked_add(COUNT_BYTES.into());
    match (start, bytes) {
        (Some(start), Some(bytes)) => Ok(Output::Memory { nsid, start, bytes }),
        _ => Err(Failure::misuse("there is no room behind the count")),
    }
}

/// Makes an execution over memory ranges.
fn over(all: &[MemoryRange], controls: Controls, data: &[u8]) -> Result<Execution, Status> {
    let written = usize::try_from(controls.output()).expect("8 bits").checked_sub(1);
    if written.is_some_and(|written| written >= all.len()) {
        return Err(Status::INVALID_FIELD);
    }
    let head = if controls.counted() == 1 { COUNT_BYTES } else { 0 };
    let bytes = |at: &MemoryRange| u32::try_from(at.range.length).expect("a LEN of 32 bits");
    let mut execution = Execution {
        program: 0,
        output: Output::Completion,
        sources: Vec::new(),
        inline: vec![],
        digests: None,
        parameters: data.to_vec(),
        serial: false,
        cores: 1,
    };
    let mut stream = 0;
    for (index, at) in all.iter().enumerate() {
        let (nsid, start, bytes) = (at.nsid, at.range.start, bytes(at));
        if written == Some(index) {
            let bytes = bytes.checked_sub(head).filter(|bytes| *bytes > 0);
            let bytes = bytes.ok_or(Status::INVALID_RANGE_SET)?;
            let start = start + u64::from(head);
            execution.output = Output::Memory { nsid, start, bytes };
        } else {
            execution.sources.push(SourceData::Memory { nsid, start, bytes }.on(stream));
            stream += 1;
        }
    }
    Ok(execution)
}

/// Checks that no source overlaps the output in memory.
fn apart(execution: &Execution) -> Result<(), Status> {
    let Output::Memory { nsid, start, bytes } = execution.output else { return Ok(()) };
    let written = Range { start, length: bytes.into() };
    let is_read = execution.sources.iter().any(|source| match source.data {
        SourceData::Memory { nsid: of, start, bytes } => {
            of == nsid && written.overlaps(Range { start, length: bytes.into() })
        }
        _ => false,
    });
    if is_read { Err(Status::OVERLAPPING_RANGES) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, length: u64) -> MemoryRange {
        MemoryRange { nsid: 4, range: Range { start, length } }
    }

    #[test]
    fn ranges_are_streams_but_the_one_that_is_written() {
        let all = [range(0, 8), range(16, 32), range(64, 4)];
        let execution = over(&all, Controls::default().with_output(2), b"ab").unwrap();
        assert_eq!(execution.output, Output::Memory { nsid: 4, start: 16, bytes: 32 });
        let streams = [
            SourceData::Memory { nsid: 4, start: 0, bytes: 8 }.on(0),
            SourceData::Memory { nsid: 4, start: 64, bytes: 4 }.on(1),
        ];
        assert_eq!((execution.sources, execution.parameters), (streams.to_vec(), b"ab".to_vec()));
        let counted = Controls::default().with_output(2).with_counted(1);
        let execution = over(&all, counted, &[]).unwrap();
        assert_eq!(execution.output, Output::Memory { nsid: 4, start: 24, bytes: 24 });
        let counted = Controls::default().with_output(3).with_counted(1);
        assert_eq!(over(&all, counted, &[]), Err(Status::INVALID_RANGE_SET), "no room");
        let beyond = over(&all, Controls::default().with_output(4), &[]);
        assert_eq!(beyond, Err(Status::INVALID_FIELD));
    }

    #[test]
    fn a_count_has_its_room_in_memory() {
        let memory = |start, bytes| Output::Memory { nsid: 4, start, bytes };
        assert_eq!(behind_count(memory(16, 9)), Ok(memory(24, 1)));
        for wrong in [memory(16, 8), memory(16, 0), memory(u64::MAX - 3, 64), Output::Completion] {
            assert!(behind_count(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_written_is_not_read() {
        let mut execution = over(&[range(0, 8)], Controls::default(), &[]).unwrap();
        assert_eq!(apart(&execution), Ok(()));
        execution.output = Output::Memory { nsid: 4, start: 4, bytes: 8 };
        assert_eq!(apart(&execution), Err(Status::OVERLAPPING_RANGES));
        execution.output = Output::Memory { nsid: 4, start: 8, bytes: 8 };
        assert_eq!(apart(&execution), Ok(()));
    }
}
