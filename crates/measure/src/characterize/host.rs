//! The host's side of a kernel: Host(n), which loads a working set over the wire and computes.
//!
//! Each of n cores connects by itself, loads its part into memory, waits for the others, computes,
//! waits, and writes its part of the result back; so loading, computing and storing are timed
//! separately. When pipelined, it computes on a piece while the next ones arrive, as in a run.
//! Chunk size, pieces in flight and kernels are those of `csd run --on host`. Runs no programs in
//! the drive. Invariant: all cores work on the same phase at a time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use csd_initiator::{Address, Block, Controller, Options};
use csd_kernels::kernel::{Kernel, Sample};
use csd_kernels::program::{CHUNK_BYTES, Execution};
use csd_reactor::sync::Barrier;
use csd_reactor::{Buffer, Class, CoreId, Instant, JoinHandle, busy, now, spawn};

use super::contention::{self, Contention};
use super::meter::{Mark, Meter};
use super::region::{PIECE_BYTES, Region, WorkingSet, pieces};
use super::working_set_storage::{StorageKind, WorkingSetStorage};
use super::{Error, Overlap};

/// Pieces that a core requests ahead, as in a run.
pub(super) const AHEAD: usize = 8;

/// A measurement to make on the host.
#[derive(Clone)]
pub struct HostJob {
    /// The drive.
    pub address: Address,
    /// Options of the connection.
    pub connection: Options,
    /// The kernel.
    pub kernel: &'static dyn Kernel,
    /// Location of the working set.
    pub region: Region,
    /// Size of the working set, bytes.
    pub bytes: u64,
    /// Number of working cores.
    pub units: usize,
    /// Overlap of loading and computing.
    pub overlap: Overlap,
    /// Region for the result, if it is written back.
    pub output: Option<Region>,
    /// Other work during the measurement.
    pub contention: Contention,
    /// Storage for loaded pieces.
    pub storage: StorageKind,
    /// Meter of this machine's energy.
    pub meter: Option<Meter>,
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timed {
    /// Time to load, seconds; serial only.
    pub load_s: f64,
    /// Time to compute, seconds; serial only.
    pub comp_s: f64,
    /// Time to write the result back, seconds; `None` if it is not written.
    pub store_s: Option<f64>,
    /// Time to load and compute, seconds.
    pub total_s: f64,
    /// Units of work.
    pub work: u64,
    /// The kernel's short result.
    pub result: u64,
    /// Bytes of the result that were stored.
    pub stored_bytes: u64,
    /// Time for which cores were busy, seconds.
    pub cpu_s: f64,
    /// Energy above that of the machine at rest, J; `None` without a counter.
    pub joules: Option<f64>,
}

/// Measures once.
///
/// # Errors
/// An error of the drive or the network: the first failure of any core.
pub fn measure(runtime: &csd_reactor::Config, job: &HostJob) -> Result<Timed, Error> {
    let cores = job.units + job.contention.count();
    let config = csd_reactor::Config { cores, ..runtime.clone() };
    let shared = Arc::new(Shared {
        job: job.clone(),
        barrier: Barrier::new(job.units),
        done: AtomicBool::new(false),
    });
    let parts = csd_reactor::run(&config, move |core| core_main(core, Arc::clone(&shared)));
    let parts = parts.map_err(Error::Runtime)?;
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<Part> = parts.into_iter().flatten().collect();
    let marks: Vec<_> = parts.iter().map(|part| part.marks).collect();
    let load_s = covered(&parts, |part| part.load);
    let comp_s = covered(&parts, |part| part.comp);
    Ok(Timed {
        load_s,
        comp_s,
        store_s: job.output.as_ref().map(|_| covered(&parts, |part| part.store)),
        total_s: covered(&parts, |part| (part.load.0, part.comp.1)),
        work: parts.iter().map(|part| part.work).sum(),
        result: parts.iter().fold(0, |sum, part| sum.wrapping_add(part.result)),
        stored_bytes: parts.iter().map(|part| part.stored_bytes).sum(),
        cpu_s: parts.iter().map(|part| part.cpu_s).sum(),
        joules: job.meter.as_ref().and_then(|meter| meter.beyond_rest(&marks)),
    })
}

/// Returns the seconds from the first begin to the last end.
fn covered(parts: &[Part], span: impl Fn(&Part) -> (Instant, Instant)) -> f64 {
    let begin = parts.iter().map(|part| span(part).0).min().unwrap_or(Instant::ZERO);
    let end = parts.iter().map(|part| span(part).1).max().unwrap_or(Instant::ZERO);
    end.since(begin).as_secs_f64()
}

struct Shared {
    job: HostJob,
    /// Barrier between the phases; broken when a worker fails.
    barrier: Barrier,
    /// True once the workers have ended, so that rivals may end.
    done: AtomicBool,
}

impl Shared {
    /// Returns true if the measurement has ended, well or not.
    fn is_over(&self) -> bool {
        self.done.load(Ordering::Relaxed) || self.barrier.is_broken()
    }
}

/// Measurements of one core, each span from begin to end.
struct Part {
    load: (Instant, Instant),
    comp: (Instant, Instant),
    store: (Instant, Instant),
    work: u64,
    result: u64,
    stored_bytes: u64,
    cpu_s: f64,
    /// Energy counter at the begin and the end.
    marks: Option<(Mark, Mark)>,
}

async fn core_main(core: CoreId, shared: Arc<Shared>) -> Result<Option<Part>, Error> {
    if core.0 >= shared.job.units {
        return contend(&shared).await.map(|()| None);
    }
    let part = work(core, &shared).await;
    if part.is_err() {
        shared.barrier.break_up();
    }
    if core.0 == 0 {
        shared.done.store(true, Ordering::Relaxed);
    }
    part
}

/// Does the other work of the job until the measurement is over.
async fn contend(shared: &Shared) -> Result<(), Error> {
    let job = &shared.job;
    if !matches!(job.contention, Contention::Io(_)) {
        contention::compute(|| shared.is_over()).await;
        return Ok(());
    }
    let controller = Controller::connect(&job.address, &job.connection).await?;
    let block = Block::open(&controller, job.region.nsid)?;
    let set = WorkingSet { bytes: job.bytes, streams: 1 };
    while !shared.is_over() {
        let mut arriving = Arriving::new(&block, &job.region, set, 0..job.bytes);
        while arriving.next().await?.is_some() && !shared.is_over() {}
    }
    controller.disconnect().await;
    Ok(())
}

async fn work(core: CoreId, shared: &Shared) -> Result<Option<Part>, Error> {
    let job = &shared.job;
    let controller = Controller::connect(&job.address, &job.connection).await?;
    let block = Block::open(&controller, job.region.nsid)?;
    let set = WorkingSet { bytes: job.bytes, streams: job.kernel.sample().streams };
    let own = set.part(core.0 as u64, job.units as u64, Sample::GRAIN_BYTES);
    let mut storage =
        WorkingSetStorage::new(&job.storage, core.0, set.streams as u64 * (own.end - own.start))?;
    if shared.barrier.wait().await.is_err() {
        return Ok(None);
    }
    let mark = || job.meter.as_ref().and_then(Meter::mark);
    let (before, marked) = (busy(), mark());
    let mut running = Running(job.kernel.start_sample().map_err(unable)?);
    let begin = now();
    let mut arriving = Arriving::new(&block, &job.region, set, own);
    let (loaded, computing);
    match job.overlap {
        Overlap::Pipelined => {
            while let Some(streams) = arriving.next().await? {
                running.feed(streams)?;
            }
            (loaded, computing) = (now(), begin);
        }
        Overlap::Serial => {
            while let Some(streams) = arriving.next().await? {
                storage.keep(streams)?;
            }
            loaded = now();
            if shared.barrier.wait().await.is_err() {
                return Ok(None);
            }
            computing = now();
            storage.each(|streams| running.feed(streams))?;
        }
    }
    let (result, work, output) = running.finish()?;
    let computed = now();
    let store = store(core, shared, &block, &output).await?;
    let cpu_s = Duration::from_nanos(busy().since(&before).busy_ns()).as_secs_f64();
    let marks = marked.zip(mark());
    controller.disconnect().await;
    Ok(Some(Part {
        load: (begin, loaded),
        comp: (computing, computed),
        store,
        work,
        result,
        stored_bytes: job.output.as_ref().map_or(0, |_| length(&output)),
        cpu_s,
        marks,
    }))
}

/// Execution of the kernel's program over the pieces that a core has loaded.
struct Running(Execution);

impl Running {
    /// Computes over the next piece of every stream.
    fn feed(&mut self, streams: Vec<Buffer>) -> Result<(), Error> {
        for (stream, piece) in streams.into_iter().enumerate() {
            self.0.push(stream, piece);
        }
        self.0.advance().map_err(unable)?;
        Ok(())
    }

    /// Returns the result, the work done and the output.
    fn finish(mut self) -> Result<(u64, u64, Vec<Buffer>), Error> {
        let result = self.0.finish().map_err(unable)?;
        let work = self.0.work();
        Ok((result, work, self.0.into_parts().1))
    }
}

fn unable(failure: csd_kernels::program::Failure) -> Error {
    Error::Unable(failure.reason)
}

/// Returns the number of bytes in all chunks.
fn length(chunks: &[Buffer]) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}

/// Copies bytes of an output from `at` on into `piece`, up to the output's end. All chunks but the
/// last have the same length.
fn copy(chunks: &[Buffer], at: u64, mut piece: &mut [u8]) {
    let chunk_bytes = CHUNK_BYTES as u64;
    let mut skip = usize::try_from(at % chunk_bytes).expect("less than a chunk");
    for chunk in chunks.iter().skip(usize::try_from(at / chunk_bytes).unwrap_or(usize::MAX)) {
        let from = &chunk[skip.min(chunk.len())..];
        let bytes = from.len().min(piece.len());
        let (head, rest) = std::mem::take(&mut piece).split_at_mut(bytes);
        head.copy_from_slice(&from[..bytes]);
        (piece, skip) = (rest, 0);
        if piece.is_empty() {
            break;
        }
    }
}

/// Writes this core's part of the result, if results are written.
async fn store(
    core: CoreId,
    shared: &Shared,
    block: &Block,
    output: &[Buffer],
) -> Result<(Instant, Instant), Error> {
    let job = &shared.job;
    let Some(region) = &job.output else { return Ok((now(), now())) };
    if shared.barrier.wait().await.is_err() {
        return Ok((now(), now()));
    }
    let begin = now();
    // A core's share of the result is never longer than its share of the region.
    let share = region.bytes() / job.units as u64 / Sample::GRAIN_BYTES * Sample::GRAIN_BYTES;
    let start = share * core.0 as u64;
    let end = start + length(output).next_multiple_of(Sample::GRAIN_BYTES);
    assert!(end <= start + share, "a result fits the room for it");
    write(block, region, start..end, |at, piece| copy(output, at - start, piece)).await?;
    Ok((begin, now()))
}

/// Writes `range` of a region in pieces that `fill` produces, several in flight at once, and
/// flushes.
pub(super) async fn write(
    block: &Block,
    region: &Region,
    range: Range<u64>,
    mut fill: impl FnMut(u64, &mut [u8]),
) -> Result<(), Error> {
    let mut pending: VecDeque<JoinHandle<Result<(), csd_initiator::Error>>> = VecDeque::new();
    for piece in pieces(range) {
        let mut at = piece.start;
        for (offset, bytes) in region.cut(piece) {
            let mut buffer = Buffer::zeroed(usize::try_from(bytes).expect("at most a MiB"));
            fill(at, &mut buffer);
            at += bytes;
            let block = block.clone();
            pending.push_back(spawn(Class::Foreground, async move {
                block.write(offset, vec![buffer], false).await
            }));
        }
        while pending.len() >= AHEAD {
            pending.pop_front().expect("as many as that").await?;
        }
    }
    while let Some(write) = pending.pop_front() {
        write.await?;
    }
    Ok(block.flush().await?)
}

/// Reader of the pieces of every stream, in order, with read-ahead.
pub(super) struct Arriving<'a> {
    block: &'a Block,
    region: &'a Region,
    set: WorkingSet,
    pieces: Box<dyn Iterator<Item = Range<u64>> + 'a>,
    pending: VecDeque<Vec<JoinHandle<Result<Buffer, Error>>>>,
}

impl<'a> Arriving<'a> {
    /// Returns a reader of bytes `range` of every stream of `set`.
    pub(super) fn new(
        block: &'a Block,
        region: &'a Region,
        set: WorkingSet,
        range: Range<u64>,
    ) -> Self {
        let pieces = Box::new(pieces(range));
        Self { block, region, set, pieces, pending: VecDeque::new() }
    }

    /// Returns the next piece of every stream.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Buffer>>, Error> {
        while self.pending.len() * self.set.streams < AHEAD {
            let Some(piece) = self.pieces.next() else { break };
            let reads = (0..self.set.streams).map(|stream| {
                let ranges = self.region.cut(self.set.of_stream(stream, &piece));
                spawn(Class::Foreground, read(self.block.clone(), ranges))
            });
            self.pending.push_back(reads.collect());
        }
        let Some(reads) = self.pending.pop_front() else { return Ok(None) };
        let mut streams = Vec::with_capacity(reads.len());
        for read in reads {
            streams.push(read.await?);
        }
        Ok(Some(streams))
    }
}

/// Reads ranges into one piece.
async fn read(block: Block, ranges: Vec<(u64, u64)>) -> Result<Buffer, Error> {
    let length = |bytes: u64| usize::try_from(bytes.min(PIECE_BYTES)).expect("at most a MiB");
    if let [(offset, bytes)] = ranges[..] {
        return Ok(block.read(offset, length(bytes)).await?);
    }
    let mut whole = Buffer::with_room(0, 0, length(PIECE_BYTES));
    for (offset, bytes) in ranges {
        let part = block.read(offset, length(bytes)).await?;
        whole.append(part.len()).copy_from_slice(&part);
    }
    Ok(whole)
}
