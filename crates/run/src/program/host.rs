//! The host's part of a program's run: the same chunks over the same wire, the same program in the
//! same sandbox.
//!
//! The program runs in the compute threads of the cores that received the chunks, so `n` cores run
//! `n` programs at once. Invariant: at most [`CHUNKS_AHEAD`] chunks of a core are in memory.

use std::rc::Rc;

use csd_reactor::Buffer;
use csd_store::object::read_chunk;

use super::context::StepContext;
use super::lines::Cut;
use super::{Function, Records};
use crate::error::Error;
use crate::queue::Taken;
use crate::work::MemberError;

/// Chunks that a core works on at once.
pub(super) const CHUNKS_AHEAD: usize = 8;

/// Reads a chunk of every object, runs the program, and adds the answer to those to fold. Returns
/// the number of elements.
pub(super) async fn chunk(context: &StepContext, taken: &Taken) -> Result<u64, MemberError> {
    let (task, number, member) = (context.task(), taken.run.first, taken.member);
    let _under_way = context.shared.gather.begin(number);
    let ours = |error| (member, error);
    let mut streams = Vec::with_capacity(task.inputs.len());
    match task.group(number) {
        Some(group) => {
            let mut stream = Vec::new();
            for chunk in group.chunks.iter().cloned().flatten() {
                let member = task.inputs[group.input].layout().member(chunk);
                stream.push(read(context, (group.input, member), chunk).await?);
            }
            streams.push(stream);
        }
        None => {
            for input in 0..task.inputs.len() {
                streams.push(vec![read(context, (input, member), number).await?]);
            }
        }
    }
    let cut = match task.records {
        Records::Elements => Cut::default(),
        Records::Lines => {
            context.heads.cut_of((task, &context.common), number, &streams[0][0]).await?
        }
    };
    let answer = match context.sees_nothing(number, &cut) {
        true => None,
        false => {
            streams[0][0].advance(cut.skip as usize);
            if !cut.handed.is_empty() {
                streams[0].push(Buffer::from_slice(&cut.handed));
            }
            let _turn = context.compute_turn.acquire(1).await;
            let (run, parameters) = (Function::Run, task.parameters(number));
            let ran = task.sandbox.run(run, streams, parameters, task.limits).await;
            let failed = |why| {
                let why = format!("{} {number} of {:?}: {why}", task.unit_name(), task.names());
                (member, Error::Program { why })
            };
            Some(ran.map_err(failed)?)
        }
    };
    context.done(number, answer, &cut).await.map_err(ours)
}

/// Reads a chunk of an input from a member's drive, or computes it.
async fn read(
    context: &StepContext,
    (input, member): (usize, usize),
    chunk: u32,
) -> Result<Buffer, MemberError> {
    let entry = &context.task().inputs[input];
    let read = async |drive: &Rc<_>| read_chunk(drive, entry, chunk).await;
    let read = context.common.links[member].run(read).await;
    let read = context.common.or_computed((input, member), chunk, read).await;
    read.map_err(|error| (member, error))
}
