//! [`Gather`]: folds the answers of chunks in the order of the chunks.
//!
//! Answers arrive in any order. If the program folds, they are folded from the first on, two at a
//! time, the earlier one first. If not, outputs are concatenated and results added. With a
//! consumer, answers go to it, one at a time and in order. Invariants: the order does not depend on
//! which side computed an answer, or when; at most [`HELD_BYTES_MAX`] bytes are held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csd_reactor::{Buffer, Class, compute_fn, sleep};

use super::task::Limits;
use super::{Answer, Consumer, Function, Task};
use crate::error::Error;

/// Most bytes of answers in memory, both waiting and folded.
pub const HELD_BYTES_MAX: usize = 1 << 30;

/// Most bytes of answers that wait for a consumer which is busy, or for an earlier answer.
const AHEAD_BYTES_MAX: usize = 64 << 20;
/// Time between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(1);

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
    /// Chunks of which an answer is being computed.
    under_way: BTreeSet<u32>,
    /// Fold of all answers before `next`.
    folded: Option<Answer>,
    /// True while a task folds, or hands an answer to the consumer.
    folding: bool,
    /// True once the consumer needs no more.
    enough: bool,
    bytes: usize,
}

/// A chunk of which an answer is being computed, until this is dropped.
pub(super) struct UnderWay<'a> {
    gather: &'a Gather,
    chunk: u32,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.gather.state().under_way.remove(&self.chunk);
    }
}

/// The next thing to do.
enum Next {
    /// Fold these two answers.
    Fold(Answer, Answer),
    /// Hand this answer to the consumer.
    Consume(Arc<dyn Consumer>, Answer),
}

impl Gather {
    pub(super) fn new(task: &Arc<Task>) -> Self {
        let state = Mutex::default();
        Self { task: Arc::clone(task), held_bytes_max: HELD_BYTES_MAX, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that somebody computes the answer of a chunk.
    pub(super) fn begin(&self, chunk: u32) -> UnderWay<'_> {
        self.state().under_way.insert(chunk);
        UnderWay { gather: self, chunk }
    }

    /// Adds the answer of a chunk, and folds as far as possible. With a consumer it returns once
    /// others may be computed: see [`AHEAD_BYTES_MAX`].
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
        while let Some(next) = self.next() {
            let (bytes, folded) = match next {
                Next::Fold(before, after) => {
                    let bytes = before.output.len() + after.output.len();
                    (bytes, Some(self.fold(&before, &after).await?))
                }
                Next::Consume(consumer, answer) => {
                    let bytes = answer.output.len();
                    // It may block.
                    let taken = compute_fn(Class::Foreground, 0, move || consumer.take(answer));
                    let taken = taken.await.map_err(|_| csd_store::Error::ComputeThread)?;
                    self.state().enough |= taken.is_break();
                    (bytes, None)
                }
            };
            let mut state = self.state();
            state.bytes = state.bytes - bytes + folded.as_ref().map_or(0, |one| one.output.len());
            (state.folded, state.folding) = (folded, false);
        }
        while self.is_ahead() {
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Returns the next thing to do, unless a task already does it or the next answer is missing.
    fn next(&self) -> Option<Next> {
        let mut state = self.state();
        while !state.folding && !state.enough {
            let next = state.next;
            let answer = state.held.remove(&next)?;
            state.next += 1;
            if let Some(consumer) = &self.task.consumer {
                let Some(answer) = answer else { continue };
                state.folding = true;
                return Some(Next::Consume(Arc::clone(consumer), answer));
            }
            match (state.folded.take(), answer) {
                (None, answer) => state.folded = answer,
                (folded, None) => state.folded = folded,
                (Some(folded), Some(answer)) if self.task.sandbox.folds() => {
                    state.folding = true;
                    return Some(Next::Fold(folded, answer));
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

    /// Returns true if the run should wait before it computes more: for the consumer, or for the
    /// next answer. It waits for no answer that is not being computed.
    fn is_ahead(&self) -> bool {
        let state = self.state();
        let is_awaited = state.folding || state.under_way.contains(&state.next);
        let is_ahead = self.task.consumer.is_some() && state.bytes > AHEAD_BYTES_MAX;
        is_ahead && is_awaited && !state.enough
    }

    /// Returns true once the consumer needs no more answers.
    pub(super) fn is_enough(&self) -> bool {
        self.state().enough
    }

    async fn fold(&self, before: &Answer, after: &Answer) -> Result<Answer, Error> {
        let stream = |answer: &Answer| {
            let result = answer.result.to_le_bytes();
            vec![Buffer::from_slice(&result), Buffer::from_slice(&answer.output)]
        };
        let task = &self.task;
        let limits = Limits { room_bytes: FOLD_BYTES_MAX, ..task.limits };
        let streams = vec![stream(before), stream(after)];
        let folded = task.sandbox.run(Function::Fold, streams, task.parameters(0), limits).await;
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
