//! Admin commands of the compute namespace: loading, activating and unloading programs, memory
//! range sets.
//!
//! Invariants: the drive's log has the reason of every refused program; compiling blocks neither
//! the core nor other work of the compute thread.

use csd_nvme::program::{Command, MemoryRange, Part};
use csd_nvme::status::Status;
use csd_reactor::compute_long;

use super::library::{Loaded, digest};
use super::{Compute, Shared};
use crate::log::Level;

/// Cost of compiling a byte in the simulation, ns.
const COMPILE_NS_PER_BYTE: u64 = 1000;

impl Compute {
    /// Runs a command of a host. Returns its result for dwords 0 and 1.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn admin(&self, host: &str, command: Command, data: &[u8]) -> Result<u64, Status> {
        let shared = &*self.shared;
        let (library, range_sets) = (&shared.library, &shared.range_sets);
        match command {
            Command::Load(part) => load(shared, host, part, data).await.map(|()| 0),
            Command::Unload { index } => library.unload(host, index).map(|()| 0),
            Command::Activate { index, active } => {
                library.activate(host, index, active).map(|()| 0)
            }
            Command::CreateRangeSet { .. } => {
                let ranges = MemoryRange::parse_all(data);
                range_sets.create(host, &shared.memory, ranges).map(u64::from)
            }
            Command::DeleteRangeSet { rsid } => range_sets.delete(host, rsid).map(|()| 0),
        }
    }
}

async fn load(shared: &Shared, host: &str, part: Part, data: &[u8]) -> Result<(), Status> {
    let refused = |digest: Option<&[u8; 32]>, status: Status, reason: &str| {
        log_loaded(shared, part, digest, Err(reason));
        Err(status)
    };
    let (engine, bytes, compiling) = match shared.library.load(host, part, data) {
        Ok(Loaded::Partly) => return Ok(()),
        Err(status) => return refused(None, status, &status.to_string()),
        Ok(Loaded::Whole { engine, bytes, compiling }) => (engine, bytes, compiling),
    };
    let cost_ns = bytes.len() as u64 * COMPILE_NS_PER_BYTE;
    // The job owns the index: no other program takes it while the job runs, even if the host is
    // gone.
    let compiled = compute_long(cost_ns, move || {
        let digest = digest(&bytes);
        let admitted = !engine.needs_admission() || compiling.admits(&digest);
        let compiled = admitted.then(|| engine.compile(&bytes));
        (compiled, digest, compiling)
    });
    let (compiled, digest, compiling) = match compiled.await {
        Ok(done) => done,
        Err(failed) => return refused(None, Status::INVALID_PROGRAM_DATA, &failed.to_string()),
    };
    let digest = Some(&digest);
    let ended = match compiled {
        Some(Ok(compiled)) => compiling.finish(compiled),
        Some(Err(reason)) => {
            drop(compiling);
            return refused(digest, Status::INVALID_PROGRAM_DATA, &reason);
        }
        None => {
            drop(compiling);
            Err(Status::OPERATION_DENIED)
        }
    };
    match ended {
        Ok(()) => {
            log_loaded(shared, part, digest, Ok(()));
            Ok(())
        }
        Err(status) => refused(digest, status, &status.to_string()),
    }
}

/// Logs the outcome of a part; the last one of a program has the program's digest.
fn log_loaded(shared: &Shared, part: Part, digest: Option<&[u8; 32]>, outcome: Result<(), &str>) {
    let mut fields = vec![("index", part.index.to_string()), ("bytes", part.size.to_string())];
    if let Some(digest) = digest {
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        fields.push(("digest", hex));
    }
    match outcome {
        Ok(()) => shared.log.write_rated(Level::Info, "program loaded", &fields),
        Err(reason) => {
            fields.push(("reason", reason.to_owned()));
            shared.log.write_rated(Level::Warn, "program refused", &fields);
        }
    }
}
