//! The program `combine`: gathers pieces, adds up products of them, and stores the sums.
//!
//! Pieces come from this drive and from its peers, sums go there ([`super::piece_io`]). A target
//! that is a copy of a source is stored as soon as the source is there. Invariants: no piece is
//! used, and no sum stored, that differs from a digest that the task gives; memory is that of the
//! sums and of a few pieces ([`held_bytes`]), and is given back when the last read and store have
//! ended; no execution waits for one of a peer, because peers are asked for reads and stores only.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use csd_kernels::erasure::Combiner;
use csd_nvme::status::Status;
use csd_nvme::vendor::combine::{Answers, PROGRAM_ID, Piece, Stored, Task};
use csd_nvme::vendor::execute::{Execution, Output};
use csd_reactor::{Buffer, Class, Job, JoinHandle, Progress, compute, compute_fn, spawn};

use super::capacity::Turn;
use super::execute::Meter;
use super::output::{self, Drain};
use super::piece_io::{Found, PieceIo};
use super::{CancelToken, Compute, Failure, Report};

/// Sources that are read at once.
const READS: usize = 4;
/// Copies that are stored at once.
const COPIES: usize = 4;
/// Bytes of a piece that are added in one step.
const STEP_BYTES: usize = 256 << 10;

/// Returns the most memory of a task: its sums, and pieces that are read, added and copied.
fn held_bytes(task: &Task) -> u64 {
    let longest = task.sources.iter().map(|piece| u64::from(piece.bytes)).max().unwrap_or(0);
    let sums: u64 = task.sums().map(|(_, target)| u64::from(target.piece.bytes)).sum();
    sums + (READS + COPIES + 1) as u64 * longest
}

impl Compute {
    /// Runs a task to its end, on this core.
    pub(super) async fn combine(&self, execution: &Execution, cancel: &CancelToken) -> Report {
        let mut meter = Meter::default();
        let combined = self.combined(execution, cancel, &mut meter);
        let result = cancel.unless_cancelled(combined).await.and_then(|result| result);
        Report { result, meter, program: PROGRAM_ID, cores: 1 }
    }

    async fn combined(
        &self,
        execution: &Execution,
        cancel: &CancelToken,
        meter: &mut Meter,
    ) -> Result<u64, Failure> {
        let task = Rc::new(Task::of(execution).map_err(Failure::misuse)?);
        let mut drain = Drain::new(self, execution.output)?;
        let io = Rc::new(PieceIo::new(self, &task).await?);
        let turn = Rc::new(self.capacity.acquire(execution, held_bytes(&task)).await);
        let mut work = Combining::new(Rc::clone(&task), io, turn, cancel.clone()).await?;
        let gathered = work.gather(meter).await;
        let answers = match gathered {
            Ok(sources) => work.finish(sources, meter).await,
            Err(failure) => Err(failure),
        };
        let answers = answers?;
        meter.written_bytes = written(&task, &answers);
        if execution.output == Output::Completion {
            // Nothing else tells the host.
            all_stored(&answers)?;
        }
        let mut output = output::gather(&execution.output, false);
        output.append(&answers.encode());
        let drained = drain.drain(&mut output, true).await;
        drain.finish().await.and(drained)?;
        Ok(answers.result())
    }
}

/// Checks that all targets are stored. A guard that does not hold is no fault of a drive.
fn all_stored(answers: &Answers) -> Result<(), Failure> {
    let lost = answers.targets.iter().position(|(_, stored)| *stored != Stored::Yes);
    let Some(target) = lost else { return Ok(()) };
    let status = match answers.targets[target].1 {
        Stored::Refused(Status::COMPARE_FAILURE) => Status::COMPARE_FAILURE,
        _ => Status::PEER_FAILED,
    };
    Err(Failure::new(status, format!("target {target} is not stored")))
}

fn written(task: &Task, answers: &Answers) -> u64 {
    let targets = task.targets.iter().zip(&answers.targets);
    let stored = targets.filter(|(_, (_, stored))| *stored == Stored::Yes);
    stored.map(|(target, _)| u64::from(target.piece.bytes)).sum()
}

/// A store that has begun: its target, the CRC-32C, and its outcome.
type Storing = (usize, u32, JoinHandle<Stored>);

/// A task that is worked on.
struct Combining {
    task: Rc<Task>,
    io: Rc<PieceIo>,
    turn: Rc<Turn>,
    cancel: CancelToken,
    combiner: Arc<Combiner>,
    /// Sums so far, by the order of the targets that are no copies.
    sums: Vec<Buffer>,
    /// Outcome of each target.
    stored: Vec<(u32, Stored)>,
    storing: VecDeque<Storing>,
}

impl Combining {
    async fn new(
        task: Rc<Task>,
        io: Rc<PieceIo>,
        turn: Rc<Turn>,
        cancel: CancelToken,
    ) -> Result<Self, Failure> {
        let targets: Vec<_> = task.sums().map(|(_, target)| target).collect();
        let factor = |source: usize, sum: usize| targets[sum].factors[source];
        let combiner = Combiner::new(task.sources.len(), targets.len(), factor);
        let combiner = Arc::new(combiner.map_err(Failure::misuse)?);
        let mut sums = Vec::with_capacity(targets.len());
        for target in targets {
            let bytes = target.piece.bytes as usize;
            sums.push(elsewhere(bytes, move || Buffer::zeroed(bytes)).await?);
        }
        let stored = vec![(0, Stored::Lost); task.targets.len()];
        Ok(Self { task, io, turn, cancel, combiner, sums, stored, storing: VecDeque::new() })
    }

    /// Reads all sources and adds them up, and stores copies. Returns the CRC-32C of each source.
    async fn gather(&mut self, meter: &mut Meter) -> Result<Vec<u32>, Failure> {
        let mut reading: VecDeque<JoinHandle<Result<Found, Failure>>> = VecDeque::new();
        let (mut next, mut found) = (0, Vec::new());
        while found.len() < self.task.sources.len() {
            while next < self.task.sources.len() && reading.len() < READS {
                reading.push_back(self.begin_read(next));
                next += 1;
            }
            let oldest = reading.pop_front().expect("more sources than were found");
            let (bytes, checksum) = oldest.await?;
            let source = found.len();
            meter.read_bytes += bytes.len() as u64;
            meter.work += (bytes.len() * self.sums.len()) as u64;
            let (bytes, crc) = self.add(source, bytes).await?;
            let expected = [checksum, self.task.sources[source].crc32c];
            if expected.into_iter().flatten().any(|expected| expected != crc) {
                let reason = format!("source {source} does not have the digest that is named");
                return Err(Failure::new(Status::UNRECOVERED_ERROR, reason));
            }
            self.copy(source, bytes, crc).await?;
            found.push(crc);
        }
        Ok(found)
    }

    fn begin_read(&self, source: usize) -> JoinHandle<Result<Found, Failure>> {
        let (io, turn) = (Rc::clone(&self.io), Rc::clone(&self.turn));
        let piece: Piece = self.task.sources[source];
        spawn(Class::Execution, async move {
            let found = io.read(&piece).await;
            drop(turn);
            found
        })
    }

    /// Adds a source to all sums on the compute thread. Returns it with its CRC-32C.
    async fn add(&mut self, source: usize, bytes: Buffer) -> Result<(Buffer, u32), Failure> {
        let job = Adding {
            combiner: Arc::clone(&self.combiner),
            source,
            state: Some((std::mem::take(&mut self.sums), bytes)),
            at: 0,
            crc: 0,
            cancel: self.cancel.clone(),
        };
        let added = compute(Class::Execution, job).await;
        let (sums, bytes, crc) = added??;
        self.sums = sums;
        Ok((bytes, crc))
    }

    /// Begins to store the targets that are copies of a source.
    async fn copy(&mut self, source: usize, mut bytes: Buffer, crc: u32) -> Result<(), Failure> {
        let task = Rc::clone(&self.task);
        let is_copy = |target: &usize| {
            let copied = task.targets[*target].copied(&task.sources);
            copied == Some(source)
        };
        let targets: Vec<usize> = (0..task.targets.len()).filter(is_copy).collect();
        let Some((last, others)) = targets.split_last() else { return Ok(()) };
        for target in others {
            let copied =
                elsewhere(bytes.len(), move || (Buffer::from_slice(&bytes), bytes)).await?;
            let copy;
            (copy, bytes) = copied;
            self.store_copy(*target, copy, crc).await?;
        }
        self.store_copy(*last, bytes, crc).await
    }

    async fn store_copy(&mut self, target: usize, copy: Buffer, crc: u32) -> Result<(), Failure> {
        self.check_target(target, crc)?;
        while self.storing.len() >= COPIES {
            self.wait_for_one().await;
        }
        self.begin_store(target, copy, crc);
        Ok(())
    }

    /// Checks that a target has the digest that the task gives.
    fn check_target(&self, target: usize, crc: u32) -> Result<(), Failure> {
        if self.task.targets[target].piece.crc32c.is_none_or(|expected| expected == crc) {
            return Ok(());
        }
        let reason = format!("target {target} would not have the digest that is named");
        Err(Failure::new(Status::UNRECOVERED_ERROR, reason))
    }

    fn begin_store(&mut self, target: usize, bytes: Buffer, crc: u32) {
        let (io, turn) = (Rc::clone(&self.io), Rc::clone(&self.turn));
        let stored = spawn(Class::Execution, async move {
            let stored = io.store(target, bytes).await;
            drop(turn);
            stored
        });
        self.storing.push_back((target, crc, stored));
    }

    async fn wait_for_one(&mut self) {
        if let Some((target, crc, stored)) = self.storing.pop_front() {
            self.stored[target] = (crc, stored.await);
        }
    }

    /// Stores the sums, if all have the digests that the task gives, and waits for all stores.
    async fn finish(&mut self, sources: Vec<u32>, meter: &mut Meter) -> Result<Answers, Failure> {
        let task = Rc::clone(&self.task);
        let numbers: Vec<usize> = task.sums().map(|(number, _)| number).collect();
        let mut sums = Vec::new();
        for (number, sum) in numbers.into_iter().zip(std::mem::take(&mut self.sums)) {
            let digest = move || {
                let crc = crc32c::crc32c(&sum);
                (sum, crc)
            };
            let (sum, crc) = elsewhere(task.targets[number].piece.bytes as usize, digest).await?;
            self.check_target(number, crc)?;
            sums.push((number, sum, crc));
        }
        meter.used_bytes = meter.read_bytes;
        for (number, sum, crc) in sums {
            self.begin_store(number, sum, crc);
        }
        while !self.storing.is_empty() {
            self.wait_for_one().await;
        }
        Ok(Answers { sources, targets: std::mem::take(&mut self.stored) })
    }
}

/// Runs a closure over so many bytes on the compute thread: a piece is long.
async fn elsewhere<T: Send + 'static>(
    bytes: usize,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    // The simulated clock is charged 10 GB/s, as of other programs.
    let done = compute_fn(Class::Execution, bytes as u64 / 10, run).await;
    done.map_err(|_| Failure::new(Status::PROGRAM_FAILED, "the computation panicked"))
}

/// A job that adds the products of one source to all sums.
struct Adding {
    combiner: Arc<Combiner>,
    source: usize,
    state: Option<(Vec<Buffer>, Buffer)>,
    at: usize,
    crc: u32,
    cancel: CancelToken,
}

impl Job for Adding {
    type Output = Result<(Vec<Buffer>, Buffer, u32), Failure>;

    fn step(&mut self) -> Progress<Self::Output> {
        let (sums, bytes) = self.state.as_mut().expect("a job that is done is not stepped again");
        let end = bytes.len().min(self.at + STEP_BYTES);
        let part = &bytes[self.at..end];
        self.crc = crc32c::crc32c_append(self.crc, part);
        let from = self.at;
        let mut rooms: Vec<&mut [u8]> = sums
            .iter_mut()
            .map(|sum| {
                let from = from.min(sum.len());
                &mut sum[from..]
            })
            .collect();
        let added = self.combiner.add(self.source, part, &mut rooms);
        added.expect("the combiner was made for these sources and sums");
        // The simulated clock is charged 10 GB/s, as of other programs.
        let cost_ns = part.len() as u64 * (1 + rooms.len() as u64) / 10;
        self.at = end;
        if let Err(failure) = self.cancel.check() {
            return Progress::Done { cost_ns, output: Err(failure) };
        }
        if self.at < bytes.len() {
            return Progress::More { cost_ns };
        }
        let (sums, bytes) = self.state.take().expect("looked at above");
        Progress::Done { cost_ns, output: Ok((sums, bytes, self.crc)) }
    }

    fn ran(&mut self, spent_ns: u64) {
        self.cancel.ran(spent_ns);
    }
}
