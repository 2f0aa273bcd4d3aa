//! The drives' part of a run: executions over ranges of a drive's own chunks, or over its parts.
//!
//! Reads no chunk. Invariant: an execution covers at most what the payload's format allows
//! ([`csd_nvme::vendor::execute::CHUNKS_MAX`] chunks, 256 MiB), so that a drive answers in time.

use std::rc::Rc;

use csd_initiator::Memory;
use csd_kernels::kernel::{Answer, Position};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Digests, Execution, Source, SourceData};
use csd_reactor::now;
use csd_store::array::{BLOCK_NSID, Drive, OBJECTS_NSID};
use csd_store::catalogue::{Entry, Placement};
use csd_store::extent_ranges::byte_ranges;
use csd_store::in_place::program_index;
use csd_store::layout::Run;
use csd_store::piece::is_damage;

use crate::Error;
use crate::context::StepContext;
use crate::job::entry_bytes;
use crate::memory;
use crate::queue::Taken;
use crate::tally;
use crate::target::{MEMORY_NSID, Slot};
use crate::team::Team;
use crate::units::in_own_units;
use crate::work::{self, Done, Span};

/// Lets `member`'s drive take units until none is left. If the drive is lost, records it, and the
/// others go on.
pub(crate) async fn work(context: &Rc<StepContext>, member: usize) -> Result<Done, Error> {
    let (job, link) = (context.job(), &context.common.links[member]);
    let program = link.run(async |drive| program_index(drive, job.kernel.program_id()).await).await;
    let program = match program {
        Err(error) if error.is_lost() => {
            context.common.lose(member, &error, None);
            return Ok(Done::default());
        }
        program => program?,
    };
    // When all executions of a round are in flight, half of the units stay for the next round, and
    // the last executions are short.
    let limits = (2 * job.in_flight(), job.most());
    in_own_units(&context.common, &job.inputs, member, async || {
        let mut workers = Team::default();
        for number in 0..job.in_flight() {
            let context = Rc::clone(context);
            workers.add(async move {
                let execute = async |taken: &Taken| {
                    let executed = execute(&context, (program, number), taken).await;
                    executed.map_err(|error| (member, error))
                };
                work::worker(&*context, member, limits, || true, execute).await
            });
        }
        work::together(workers).await
    })
    .await
}

/// Runs the program over `taken` in its drive, as execution `number` of those at once.
async fn execute(
    context: &Rc<StepContext>,
    (program, number): (u16, u32),
    taken: &Taken,
) -> Result<(u64, Option<Span>), Error> {
    let (begin, link) = (now(), &context.common.links[taken.member]);
    let position = tally::position(context.job(), taken);
    let answer = link
        .run(async |drive| {
            let slot = Slot { execution: number, renewals: link.renewals() };
            memory::renew(context, taken.member, drive).await?;
            let result = execute_once(drive, context, program, (taken, &position, slot)).await?;
            let bytes = read_bytes(drive, context, taken, slot).await?;
            Ok::<_, Error>(Answer { result, bytes })
        })
        .await?;
    Ok((context.done(taken, &position, answer), Some((begin, now()))))
}

async fn execute_once(
    drive: &Drive,
    context: &StepContext,
    program: u16,
    (taken, position, slot): (&Taken, &Position, Slot),
) -> Result<u64, Error> {
    let job = context.job();
    let (sources, digests) = sources(context, drive.block.block_bytes(), taken);
    let execution = Execution {
        program: job.kernel.program_id(),
        output: context.run.target.output(job, taken, slot),
        sources,
        inline: vec![],
        digests,
        parameters: job.parameters_at(position),
        serial: false,
        cores: context.run.run_options.drive_cores,
    };
    let result = drive.compute.execute(program, &execution).await;
    result.map_err(|error| match error.status() {
        Some(Status::SOURCE_MISSING | Status::SOURCE_TYPE | Status::SOURCE_ORDER) => {
            unsound(drive, job.names(), &error)
        }
        status if is_damage(status) => unsound(drive, job.names(), &error),
        _ => Error::command(drive, error),
    })
}

/// Returns the error of a drive that cannot run over the chunks of these objects.
pub(crate) fn unsound(drive: &Drive, object: String, error: &csd_initiator::Error) -> Error {
    let why = match is_damage(error.status()) {
        true => {
            "a chunk is damaged, or not the one that was put: `csd scrub` says which".to_owned()
        }
        false => csd_store::array::words(error),
    };
    Error::corrupt(&drive.name, object, why)
}

/// Reads the bytes that an execution left in the drive's memory.
async fn read_bytes(
    drive: &Drive,
    context: &StepContext,
    taken: &Taken,
    slot: Slot,
) -> Result<Vec<u8>, Error> {
    let (start, bytes) = context.run.target.memory_range(context.job(), taken, slot);
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let failed = |error| Error::command(drive, error);
    let memory = Memory::open(&drive.controller, MEMORY_NSID).map_err(failed)?;
    let bytes = usize::try_from(bytes).expect("fewer sums than bytes of rows");
    Ok(memory.read(start, bytes).await.map_err(failed)?.to_vec())
}

/// Returns the sources of an execution over `taken`, and their digests if they are known: a stream
/// for each input, and the vector.
fn sources(
    context: &StepContext,
    block_bytes: u32,
    taken: &Taken,
) -> (Vec<Source>, Option<Digests>) {
    let job = context.job();
    let (mut sources, mut digests) = (Vec::new(), digests(&job.inputs));
    for (stream, entry) in (0u8..).zip(&job.inputs) {
        let run = match taken.run.part.filter(|_| job.by_parts()) {
            None => Some(taken.run.clone()),
            Some(part) => part_run(entry, part),
        };
        let Some(run) = run else { continue };
        let read = sources_of(entry, block_bytes, taken.member, &run);
        sources.extend(read.into_iter().map(|data| data.on(stream)));
        add_sums(&mut digests, stream, entry, &run);
    }
    if !context.vector.is_empty() {
        let bytes = u32::try_from(context.vector.len()).expect("checked when the job was made");
        let (nsid, start) = (MEMORY_NSID, 0);
        sources.push(SourceData::Memory { nsid, start, bytes }.on(1));
    }
    (sources, some(digests))
}

/// Returns digests for an execution over these inputs, of no stream yet.
pub(crate) fn digests(inputs: &[Entry]) -> Digests {
    Digests { unit_bytes: inputs[0].chunk_bytes, streams: 0, sums: Vec::new() }
}

/// Adds the digests of the chunks of a run, which a stream reads, if the object has any.
pub(crate) fn add_sums(digests: &mut Digests, stream: u8, entry: &Entry, run: &Run) {
    let chunks = (0..run.locals.end - run.locals.start).map(|step| run.first + step * run.stride);
    let sums: Option<Vec<u32>> = chunks.map(|chunk| entry.sum(chunk)).collect();
    if let Some(sums) = sums {
        digests.streams |= 1 << stream;
        digests.sums.extend(sums);
    }
}

/// Returns digests, if there are any.
pub(crate) fn some(digests: Digests) -> Option<Digests> {
    Some(digests).filter(|digests| digests.streams != 0)
}

/// Returns the chunks of a part; `None` when it has none.
pub(crate) fn part_run(entry: &Entry, part: usize) -> Option<Run> {
    let parts = entry.parts.as_ref().expect("checked when the job was made");
    let chunks = parts.part_chunks(part);
    if chunks.is_empty() {
        return None;
    }
    let layout = entry.layout();
    let start = layout.local(chunks.start);
    let locals = start..start + (chunks.end - chunks.start);
    let number = layout.number(chunks.start);
    Some(Run { locals, first: chunks.start, number, stride: 1, part: Some(part) })
}

/// Returns the chunks of a run on their drive as data of sources.
pub(crate) fn sources_of(
    entry: &Entry,
    block_bytes: u32,
    member: usize,
    run: &Run,
) -> Vec<SourceData> {
    let Placement::Block(extents) = &entry.placement else {
        let (nsid, prefix) = (OBJECTS_NSID, entry.id.0);
        let count = run.locals.end - run.locals.start;
        let (first, stride) = (run.number, run.stride);
        return vec![SourceData::KvChunks { nsid, prefix, first, count, stride }];
    };
    let start = u64::from(run.locals.start) * u64::from(entry.chunk_bytes);
    let ranges = byte_ranges(&extents[member], start, entry_bytes(entry, run));
    let data = |(offset, bytes)| SourceData::Blocks {
        nsid: BLOCK_NSID,
        slba: offset / u64::from(block_bytes),
        skip: 0, // chunks and units are whole blocks
        bytes: u32::try_from(bytes).expect("at most 256 MiB"),
    };
    ranges.into_iter().map(data).collect()
}

#[cfg(test)]
mod tests {
    use csd_kernels::ElementType;

    use super::*;
    use csd_store::array::DriveIndex;
    use csd_store::catalogue::{Extents, ObjectId, State};

    fn entry(placement: Placement) -> Entry {
        Entry {
            epoch: 1,
            element: ElementType::I32,
            shape: vec![20 << 18],
            chunk_bytes: 1 << 20,
            bytes: (39 << 20) + 400,
            offset: 1,
            members: [4, 2].map(DriveIndex::new).to_vec(),
            placement,
            ..Entry::empty("x", ObjectId([0x81; 12]), State::Sealed)
        }
    }

    fn run(entry: &Entry, locals: std::ops::Range<u32>) -> Run {
        let first = entry.layout().chunk(0, locals.start);
        Run { locals, first, number: first, stride: 2, part: None }
    }

    #[test]
    fn a_range_of_values_is_first_count_and_stride() {
        let entry = entry(Placement::Kv);
        let expected = SourceData::KvChunks {
            nsid: OBJECTS_NSID,
            prefix: [0x81; 12],
            first: 7, // member 0 holds chunks 1, 3, 5, 7, ...
            count: 6,
            stride: 2,
        };
        assert_eq!(sources_of(&entry, 4096, 0, &run(&entry, 3..9)), [expected]);
    }

    #[test]
    fn a_range_of_blocks_follows_the_extents_and_ends_with_the_object() {
        let extents: Vec<Extents> = vec![vec![(2, 1), (9, 2)], vec![(0, 3)]];
        let entry = entry(Placement::Block(extents));
        let block = |offset: u64, bytes| SourceData::Blocks {
            nsid: BLOCK_NSID,
            slba: offset / 4096,
            skip: 0,
            bytes,
        };
        // Chunks 15, 17, ... 39: the eighth of unit 2, then 11 whole ones and 400 bytes of unit 9.
        let expected = [block(23 << 20, 1 << 20), block(72 << 20, (11 << 20) + 400)];
        assert_eq!(sources_of(&entry, 4096, 0, &run(&entry, 7..20)), expected);
    }
}
