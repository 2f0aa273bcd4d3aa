//! The drive's side of a kernel: executions over a working set, timed by the drive itself.
//!
//! It runs one execution per requested core at a time, each on a connection of its own, which the
//! drive assigns to its cores. Serial executions load all their sources before they compute; the
//! time of each phase is read from the drive's log of executions. Uses no host cores for computing,
//! and transfers no data to the host. Invariant: a round ends before the next one begins, like
//! loads of a memory that is too small.

use std::ops::Range;

use csd_initiator::{Address, Block, Compute, Controller, Kv, Options};
use csd_kernels::kernel::{Kernel, Sample};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Execution, Output, SOURCES_MAX, SourceData, chunk_key};
use csd_nvme::vendor::executions::Entry;
use csd_reactor::{Buffer, Class, now, random_bytes, spawn};

use super::host::Timed;
use super::meter::Meter;
use super::region::{Region, WorkingSet};
use super::{Error, Overlap};

/// Most bytes of one execution, which a drive loads at once for each core.
pub const EXECUTION_BYTES_MAX: u64 = 128 << 20;

/// A measurement to make in a drive.
#[derive(Clone)]
pub struct DriveJob {
    /// The drive.
    pub address: Address,
    /// Options of the connection.
    pub connection: Options,
    /// Identifier of the compute namespace.
    pub compute_nsid: u32,
    /// The kernel.
    pub kernel: &'static dyn Kernel,
    /// Location of the working set.
    pub region: Region,
    /// Size of the working set, bytes.
    pub bytes: u64,
    /// Number of working cores of the drive.
    pub units: usize,
    /// Overlap of loading and computing.
    pub overlap: Overlap,
    /// Identifier of the kv namespace in which results are stored, and deleted again.
    pub values_nsid: Option<u32>,
    /// Meter of the drive's energy.
    pub meter: Option<Meter>,
}

/// Returns the identifiers of the drive's programs, by index.
///
/// # Errors
/// An error of the drive or the network.
pub async fn programs(controller: &Controller, nsid: u32) -> Result<Vec<u64>, Error> {
    let programs = Compute::open(controller, nsid)?.programs().await?;
    Ok(programs.iter().map(csd_nvme::compute::ProgramDescriptor::pid).collect())
}

/// Measures once; returns `None` when the drive does not have the kernel's program, or may not
/// store its result.
///
/// # Errors
/// An error of the drive or the network.
pub fn measure(runtime: &csd_reactor::Config, job: &DriveJob) -> Result<Option<Timed>, Error> {
    let job = job.clone();
    let measured = csd_reactor::block_on(runtime, move || async move { work(&job).await });
    measured.map_err(Error::Runtime)?
}

async fn work(job: &DriveJob) -> Result<Option<Timed>, Error> {
    let queues = u16::try_from(job.units).unwrap_or(u16::MAX);
    let connection = Options { io_queues: queues, ..job.connection.clone() };
    let controller = Controller::connect(&job.address, &connection).await?;
    let programs = programs(&controller, job.compute_nsid).await?;
    let Some(index) = programs.iter().position(|program| *program == job.kernel.program_id())
    else {
        controller.disconnect().await;
        return Ok(None);
    };
    if controller.io_queues() < job.units {
        let (wanted, allowed) = (job.units, controller.io_queues());
        let why = format!("the drive allows {allowed} queues, {wanted} are needed");
        return Err(Error::Unable(why));
    }
    let values = match job.values_nsid {
        Some(nsid) => Some(Kv::open(&controller, nsid)?),
        None if job.kernel.sample().stores => return Ok(None),
        None => None,
    };
    let index = u16::try_from(index).expect("the list was indexed by 16 bits");
    let compute = Compute::open(&controller, job.compute_nsid)?;
    let block_bytes = Block::open(&controller, job.region.nsid)?.block_bytes();
    let set = WorkingSet { bytes: job.bytes, streams: job.kernel.sample().streams };
    let resident = resident(job, values.as_ref()).await?;
    let session = Session { job, compute, values, resident, index, set, block_bytes };
    let rounds = job.bytes.div_ceil(EXECUTION_BYTES_MAX * job.units as u64);
    let mut timed = Timed::default();
    let mark = || job.meter.as_ref().and_then(Meter::mark);
    let marked = mark();
    for round in 0..rounds {
        session.round(round, rounds, &mut timed).await?;
    }
    let marks = [marked.zip(mark())];
    timed.joules = job.meter.as_ref().and_then(|meter| meter.beyond_rest(&marks));
    if let (Some(values), Some(resident)) = (&session.values, &session.resident) {
        values.delete(&chunk_key(resident, 0)).await?;
    }
    controller.disconnect().await;
    Ok(Some(timed))
}

/// A connection and its measurement.
struct Session<'a> {
    job: &'a DriveJob,
    compute: Compute,
    values: Option<Kv>,
    /// Key of the value that the kernel needs resident.
    resident: Option<[u8; 12]>,
    index: u16,
    set: WorkingSet,
    block_bytes: u32,
}

/// Size of a stored result's values, if the drive accepts values of this size.
const VALUE_BYTES: u32 = 1 << 20;

/// Returns a prefix of keys that no object uses.
fn random_prefix() -> [u8; 12] {
    let mut prefix = [0; 12];
    random_bytes(&mut prefix);
    // As in keys of objects: catalogue keys have this bit clear.
    prefix[0] |= 0x80;
    prefix
}

/// Stores the data that the kernel needs resident as a value.
async fn resident(job: &DriveJob, values: Option<&Kv>) -> Result<Option<[u8; 12]>, Error> {
    let (Some(bytes), Some(values)) = (job.kernel.sample().resident, values) else {
        return Ok(None);
    };
    let prefix = random_prefix();
    values.store(&chunk_key(&prefix, 0), vec![Buffer::from_slice(&bytes)], 0).await?;
    Ok(Some(prefix))
}

impl Session<'_> {
    /// Runs one round on every core, and adds the times of the slowest core.
    async fn round(&self, round: u64, rounds: u64, timed: &mut Timed) -> Result<(), Error> {
        let units = self.job.units as u64;
        let (ended_before, _) = self.compute.executions().await?;
        let begin = now();
        let mut executing = Vec::with_capacity(self.job.units);
        let mut prefixes = Vec::new();
        for unit in 0..units {
            let range = self.set.part(round * units + unit, rounds * units, Sample::GRAIN_BYTES);
            let prefix = random_prefix();
            prefixes.push(prefix);
            let (compute, execution) = (self.compute.clone(), self.execution(&range, prefix)?);
            let index = self.index;
            executing.push(spawn(Class::Foreground, async move {
                compute.execute(index, &execution).await
            }));
        }
        for execution in executing {
            timed.result = timed.result.wrapping_add(execution.await.map_err(explain)?);
        }
        timed.total_s += now().since(begin).as_secs_f64();
        self.account(ended_before, timed).await?;
        self.sweep(&prefixes).await
    }

    /// Deletes the results that the executions stored.
    async fn sweep(&self, prefixes: &[[u8; 12]]) -> Result<(), Error> {
        let Some(values) = self.values.as_ref().filter(|_| self.job.kernel.sample().stores) else {
            return Ok(());
        };
        for prefix in prefixes {
            for number in 0.. {
                // Deleting a missing key succeeds, so check for it first.
                let key = chunk_key(prefix, number);
                if !values.exist(&key).await? {
                    break;
                }
                values.delete(&key).await?;
            }
        }
        Ok(())
    }

    /// Adds the times that the drive's log reports for the executions after `ended_before`.
    async fn account(&self, ended_before: u64, timed: &mut Timed) -> Result<(), Error> {
        let (_, entries) = self.compute.executions().await?;
        let own = self.compute.controller().identity().cntlid();
        let ours = |entry: &&Entry| entry.number() > ended_before && entry.cntlid() == own;
        let ours: Vec<&Entry> = entries.iter().filter(ours).collect();
        if ours.len() != self.job.units {
            let why = "the drive's log lost executions: another host has programs run";
            return Err(Error::Unable(why.to_owned()));
        }
        let slowest = ours.iter().max_by_key(|entry| phases_ns(entry)).expect("a part each");
        timed.load_s += seconds(slowest.reading_ns());
        timed.comp_s += seconds(slowest.computing_ns());
        if self.job.kernel.sample().stores && slowest.bytes_written() > 0 {
            timed.stored_bytes += ours.iter().map(|entry| entry.bytes_written()).sum::<u64>();
            // The time of a pipelined run is reported without its stores.
            timed.total_s -= seconds(slowest.writing_ns());
            timed.store_s = Some(timed.store_s.unwrap_or(0.0) + seconds(slowest.writing_ns()));
        }
        timed.work += ours.iter().map(|entry| entry.work()).sum::<u64>();
        timed.cpu_s += ours.iter().map(|entry| seconds(entry.computing_ns())).sum::<f64>();
        Ok(())
    }

    /// Returns an execution over bytes `range` of every stream.
    fn execution(&self, range: &Range<u64>, prefix: [u8; 12]) -> Result<Execution, Error> {
        let mut sources = Vec::new();
        for stream in 0..self.set.streams {
            let ranges = self.job.region.cut(self.set.of_stream(stream, range));
            let number = u8::try_from(stream).expect("few streams");
            sources.extend(ranges.into_iter().map(|(offset, bytes)| {
                let data = SourceData::Blocks {
                    nsid: self.job.region.nsid,
                    slba: offset / u64::from(self.block_bytes),
                    skip: 0, // streams are cut at whole blocks
                    bytes: u32::try_from(bytes).expect("at most 128 MiB"),
                };
                data.on(number)
            }));
        }
        if let (Some(nsid), Some(prefix)) = (self.job.values_nsid, self.resident) {
            let number = u8::try_from(self.set.streams).expect("few streams");
            let data = SourceData::KvChunks { nsid, prefix, first: 0, count: 1, stride: 1 };
            sources.push(data.on(number));
        }
        let output = match self.job.values_nsid {
            Some(nsid) if self.job.kernel.sample().stores => {
                let longest = self.values.as_ref().map_or(VALUE_BYTES, Kv::value_bytes_max);
                let chunk_bytes = VALUE_BYTES.min(longest);
                Output::KvChunks { nsid, prefix, first: 0, stride: 1, chunk_bytes }
            }
            _ => Output::Completion,
        };
        if sources.len() > SOURCES_MAX {
            let why = format!("the working set lies in {} pieces", sources.len());
            return Err(Error::Unable(why));
        }
        Ok(Execution {
            program: self.job.kernel.program_id(),
            output,
            sources,
            inline: vec![],
            digests: None,
            parameters: self.job.kernel.sample().parameters,
            serial: self.job.overlap == Overlap::Serial,
            cores: 1,
        })
    }
}

/// Returns the sum of an execution's phases, ns.
fn phases_ns(entry: &Entry) -> u64 {
    entry.reading_ns() + entry.computing_ns() + entry.writing_ns()
}

/// Explains the error of a drive that does not support serial executions and refuses the payload.
fn explain(error: csd_initiator::Error) -> Error {
    match error.status() {
        Some(Status::INVALID_PROGRAM_DATA) => {
            Error::Unable(format!("the drive refuses the execution: {error}"))
        }
        _ => error.into(),
    }
}

#[allow(clippy::cast_precision_loss)] // 2^53 ns are 104 days
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
