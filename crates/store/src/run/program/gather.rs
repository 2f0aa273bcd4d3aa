//! [`Gather`]: the answers of chunks, folded in the order of the chunks as they come.
//!
//! Answers come in any order. Those of a program that folds are folded from the first on: two at a
//! time, the earlier one first. Those of one that does not are put one behind the other, and their
//! results are added. Invariants: the order does not depend on who computed what when; what is held
//! is at most [`HELD_BYTES_MAX`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_reactor::Buffer;

use super::task::Limits;
use super::{Answer, Function, Task};
use crate::object::Error;

/// Most bytes of answers in memory: of all that wait for an earlier one, and of those folded.
pub const HELD_BYTES_MAX: usize = 1 << 30;

/// Most bytes that a fold may write: as much as any execution.
const FOLD_BYTES_MAX: u32 = 256 << 20;

/// Answers on their way to one.
pub(super) struct Gather {
    task: Arc<Task>,
    held_bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first chunk whose answer is not folded yet.
    next: u32,
    /// Answers of chunks from there on; `None` of one in which no record begins.
    held: BTreeMap<u32, Option<Answer>>,
    /// All before it, folded.
    folded: Option<Answer>,
    /// Somebody folds.
    folding: bool,
    bytes: usize,
}

impl Gather {
    pub(super) fn new(task: &Arc<Task>) -> Self {
        let state = Mutex::default();
        Self { task: Arc::clone(task), held_bytes_max: HELD_BYTES_MAX, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answer of a chunk, and folds what can be folded now.
    ///
    /// # Errors
    /// When the program's own fold fails, or too much is held.
    pub(super) async fn add(&self, chunk: u32, answer: Option<Answer>) -> Result<(), Error> {
        {
            let mut state = self.state();
            state.bytes += answer.as_ref().map_or(0, |answer| answer.output.len());
            state.held.insert(chunk, answer);
            if state.bytes > self.held_bytes_max {
                let most = self.held_bytes_max >> 20;
                let why = format!("the program's answers come to more than {most} MiB");
                return Err(Error::Program { why });
            }
        }
        while let Some((before, after)) = self.two() {
            let bytes = before.output.len() + after.output.len();
            let folded = self.fold(&before, &after).await?;
            let mut state = self.state();
            state.bytes = state.bytes - bytes + folded.output.len();
            (state.folded, state.folding) = (Some(folded), false);
        }
        Ok(())
    }

    /// The next two answers to fold, unless somebody does so or the next has not come.
    fn two(&self) -> Option<(Answer, Answer)> {
        let mut state = self.state();
        while !state.folding {
            let next = state.next;
            let answer = state.held.remove(&next)?;
            state.next += 1;
            match (state.folded.take(), answer) {
                (None, answer) => state.folded = answer,
                (folded, None) => state.folded = folded,
                (Some(folded), Some(answer)) if self.task.sandbox.folds() => {
                    state.folding = true;
                    return Some((folded, answer));
                }
                (Some(mut folded), Some(mut answer)) => {
                    folded.result = folded.result.wrapping_add(answer.result);
                    folded.output.append(&mut answer.output);
                    state.folded = Some(folded);
                }
            }
        }
        None
    }

    async fn fold(&self, before: &Answer, after: &Answer) -> Result<Answer, Error> {
        let stream = |answer: &Answer| {
            let result = answer.result.to_le_bytes();
            vec![Buffer::from_slice(&result), Buffer::from_slice(&answer.output)]
        };
        let task = &self.task;
        let limits = Limits { room_bytes: FOLD_BYTES_MAX, ..task.limits };
        let streams = vec![stream(before), stream(after)];
        let folded = task.sandbox.run(Function::Fold, streams, &task.parameters, limits).await;
        folded.map_err(|why| Error::Program { why: format!("fold: {why}") })
    }

    /// The answer of all chunks; `None` when none of them had a record.
    pub(super) fn take(&self) -> Option<Answer> {
        self.state().folded.take()
    }
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
