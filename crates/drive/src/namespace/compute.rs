//! The compute namespace: runs programs where their sources lie.
//!
//! A program reads its sources in order, in batches: while the compute lane works on one batch,
//! the next is read. Never: a program's arithmetic (that is `kernels`). Invariants: a source's
//! version is pinned while it is read; its checksum holds before a byte of it counts; at most
//! [`EXECUTIONS_MAX`] executions run on a core, so the memory they take is bounded.

use std::rc::Rc;

use csd_kernels::count::{self, Count};
use csd_nvme::compute::{ProgramDescriptor, device_defined};
use csd_nvme::execute::{Execution, Source, chunk_key};
use csd_nvme::nvm::Extent;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, Job, Progress, Semaphore, compute, spawn};

use super::block::Block;
use super::kv::{Kv, Value};
use super::{NSID_BLOCK, NSID_KV, NSID_OBJECTS};

/// Executions that run at once on a core; more wait.
pub const EXECUTIONS_MAX: usize = 4;
/// A batch is closed when it has this many bytes.
const BATCH_BYTES: usize = 8 << 20;
/// Longest piece of a block source read at once.
const BLOCK_PIECE_BYTES: u32 = 1 << 20;
/// Bytes that the lane works on between looks at whether it is still wanted.
const STEP_BYTES: usize = 256 << 10;

/// The programs of every drive, by program index.
pub fn programs() -> Vec<ProgramDescriptor> {
    vec![device_defined(count::PROGRAM_ID, count::NAME)]
}

/// The compute namespace as one core sees it.
#[derive(Clone)]
pub struct Compute {
    block: Block,
    kv: Rc<Kv>,
    running: Semaphore,
}

impl Compute {
    /// A namespace whose sources are these namespaces.
    pub fn new(block: Block, kv: Rc<Kv>) -> Self {
        Self { block, kv, running: Semaphore::new(EXECUTIONS_MAX) }
    }

    /// Runs the program at `index` on a payload of Execute Program; the result for dwords 0 and 1.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn execute(&self, index: u16, payload: &[u8]) -> Result<u64, Status> {
        let programs = programs();
        let program = programs.get(usize::from(index)).ok_or(Status::INVALID_PROGRAM_INDEX)?;
        let execution = Execution::parse(payload).map_err(|_| Status::INVALID_PROGRAM_DATA)?;
        if execution.program != program.pid() {
            return Err(Status::INVALID_PROGRAM_INDEX);
        }
        let permit = self.running.acquire(1).await;
        let result = match execution.program {
            count::PROGRAM_ID => self.count(execution).await,
            _ => Err(Status::NO_PROGRAM),
        };
        drop(permit);
        result
    }

    async fn count(&self, execution: Execution) -> Result<u64, Status> {
        let parameters = count::Parameters::parse(&execution.parameters)
            .map_err(|_| Status::INVALID_PROGRAM_DATA)?;
        let mut count = Count::new(parameters);
        let mut reads = self.plan(&execution.sources)?.into_iter();
        let mut batch = self.read_batch(&mut reads).await?;
        while !batch.is_empty() {
            // The next batch is read by a task of its own while the lane works on this one.
            let (this, mut rest) = (self.clone(), reads);
            let next = spawn(Class::Background, async move {
                let batch = this.read_batch(&mut rest).await;
                (batch, rest)
            });
            let job = CountJob { count: Some(count), batch, at: (0, 0) };
            let done = compute(Class::Background, job).await;
            let (next, rest) = next.await;
            count = done.map_err(|_| Status::PROGRAM_FAILED)??;
            batch = next?;
            reads = rest;
        }
        Ok(count.result())
    }

    /// The single reads that the sources come to, checked as far as that needs no reading.
    fn plan(&self, sources: &[Source]) -> Result<Vec<Read>, Status> {
        let mut reads = Vec::new();
        for source in sources {
            match *source {
                Source::KvChunks { nsid, prefix, first, count, stride } => {
                    if nsid != NSID_OBJECTS && nsid != NSID_KV {
                        return Err(Status::INVALID_NAMESPACE);
                    }
                    let nsid = u16::try_from(nsid).expect("2 or 3");
                    let numbers = (0..count).map(|step| first + step * stride);
                    reads.extend(numbers.map(|number| Read::Value { nsid, prefix, number }));
                }
                Source::Blocks { nsid, slba, skip, bytes } => {
                    if nsid != NSID_BLOCK {
                        return Err(Status::INVALID_NAMESPACE);
                    }
                    self.plan_blocks(slba, skip, bytes, &mut reads)?;
                }
            }
        }
        Ok(reads)
    }

    fn plan_blocks(
        &self,
        slba: u64,
        skip: u32,
        bytes: u32,
        reads: &mut Vec<Read>,
    ) -> Result<(), Status> {
        let block_bytes = self.block.block_bytes();
        let blocks = (u64::from(skip) + u64::from(bytes)).div_ceil(u64::from(block_bytes));
        let blocks = u32::try_from(blocks).map_err(|_| Status::LBA_OUT_OF_RANGE)?;
        self.block.length(Extent { slba, blocks })?;
        let mut done = 0;
        while done < bytes {
            let length = BLOCK_PIECE_BYTES.min(bytes - done);
            let skip = u64::from(skip) + u64::from(done);
            reads.push(Read::Blocks { slba, skip, bytes: length });
            done += length;
        }
        Ok(())
    }

    /// Reads the next batch: values are opened in order until their sizes fill it, then all of it
    /// is read at once.
    async fn read_batch(&self, reads: &mut std::vec::IntoIter<Read>) -> Result<Vec<Chunk>, Status> {
        let mut under_way = Vec::new();
        let mut bytes = 0;
        let mut failure = None;
        while bytes < BATCH_BYTES && failure.is_none() {
            let Some(read) = reads.next() else { break };
            match self.open(read).await {
                Ok(opened) => {
                    bytes += opened.bytes();
                    under_way.push(spawn(Class::Background, opened.read()));
                }
                Err(status) => failure = Some(status),
            }
        }
        let mut batch = Vec::with_capacity(under_way.len());
        // All are awaited even after a failure, so that none outlives its execution.
        for read in under_way {
            match read.await {
                Ok(chunk) => batch.push(chunk),
                Err(status) => failure = failure.or(Some(status)),
            }
        }
        failure.map_or(Ok(batch), Err)
    }

    async fn open(&self, read: Read) -> Result<Opened, Status> {
        match read {
            Read::Value { nsid, prefix, number } => {
                let value = self.kv.open(nsid, chunk_key(&prefix, number)).await?;
                value.map(Opened::Value).ok_or(Status::SOURCE_MISSING)
            }
            Read::Blocks { slba, skip, bytes } => {
                Ok(Opened::Blocks { block: self.block.clone(), slba, skip, bytes })
            }
        }
    }
}

/// A read whose size is known; a value's version is pinned.
enum Opened {
    Value(Value),
    Blocks { block: Block, slba: u64, skip: u64, bytes: u32 },
}

impl Opened {
    fn bytes(&self) -> usize {
        match self {
            Self::Value(value) => value.bytes() as usize,
            Self::Blocks { bytes, .. } => *bytes as usize,
        }
    }

    async fn read(self) -> Result<Chunk, Status> {
        match self {
            Self::Value(value) => {
                let bytes = value.read_unchecked().await?;
                Ok(Chunk { bytes, checksum: Some(value.checksum()) })
            }
            Self::Blocks { block, slba, skip, bytes } => {
                let buffer = Buffer::with_room(0, bytes as usize, 0);
                let bytes = block.read(slba, skip, buffer).await?;
                Ok(Chunk { bytes, checksum: None })
            }
        }
    }
}

/// One read of a source.
#[derive(Clone, Copy, Debug)]
enum Read {
    Value { nsid: u16, prefix: [u8; 12], number: u32 },
    Blocks { slba: u64, skip: u64, bytes: u32 },
}

/// What one read gave.
struct Chunk {
    bytes: Buffer,
    // Of a value; checked in the lane, where the bytes are about to be read anyway.
    checksum: Option<u32>,
}

/// Counts over one batch, in the compute lane.
struct CountJob {
    count: Option<Count>,
    batch: Vec<Chunk>,
    // Chunk, and byte within it, to go on from.
    at: (usize, usize),
}

impl Job for CountJob {
    type Output = Result<Count, Status>;

    fn step(&mut self) -> Progress<Self::Output> {
        let (index, start) = self.at;
        let Some(chunk) = self.batch.get(index) else {
            let count = self.count.take().expect("a job that is done is not stepped again");
            return Progress::Done { cost_ns: 0, output: Ok(count) };
        };
        if start == 0 && chunk.checksum.is_some_and(|sum| sum != crc32c::crc32c(&chunk.bytes)) {
            let output = Err(Status::UNRECOVERED_ERROR);
            return Progress::Done { cost_ns: 0, output };
        }
        let end = chunk.bytes.len().min(start + STEP_BYTES);
        let count = self.count.as_mut().expect("a job that is done is not stepped again");
        if count.feed(&chunk.bytes[start..end]).is_err() {
            return Progress::Done { cost_ns: 0, output: Err(Status::SOURCE_TYPE) };
        }
        self.at = if end == chunk.bytes.len() { (index + 1, 0) } else { (index, end) };
        // The simulated clock is charged 10 GB/s: the order of one core's memory bandwidth.
        Progress::More { cost_ns: (end - start) as u64 / 10 }
    }
}
