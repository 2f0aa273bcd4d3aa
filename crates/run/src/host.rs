//! The host's part of a run: the same chunks over the same wire, the same program on this core.
//!
//! The program runs on the core that received the chunks, not on its compute thread: `n` cores of a
//! host are `n` threads, which receive and compute. Invariant: if a unit is a part, only its chunks
//! and the program's output are in memory.

use std::collections::VecDeque;
use std::rc::Rc;

use csd_kernels::kernel::{Answer, Position};
use csd_kernels::program::{Execution, Failure, Inputs};
use csd_reactor::{Buffer, Class, JoinHandle, spawn};
use csd_store::catalogue::Entry;
use csd_store::layout::Run;
use csd_store::object::read_chunk;

use crate::context::StepContext;
use crate::drives;
use crate::link::Link;
use crate::queue::Taken;
use crate::tally;
use crate::target::Destination;
use crate::{Error, Mode};

/// Chunks that a core works on at once.
const CHUNKS_AHEAD: usize = 8;
/// Parts that a core works on at once.
const PARTS_AHEAD: usize = 2;

/// Returns the number of units that a core works on at once.
pub(crate) fn ahead(context: &StepContext) -> usize {
    match (context.job().by_parts(), context.common.mode) {
        (true, Mode::Split) => 1,
        (true, _) => PARTS_AHEAD,
        // Units that the host takes early are lost to drives that start slowly.
        (false, Mode::Split) => CHUNKS_AHEAD / 2,
        (false, _) => CHUNKS_AHEAD,
    }
}

/// Reads a unit, computes, and stores the output on the drive that the unit came from. Returns the
/// number of its elements.
pub(crate) async fn unit(context: &Rc<StepContext>, taken: &Taken) -> Result<u64, Error> {
    let job = context.job();
    let mut inputs = Vec::with_capacity(job.inputs.len());
    for (input, entry) in job.inputs.iter().enumerate() {
        let run = match taken.run.part.filter(|_| job.by_parts()) {
            None => Some(taken.run.clone()),
            Some(part) => drives::part_run(entry, part),
        };
        inputs.push(read_all(context, (input, entry), taken.member, run).await?);
    }
    let position = tally::position(job, taken);
    let computed = compute(context, &position, inputs).map_err(|failure| {
        Error::corrupt(context.common.links[taken.member].name(), job.names(), failure.reason)
    });
    let (result, written) = computed?;
    let bytes = match &context.run.target {
        Destination::Object { entry, .. } => {
            store_all(context, entry, taken, written).await?;
            Vec::new()
        }
        _ => written.iter().map(|chunk| &chunk[..]).collect::<Vec<_>>().concat(),
    };
    Ok(context.done(taken, &position, Answer { result, bytes }))
}

/// Runs the program over the chunks of each input. Returns its result and the chunks of its output.
fn compute(
    context: &StepContext,
    position: &Position,
    mut inputs: Vec<Vec<Buffer>>,
) -> Result<(u64, Vec<Buffer>), Failure> {
    let (job, wanted) = (context.job(), context.run.target.wanted());
    let reused = context.idle.borrow_mut().pop();
    if reused.is_none() && !context.vector.is_empty() {
        inputs.push(vec![Buffer::from_slice(&context.vector)]);
    }
    let program = match reused {
        Some(program) => program,
        None => job.kernel.start(&job.parameters_at(position), wanted)?,
    };
    let mut execution = Execution::new(program, Inputs::complete(inputs), wanted.output());
    let result = execution.finish()?;
    let (mut program, written) = execution.into_parts();
    if program.next_part() {
        context.idle.borrow_mut().push(program);
    }
    Ok((result, written))
}

/// Reads the chunks of a run, several at once.
async fn read_all(
    context: &Rc<StepContext>,
    (input, entry): (usize, &Entry),
    member: usize,
    run: Option<Run>,
) -> Result<Vec<Buffer>, Error> {
    let Some(run) = run else { return Ok(Vec::new()) };
    let mut chunks = Vec::new();
    let mut pending: VecDeque<JoinHandle<Result<Buffer, Error>>> = VecDeque::new();
    let mut numbers = (0..run.locals.end - run.locals.start).map(|i| run.first + i * run.stride);
    let entry = Rc::new(entry.clone());
    loop {
        while pending.len() < CHUNKS_AHEAD {
            let Some(chunk) = numbers.next() else { break };
            let (context, entry) = (Rc::clone(context), Rc::clone(&entry));
            pending.push_back(spawn(Class::Foreground, async move {
                let read = async |drive: &Rc<_>| read_chunk(drive, &entry, chunk).await;
                let read = context.common.links[member].run(read).await;
                context.common.or_computed((input, member), chunk, read).await
            }));
        }
        let Some(chunk) = pending.pop_front() else { return Ok(chunks) };
        chunks.push(chunk.await?);
    }
}

/// Returns the link to the drive of a chunk of the output.
fn link<'a>(context: &'a StepContext, taken: &Taken, number: u32) -> &'a Link {
    let links = &context.common.links;
    match context.run.target.drive(taken, number) {
        None => &links[taken.member],
        Some(drive) => {
            let found = links.iter().find(|link| link.index() == drive);
            found.expect("the output lies on drives of the inputs")
        }
    }
}

/// Stores the chunks of a unit's output.
async fn store_all(
    context: &Rc<StepContext>,
    entry: &Entry,
    taken: &Taken,
    chunks: Vec<Buffer>,
) -> Result<(), Error> {
    let (mut number, stride) = context.run.target.numbers(taken);
    for chunk in &chunks {
        let key = csd_nvme::vendor::execute::chunk_key(&entry.id.0, number);
        let store = async |drive: &Rc<csd_store::array::Drive>| {
            let stored = drive.objects.store(&key, vec![Buffer::from_slice(chunk)], 0).await;
            stored.map_err(|error| Error::command(drive, error))
        };
        link(context, taken, number).run(store).await?;
        number += stride;
    }
    Ok(())
}
