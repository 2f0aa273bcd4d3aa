//! [`Gather`]: folds the answers of chunks in the order of the chunks.
//!
//! Answers arrive in any order. If the program folds, they are folded from the first on, two at a
//! time, the earlier one first. If not, outputs are concatenated and results added. Invariants: the
//! order does not depend on which side computed an answer, or when; at most [`HELD_BYTES_MAX`]
//! bytes are held.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_reactor::Buffer;

use super::task::Limits;
use super::{Answer, Function, Task};
use crate::error::Error;

/// Most bytes of answers in memory, both waiting and folded.
pub const HELD_BYTES_MAX: usize = 1 << 30;

/// Most bytes of output of a fold: as much as of any execution.
const FOLD_BYTES_MAX: u32 = 256 << 20;

/// Answers being combined into one.
pub(super) struct Gather {
    task: Arc<Task>,
    held_bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first chunk whose answer is not folded yet.
    next: u32,
    /// Answers of chunks from `next` on; `None` for a chunk in which no record begins.
    held: BTreeMap<u32, Option<Answer>>,
    /// Fold of all answers before `next`.
    folded: Option<Answer>,
    /// True while a task folds.
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

    /// Adds the answer of a chunk, and folds as far as possible.
    ///
    /// # Errors
    /// When the program's own fold fails, or the answers exceed [`HELD_BYTES_MAX`].
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

    /// Returns the next two answers to fold, unless a task already folds or the next answer is
    /// missing.
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

    /// Returns the answer of all chunks; `None` when none of them had a record.
    pub(super) fn take(&self) -> Option<Answer> {
        self.state().folded.take()
    }
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
