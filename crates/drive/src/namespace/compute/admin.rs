//! Admin commands of the compute namespace: loading, activating and unloading programs, memory
//! range sets.
//!
//! Never: the wire. Invariants: what a program was refused for is told in the drive's log, because
//! a status cannot; compiling keeps to the compute lane.

use std::sync::Arc;

use csd_nvme::program::{Command, MemoryRange, Part};
use csd_nvme::status::Status;
use csd_reactor::{Class, compute_fn};

use super::library::{Loaded, digest};
use crate::drive::Shared;
use crate::log::Level;

/// Modelled cost of compiling a byte, ns.
const COMPILE_NS_PER_BYTE: u64 = 1000;

/// Runs a command of a host; its result for dwords 0 and 1.
///
/// # Errors
/// The status to answer with.
pub async fn run(
    drive: &Arc<Shared>,
    host: &str,
    command: Command,
    data: &[u8],
) -> Result<u64, Status> {
    let (library, range_sets) = (&drive.library, &drive.range_sets);
    match command {
        Command::Load(part) => load(drive, host, part, data).await.map(|()| 0),
        Command::Unload { index } => library.unload(host, index).map(|()| 0),
        Command::Activate { index, active } => library.activate(host, index, active).map(|()| 0),
        Command::CreateRangeSet { .. } => {
            let ranges = MemoryRange::parse_all(data);
            range_sets.create(host, &drive.memory, ranges).map(u64::from)
        }
        Command::DeleteRangeSet { rsid } => range_sets.delete(host, rsid).map(|()| 0),
    }
}

async fn load(drive: &Arc<Shared>, host: &str, part: Part, data: &[u8]) -> Result<(), Status> {
    let loaded = match drive.library.load(host, part, data) {
        Ok(Loaded::Partly) => return Ok(()),
        Err(status) => {
            told(drive, part, data, Err(&status.to_string()));
            return Err(status);
        }
        Ok(Loaded::Whole { engine, bytes }) => (engine, bytes),
    };
    let (engine, bytes) = loaded;
    let cost_ns = bytes.len() as u64 * COMPILE_NS_PER_BYTE;
    // Before executions that wait for their turn: it is short, and a host waits for it.
    let compiling = compute_fn(Class::Foreground, cost_ns, move || {
        let compiled = engine.compile(&bytes);
        (compiled, bytes)
    });
    let (compiled, bytes) = match compiling.await {
        Ok(done) => done,
        Err(failed) => {
            // Its index keeps the bytes until they are loaded anew or unloaded.
            told(drive, part, &[], Err(&failed.to_string()));
            return Err(Status::INVALID_PROGRAM_DATA);
        }
    };
    match compiled {
        Ok(compiled) => {
            drive.library.finish(host, part.index, &bytes, Some(compiled))?;
            told(drive, part, &bytes, Ok(()));
            Ok(())
        }
        Err(reason) => {
            drive.library.finish(host, part.index, &bytes, None)?;
            told(drive, part, &bytes, Err(&reason));
            Err(Status::INVALID_PROGRAM_DATA)
        }
    }
}

fn told(drive: &Shared, part: Part, bytes: &[u8], outcome: Result<(), &str>) {
    let mut fields = vec![("index", part.index.to_string()), ("bytes", part.size.to_string())];
    if bytes.len() == part.size as usize {
        let hex: String = digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fields.push(("digest", hex));
    }
    match outcome {
        Ok(()) => drive.log().write(Level::Info, "program loaded", &fields),
        Err(reason) => {
            fields.push(("reason", reason.to_owned()));
            drive.log().write(Level::Warn, "program refused", &fields);
        }
    }
}
