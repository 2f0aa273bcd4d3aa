//! Scrub: drives read the chunks of an object where they are, and compare them with the checksums
//! that the catalogue holds.
//!
//! An execution of the kernel `verify` takes each chunk as a page; its digest is that of the
//! checksums in the entry. If it is not, the chunks are read again one by one. So only digests
//! cross the wire, and damage is found by chunk. In drives kernels have the lowest priority; a
//! budget limits the bytes that each drive reads in a second. Invariant: nothing is written, and a
//! chunk is reported only after an execution over it alone has found it bad.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_kernels::verify::{self, Parameters, Plan, Spacing};
use csd_nvme::execute::{CHUNKS_MAX, Execution, Output};
use csd_nvme::status::Status;
use csd_reactor::{Class, Instant, now, sleep_until, spawn};

use crate::array::{Array, Drive};
use crate::catalogue::Entry;
use crate::layout::Run;
use crate::object::{self, Error, Progress};
use crate::run::{places, program_index};

/// Most bytes of one execution, so that a budget is kept evenly.
const EXECUTION_BYTES: u32 = 32 << 20;

/// Cause for which a chunk is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The drive has no such value.
    Missing,
    /// The drive cannot read it: its record does not match its own checksum, or the medium fails.
    Unreadable,
    /// It can be read, and is not the chunk that was put.
    Differs,
}

impl Cause {
    /// Returns its name, as in JSON output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Differs => "differs",
        }
    }
}

/// A bad chunk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bad {
    /// Name of the object.
    pub object: String,
    /// Number of the chunk in the object's order.
    pub chunk: u32,
    /// Name of its drive.
    pub drive: String,
    /// Cause.
    pub cause: Cause,
}

/// Chunks that no drive has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Name of the object.
    pub object: String,
    /// Name of the drive.
    pub drive: String,
    /// Number of chunks.
    pub chunks: u64,
    /// Reason, in words.
    pub why: String,
}

/// Findings in one object or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Number of chunks read.
    pub chunks: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Number of chunks that were read and have no checksum in the catalogue.
    pub unknown: u64,
    /// Bad chunks, in the order of the object.
    pub bad: Vec<Bad>,
    /// Chunks of drives that are down, or were lost.
    pub unread: Vec<Unread>,
}

impl Scrubbed {
    /// Adds other findings.
    pub fn add(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.bytes += other.bytes;
        self.unknown += other.unknown;
        self.bad.extend(other.bad);
        self.unread.extend(other.unread);
    }
}

/// Limits of a scrub.
#[derive(Clone)]
pub struct Limits {
    /// Bytes that each drive reads in a second; `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// True once the scrub must end early.
    pub stop: Rc<Cell<bool>>,
    /// Callback for the bytes read.
    pub progress: Progress,
}

/// Work of one member's drive.
struct Member {
    drive: Rc<Drive>,
    entry: Rc<Entry>,
    member: usize,
    program: u16,
    limits: Limits,
}

/// Reads the chunks of a sealed object in all its drives at once. If it was asked to stop, the
/// findings are those so far.
///
/// # Errors
/// A drive's answer that says nothing about a chunk. A drive that is down or lost is no error.
pub async fn scrub(array: &Array, entry: &Entry, limits: &Limits) -> Result<Scrubbed, Error> {
    let (entry, mut found) = (Rc::new(entry.clone()), Scrubbed::default());
    let mut tasks = Vec::new();
    for (member, index) in entry.members.iter().enumerate() {
        let slot = &array.slots()[usize::from(*index)];
        match slot.drive() {
            Ok(drive) => {
                let (drive, entry) = (Rc::clone(drive), Rc::clone(&entry));
                let limits = limits.clone();
                tasks.push(spawn(Class::Foreground, async move {
                    one_member(drive, entry, member, limits).await
                }));
            }
            Err(why) => {
                let chunks = entry.layout().count(member).into();
                let (object, drive) = (entry.name.clone(), slot.name.clone());
                found.unread.extend((chunks > 0).then(|| Unread {
                    object,
                    drive,
                    chunks,
                    why: why.to_owned(),
                }));
            }
        }
    }
    let mut failed = None;
    for task in tasks {
        match task.await {
            Ok(of_member) => found.add(of_member),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    found.bad.sort();
    if !found.bad.is_empty() && is_gone(array, &entry).await? {
        found.bad.clear();
    }
    Ok(found)
}

/// Returns true if the object was removed, and its chunks with it.
async fn is_gone(array: &Array, entry: &Entry) -> Result<bool, Error> {
    match object::lookup(array, &entry.name).await {
        Ok(current) => Ok(current.id != entry.id),
        Err(Error::Missing { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

async fn one_member(
    drive: Rc<Drive>,
    entry: Rc<Entry>,
    member: usize,
    limits: Limits,
) -> Result<Scrubbed, Error> {
    let mut found = Scrubbed::default();
    let work = async {
        let program = program_index(&drive, verify::PROGRAM_ID).await?;
        let (drive, entry) = (Rc::clone(&drive), Rc::clone(&entry));
        Member { drive, entry, member, program, limits }.all(&mut found).await
    };
    match work.await {
        Err(error) if is_lost(&error) => {
            let chunks = u64::from(entry.layout().count(member)) - found.chunks;
            let (object, drive, why) = (entry.name.clone(), drive.name.clone(), error.to_string());
            found.unread.push(Unread { object, drive, chunks, why });
            Ok(found)
        }
        done => done.map(|()| found),
    }
}

/// Returns true if a drive gave no answer.
fn is_lost(error: &Error) -> bool {
    matches!(error, Error::Drive { source, .. } if source.status().is_none())
}

impl Member {
    /// Reads all chunks of the member; `found` has those that were read, also after an error.
    async fn all(&self, found: &mut Scrubbed) -> Result<(), Error> {
        let most = CHUNKS_MAX.min(EXECUTION_BYTES / self.entry.chunk_bytes).max(1);
        for run in self.entry.layout().runs(self.member) {
            for run in cut(&run, most) {
                if self.limits.stop.get() {
                    return Ok(());
                }
                let (begin, bytes, chunks) = (now(), self.bytes(&run), run.locals.len() as u64);
                let (bad, unknown) = self.look(&run).await?;
                found.bad.extend(bad);
                found.chunks += chunks;
                found.unknown += unknown;
                found.bytes += bytes;
                (self.limits.progress)(bytes);
                if let Some(rate) = self.limits.bytes_per_s {
                    sleep_until(after(begin, bytes, rate)).await;
                }
            }
        }
        Ok(())
    }

    /// Reads the chunks of a run; returns the bad ones, and the number of those that cannot be
    /// compared.
    async fn look(&self, run: &Run) -> Result<(Vec<Bad>, u64), Error> {
        let sums = self.sums(run);
        let unknown = if sums.is_none() { run.locals.len() as u64 } else { 0 };
        let Some(cause) = self.verify(run, sums.as_deref()).await? else {
            return Ok((Vec::new(), unknown));
        };
        if run.locals.len() == 1 {
            return Ok((vec![self.bad(run.first, cause)], unknown));
        }
        let mut bad = Vec::new();
        for one in cut(run, 1) {
            let sums = self.sums(&one);
            let cause = self.verify(&one, sums.as_deref()).await?;
            bad.extend(cause.map(|cause| self.bad(one.first, cause)));
        }
        Ok((bad, unknown))
    }

    fn bad(&self, chunk: u32, cause: Cause) -> Bad {
        let (object, drive) = (self.entry.name.clone(), self.drive.name.clone());
        Bad { object, chunk, drive, cause }
    }

    /// Returns the checksums of a run's chunks; `None` if the catalogue does not have them.
    fn sums(&self, run: &Run) -> Option<Vec<u32>> {
        let count = run.locals.end - run.locals.start;
        (0..count).map(|step| self.entry.sum(run.first + step * run.stride)).collect()
    }

    /// Returns the length of a run's chunks, bytes.
    fn bytes(&self, run: &Run) -> u64 {
        let count = run.locals.end - run.locals.start;
        self.entry.layout().range_bytes(self.member, run.locals.start, count)
    }

    /// Lets the drive read a run's chunks; returns what is wrong with them.
    async fn verify(&self, run: &Run, sums: Option<&[u32]>) -> Result<Option<Cause>, Error> {
        let (entry, drive) = (&self.entry, &self.drive);
        let block_bytes = drive.block.block_bytes();
        let places = places(entry, block_bytes, self.member, run);
        let plan = Plan::sequential(entry.chunk_bytes);
        let execution = Execution {
            program: verify::PROGRAM_ID,
            output: Output::Completion,
            sources: places.into_iter().map(Into::into).collect(),
            inline: Vec::new(),
            parameters: Parameters { plan, spacing: Spacing::default() }.encode(),
            serial: false,
            cores: 1,
        };
        match drive.compute.execute(self.program, &execution).await {
            Ok(result) => Ok(sums.filter(|sums| result != expected(sums)).map(|_| Cause::Differs)),
            Err(error) => match error.status() {
                Some(Status::SOURCE_MISSING) => Ok(Some(Cause::Missing)),
                Some(Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR) => {
                    Ok(Some(Cause::Unreadable))
                }
                _ => Err(Error::command(drive, error)),
            },
        }
    }
}

/// Returns the result of `verify` over chunks with these checksums.
fn expected(sums: &[u32]) -> u64 {
    let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    u64::from(crc32c::crc32c(&bytes)) | (sums.len() as u64) << 32
}

/// Cuts a run into pieces of at most `most` chunks.
fn cut(run: &Run, most: u32) -> impl Iterator<Item = Run> {
    let (run, count) = (run.clone(), run.locals.end - run.locals.start);
    (0..count.div_ceil(most)).map(move |piece| {
        let step = piece * most;
        let start = run.locals.start + step;
        Run {
            locals: start..run.locals.end.min(start + most),
            first: run.first + step * run.stride,
            number: run.number + step * run.stride,
            ..run.clone()
        }
    })
}

/// Returns the time at which `bytes` that were begun at `begin` may have been read.
fn after(begin: Instant, bytes: u64, bytes_per_s: u64) -> Instant {
    let ns = u128::from(bytes) * Duration::from_secs(1).as_nanos() / u128::from(bytes_per_s.max(1));
    Instant::from_ns(begin.ns().saturating_add(u64::try_from(ns).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use csd_kernels::kernel::{Kernel, Wanted};
    use csd_kernels::program;
    use csd_reactor::Buffer;

    use super::*;

    #[test]
    fn chunks_of_a_run_are_cut_without_loss() {
        let run = Run { locals: 3..10, first: 7, number: 107, stride: 2, part: Some(1) };
        let pieces: Vec<Run> = cut(&run, 3).collect();
        let shape = |run: &Run| (run.locals.clone(), run.first, run.number);
        let shapes: Vec<_> = pieces.iter().map(shape).collect();
        assert_eq!(shapes, [(3..6, 7, 107), (6..9, 13, 113), (9..10, 19, 119)]);
        assert!(pieces.iter().all(|piece| (piece.stride, piece.part) == (2, Some(1))));
        assert_eq!(cut(&run, 100).collect::<Vec<_>>(), [run]);
    }

    #[test]
    fn the_digest_is_that_of_the_kernel() {
        let chunks = [vec![1; 4096], vec![2; 4096], vec![3; 100]];
        let sums: Vec<u32> = chunks.iter().map(|chunk| crc32c::crc32c(chunk)).collect();
        let parameters =
            Parameters { plan: Plan::sequential(4096), spacing: Spacing::default() }.encode();
        let program = verify::KERNEL.start(&parameters, Wanted::Result).unwrap();
        let stream = chunks.iter().map(|chunk| Buffer::from_slice(chunk)).collect();
        assert_eq!(program::run(program, vec![stream]).unwrap().0, expected(&sums));
    }

    #[test]
    fn a_budget_spreads_the_bytes_over_time() {
        let begin = Instant::from_ns(5);
        assert_eq!(after(begin, 1000, 500).ns(), 2_000_000_005);
        assert_eq!(after(begin, u64::MAX, 1).ns(), u64::MAX);
    }
}
