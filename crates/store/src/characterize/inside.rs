//! The drive's side of a kernel: executions over a working set, timed by the drive itself.
//!
//! As many executions at a time as cores are wanted, on as many connections, which a drive deals
//! to its cores. Serial executions load all of their sources before they compute; what each phase
//! took is read off the drive's log of executions. Never: the host's cores, or a byte of the data.
//! Invariant: a round ends before the next begins, as loads of a memory that is too small do.

use std::ops::Range;

use csd_initiator::{Address, Block, Compute, Controller, Kv, Options};
use csd_kernels::kernel::{Kernel, Sample};
use csd_nvme::execute::{Execution, Output, Place, SOURCES_MAX, chunk_key};
use csd_nvme::executions::Entry;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, now, random_bytes, spawn};

use super::host::Timed;
use super::meter::Meter;
use super::region::{Region, WorkingSet};
use super::{Error, Overlap};

/// Most bytes of one execution: what a drive loads at once for each core.
pub const EXECUTION_BYTES_MAX: u64 = 128 << 20;

/// What to measure.
#[derive(Clone)]
pub struct DriveJob {
    /// The drive.
    pub address: Address,
    /// How to connect to it.
    pub connection: Options,
    /// Its compute namespace.
    pub compute_nsid: u32,
    /// The kernel.
    pub kernel: &'static dyn Kernel,
    /// Where the working set lies.
    pub region: Region,
    /// Its length, bytes.
    pub bytes: u64,
    /// Cores of the drive that work.
    pub units: usize,
    /// Whether loading ends before computing begins.
    pub overlap: Overlap,
    /// The kv namespace that results are stored in, and deleted from again.
    pub values_nsid: Option<u32>,
    /// What counts the drive's energy.
    pub meter: Option<Meter>,
}

/// Names of the programs that the drive has, by index.
///
/// # Errors
/// What the drive or the network did.
pub async fn programs(controller: &Controller, nsid: u32) -> Result<Vec<u64>, Error> {
    let programs = Compute::open(controller, nsid)?.programs().await?;
    Ok(programs.iter().map(csd_nvme::compute::ProgramDescriptor::pid).collect())
}

/// Measures once; `None` when the drive does not have the kernel's program, or may not store its
/// result.
///
/// # Errors
/// What the drive or the network did.
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

/// A connection with what it measures.
struct Session<'a> {
    job: &'a DriveJob,
    compute: Compute,
    values: Option<Kv>,
    /// Key of what the kernel wants resident.
    resident: Option<[u8; 12]>,
    index: u16,
    set: WorkingSet,
    block_bytes: u32,
}

/// Size of a stored result's values, where the drive takes values as long.
const VALUE_BYTES: u32 = 1 << 20;

/// The beginning of keys that no object has.
fn random_prefix() -> [u8; 12] {
    let mut prefix = [0; 12];
    random_bytes(&mut prefix);
    // As objects' keys have it: catalogue keys begin below.
    prefix[0] |= 0x80;
    prefix
}

/// Stores what the kernel wants resident as a value.
async fn resident(job: &DriveJob, values: Option<&Kv>) -> Result<Option<[u8; 12]>, Error> {
    let (Some(bytes), Some(values)) = (job.kernel.sample().resident, values) else {
        return Ok(None);
    };
    let prefix = random_prefix();
    values.store(&chunk_key(&prefix, 0), vec![Buffer::from_slice(&bytes)], 0).await?;
    Ok(Some(prefix))
}

impl Session<'_> {
    /// Has every core work on its part of a round, and adds what the slowest of them took.
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

    /// Deletes what the executions stored.
    async fn sweep(&self, prefixes: &[[u8; 12]]) -> Result<(), Error> {
        let Some(values) = self.values.as_ref().filter(|_| self.job.kernel.sample().stores) else {
            return Ok(());
        };
        for prefix in prefixes {
            for number in 0.. {
                // Deleting a key that is not there succeeds, so it is looked for first.
                let key = chunk_key(prefix, number);
                if !values.exist(&key).await? {
                    break;
                }
                values.delete(&key).await?;
            }
        }
        Ok(())
    }

    /// Adds what the drive's log says of the executions after `ended_before`.
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
            // A pipelined run is told without its stores.
            timed.total_s -= seconds(slowest.writing_ns());
            timed.store_s = Some(timed.store_s.unwrap_or(0.0) + seconds(slowest.writing_ns()));
        }
        timed.work += ours.iter().map(|entry| entry.work()).sum::<u64>();
        timed.cpu_s += ours.iter().map(|entry| seconds(entry.computing_ns())).sum::<f64>();
        Ok(())
    }

    /// An execution over bytes `range` of every stream.
    fn execution(&self, range: &Range<u64>, prefix: [u8; 12]) -> Result<Execution, Error> {
        let mut sources = Vec::new();
        for stream in 0..self.set.streams {
            let ranges = self.job.region.cut(self.set.of_stream(stream, range));
            let number = u8::try_from(stream).expect("few streams");
            sources.extend(ranges.into_iter().map(|(offset, bytes)| {
                let place = Place::Blocks {
                    nsid: self.job.region.nsid,
                    slba: offset / u64::from(self.block_bytes),
                    skip: 0, // streams are cut at whole blocks
                    bytes: u32::try_from(bytes).expect("at most 128 MiB"),
                };
                place.on(number)
            }));
        }
        if let (Some(nsid), Some(prefix)) = (self.job.values_nsid, self.resident) {
            let number = u8::try_from(self.set.streams).expect("few streams");
            let place = Place::KvChunks { nsid, prefix, first: 0, count: 1, stride: 1 };
            sources.push(place.on(number));
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
            parameters: self.job.kernel.sample().parameters,
            serial: self.job.overlap == Overlap::Serial,
            cores: 1,
        })
    }
}

/// Sum of what an execution's phases took, ns.
fn phases_ns(entry: &Entry) -> u64 {
    entry.reading_ns() + entry.computing_ns() + entry.writing_ns()
}

/// A refusal of the payload by a drive that knows no serial executions is said as such.
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
