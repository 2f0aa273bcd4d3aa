//! The drives' part of a run: executions over ranges of a drive's own chunks.
//!
//! Never reads a chunk. Invariant: an execution covers at most what the payload's format allows
//! ([`csd_nvme::execute::CHUNKS_MAX`] chunks, 256 MiB), so that a drive answers in time.

use std::rc::Rc;
use std::sync::Arc;

use csd_nvme::execute::{CHUNKS_MAX, Execution, Output, Place, Source};
use csd_nvme::status::Status;
use csd_reactor::{Class, Instant, now, spawn};

use super::queue::{Queue, Taken};
use super::{Error, Job, Share};
use crate::array::{Array, BLOCK_NSID, Drive, OBJECTS_NSID};
use crate::catalogue::{Entry, Placement};
use crate::extent::byte_ranges;
use crate::object::Progress;

/// Executions of one drive in flight at once.
const IN_FLIGHT: u32 = 4;
/// An execution takes this part of a drive's remaining chunks: with [`IN_FLIGHT`] of them at
/// work, half of what is left stays for the next round, and the last ones are short.
const PART: u32 = 2 * IN_FLIGHT;
/// Most bytes of one execution. Block sources are counted in begun MiB each, so with units of
/// 8 MiB scattered at worst this stays below the format's 256 MiB.
const BYTES_MAX: u32 = 192 << 20;

/// What one drive did.
pub(super) struct Part {
    pub(super) count: u64,
    pub(super) share: Share,
}

/// Lets `member`'s drive take chunks until none is left; gives when and how much it worked.
pub(super) async fn work(
    array: &Array,
    job: &Arc<Job>,
    member: usize,
    queue: &Arc<Queue>,
    progress: &Progress,
) -> Result<Part, Error> {
    let drive = array.drive(job.entry.members[member].into()).map_err(Error::from)?;
    let program = program_index(drive, job.program).await?;
    let most = CHUNKS_MAX.min(BYTES_MAX / job.entry.chunk_bytes);
    let workers: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (drive, job, queue) = (Rc::clone(drive), Arc::clone(job), Arc::clone(queue));
            let progress = Arc::clone(progress);
            spawn(Class::Foreground, async move {
                let mut done = Vec::new();
                while let Some(taken) = queue.take_for_drive(member, PART, most) {
                    let executed = execute(&drive, program, &job, &taken).await;
                    let executed = executed.inspect_err(|_| queue.stop())?;
                    progress(executed.bytes);
                    done.push(executed);
                }
                Ok::<_, Error>(done)
            })
        })
        .collect();
    let (mut all, mut failed) = (Vec::new(), None);
    for worker in workers {
        match worker.await {
            Ok(done) => all.extend(done),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let bytes: u64 = all.iter().map(|executed| executed.bytes).sum();
    let element_bytes = job.entry.element.bytes() as u64;
    let busy_s = covered_s(all.iter().map(|executed| executed.span).collect());
    let share = Share { who: drive.name.clone(), elements: bytes / element_bytes, busy_s };
    Ok(Part { count: all.iter().map(|executed| executed.count).sum(), share })
}

struct Executed {
    count: u64,
    bytes: u64,
    span: (Instant, Instant),
}

async fn execute(drive: &Drive, program: u16, job: &Job, taken: &Taken) -> Result<Executed, Error> {
    let execution = Execution {
        program: job.program,
        output: Output::Completion,
        sources: sources(&job.entry, drive.block.block_bytes(), taken),
        parameters: job.parameters.encode(),
        serial: false,
    };
    let begin = now();
    let count = drive.compute.execute(program, &execution).await;
    let count = count.map_err(|error| match error.status() {
        Some(Status::SOURCE_MISSING | Status::SOURCE_TYPE | Status::UNRECOVERED_ERROR) => {
            let (drive, object) = (drive.name.clone(), job.entry.name.clone());
            Error::Corrupt { drive, object, why: crate::array::words(&error) }
        }
        _ => Error::command(drive, error),
    })?;
    let locals = taken.locals.len();
    let locals = u32::try_from(locals).expect("at most 256 chunks");
    let bytes = job.entry.spread().range_bytes(taken.member, taken.locals.start, locals);
    Ok(Executed { count, bytes, span: (begin, now()) })
}

/// What an execution over `taken` reads.
fn sources(entry: &Entry, block_bytes: u32, taken: &Taken) -> Vec<Source> {
    let spread = entry.spread();
    let count = taken.locals.end - taken.locals.start;
    let Placement::Block(extents) = &entry.placement else {
        let first = spread.chunk(taken.member, taken.locals.start);
        let stride = u32::from(spread.members);
        let (nsid, prefix) = (OBJECTS_NSID, entry.id.0);
        return vec![Place::KvChunks { nsid, prefix, first, count, stride }.into()];
    };
    let start = u64::from(taken.locals.start) * u64::from(entry.chunk_bytes);
    let bytes = spread.range_bytes(taken.member, taken.locals.start, count);
    let ranges = byte_ranges(&extents[taken.member], start, bytes);
    let source = |(offset, bytes)| {
        let place = Place::Blocks {
            nsid: BLOCK_NSID,
            slba: offset / u64::from(block_bytes),
            skip: 0, // chunks and units are whole blocks
            bytes: u32::try_from(bytes).expect("at most 256 MiB"),
        };
        place.into()
    };
    ranges.into_iter().map(source).collect()
}

async fn program_index(drive: &Drive, pid: u64) -> Result<u16, Error> {
    let programs = drive.compute.programs().await;
    let programs = programs.map_err(|error| Error::command(drive, error))?;
    let index = programs.iter().position(|program| program.pid() == pid);
    index.and_then(|index| u16::try_from(index).ok()).ok_or_else(|| Error::Corrupt {
        drive: drive.name.clone(),
        object: format!("program {pid}"),
        why: "the drive does not list this program".to_owned(),
    })
}

/// Seconds covered by at least one of the spans.
fn covered_s(mut spans: Vec<(Instant, Instant)>) -> f64 {
    spans.sort();
    let (mut covered_ns, mut until) = (0, Instant::ZERO);
    for (begin, end) in spans {
        let begin = begin.max(until);
        covered_ns += end.ns().saturating_sub(begin.ns());
        until = until.max(end);
    }
    super::seconds(covered_ns)
}

#[cfg(test)]
mod tests {
    use csd_kernels::ElementType;

    use super::*;
    use crate::catalogue::{Extents, ObjectId, State};

    fn entry(placement: Placement) -> Entry {
        Entry {
            name: "x".to_owned(),
            id: ObjectId([0x81; 12]),
            writer: [0; 16],
            epoch: 1,
            state: State::Sealed,
            element: ElementType::I32,
            shape: vec![20 << 18],
            chunk_bytes: 1 << 20,
            bytes: (39 << 20) + 400,
            offset: 1,
            members: vec![4, 2],
            placement,
            digest: [0; 32],
        }
    }

    #[test]
    fn a_range_of_values_is_first_count_and_stride() {
        let taken = Taken { member: 0, locals: 3..9 };
        let expected = Place::KvChunks {
            nsid: OBJECTS_NSID,
            prefix: [0x81; 12],
            first: 7, // member 0 holds chunks 1, 3, 5, 7, ...
            count: 6,
            stride: 2,
        };
        assert_eq!(sources(&entry(Placement::Kv), 4096, &taken), [expected.into()]);
    }

    #[test]
    fn a_range_of_blocks_follows_the_extents_and_ends_with_the_object() {
        let extents: Vec<Extents> = vec![vec![(2, 1), (9, 2)], vec![(0, 3)]];
        let entry = entry(Placement::Block(extents));
        let taken = Taken { member: 0, locals: 7..20 };
        let block = |offset: u64, bytes| -> Source {
            Place::Blocks { nsid: BLOCK_NSID, slba: offset / 4096, skip: 0, bytes }.into()
        };
        // Chunks 15, 17, ... 39: the eighth of unit 2, then 11 whole ones and 400 bytes of unit 9.
        let expected = [block(23 << 20, 1 << 20), block(72 << 20, (11 << 20) + 400)];
        assert_eq!(sources(&entry, 4096, &taken), expected);
    }

    #[test]
    fn overlapping_work_counts_once() {
        let at = Instant::from_ns;
        let second = 1_000_000_000;
        let spans = vec![
            (at(4 * second), at(5 * second)),
            (at(second), at(3 * second)),
            (at(2 * second), at(3 * second)),
        ];
        assert!((covered_s(spans) - 3.0).abs() < 1e-9);
        assert!(covered_s(Vec::new()).abs() < 1e-9);
    }
}
