//! The host's part of a program's run: the same chunks over the same wire, the same program in the
//! same sandbox.
//!
//! The program runs in the compute lanes of the cores that received the chunks, so `n` cores run
//! `n` programs at once. Invariant: at most [`CHUNKS_AHEAD`] chunks of a core are in memory.

use std::rc::Rc;

use csd_reactor::{Buffer, busy};

use super::core::StepContext;
use super::lines::{Cut, Unknown};
use super::team::Team;
use super::{Function, Mode, Records};
use crate::object::{Error, read_chunk};
use crate::run::Share;
use crate::run::link::is_lost;
use crate::run::queue::Taken;

/// Chunks that a core works on at once.
const CHUNKS_AHEAD: usize = 8;

/// Processes chunks until none is left.
pub(super) async fn work(context: &Rc<StepContext>) -> Result<(), Error> {
    let (before, mut elements, mut failed) = (busy(), 0, None);
    // Chunks that the host takes early are lost to drives that start slowly.
    let ahead = if context.mode() == Mode::Split { CHUNKS_AHEAD / 2 } else { CHUNKS_AHEAD };
    let mut pending = Team::default();
    loop {
        while failed.is_none() && pending.len() < ahead {
            let Some(taken) = context.queue().take_for_host() else { break };
            let context = Rc::clone(context);
            pending.add(async move {
                match chunk(&context, &taken).await {
                    Ok(()) => Ok(taken),
                    Err(error) => Err((taken, error)),
                }
            });
        }
        let Some(done) = pending.next().await else { break };
        match done {
            Ok(taken) => elements += context.elements(taken.run.first),
            Err((taken, (of, error))) if is_lost(&error) => {
                context.lose(of, &error, Some(taken.run));
            }
            Err((_, (_, error))) => {
                context.queue().stop();
                failed = failed.or(Some(error));
            }
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let spent = busy().since(&before);
    let busy_s = crate::run::seconds(spent.busy_ns() + spent.compute_ns);
    let who = format!("host core {}", csd_reactor::core_id());
    context.shared.add_share(Share { who, elements, busy_s }, true);
    Ok(())
}

/// Reads a chunk of every object, runs the program, and adds the answer to those to fold.
async fn chunk(context: &Rc<StepContext>, taken: &Taken) -> Result<(), Unknown> {
    let (task, number, member) = (context.task(), taken.run.first, taken.member);
    let ours = |error| (member, error);
    let mut streams = Vec::with_capacity(task.inputs.len());
    for entry in &task.inputs {
        let read = async |drive: &Rc<_>| read_chunk(drive, entry, number).await;
        streams.push(vec![context.links[member].run(read).await.map_err(ours)?]);
    }
    let cut = match task.records {
        Records::Elements => Cut::default(),
        Records::Lines => {
            context.heads.cut_of((task, &context.links), number, &streams[0][0]).await?
        }
    };
    let answer = match cut.is_empty(task.layout.chunk_len(number)) {
        true => None,
        false => {
            streams[0][0].advance(cut.skip as usize);
            if !cut.handed.is_empty() {
                streams[0].push(Buffer::from_slice(&cut.handed));
            }
            let _turn = context.lane.acquire(1).await;
            let (run, parameters) = (Function::Run, &task.parameters);
            let ran = task.sandbox.run(run, streams, parameters, task.limits).await;
            let failed = |why| {
                let why = format!("chunk {number} of {}: {why}", task.names());
                (member, Error::Program { why })
            };
            Some(ran.map_err(failed)?)
        }
    };
    context.done(number, answer, cut.handed.len()).await.map_err(ours)
}
