//! [`Units`]: the division of a task's objects into executions.
//!
//! Performs no I/O. Invariant: the chunks of a group that a drive works on lie on that drive.

use std::ops::Range;

use csd_store::catalogue::Entry;
use csd_store::layout::Run;

/// Division of a task's objects into executions.
pub(super) enum Units {
    /// One chunk of every object each, with the same parameters.
    Chunks {
        /// Parameters of every execution.
        parameters: Vec<u8>,
    },
    /// Groups of chunks.
    Groups(Vec<Group>),
}

/// Chunks of one object that one execution reads as one stream, with parameters of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Index of the object among those of the task.
    pub input: usize,
    /// Its chunks, in order.
    pub chunks: Vec<Range<u32>>,
    /// Parameters of the execution.
    pub parameters: Vec<u8>,
}

impl Group {
    /// Returns the number of bytes in its chunks.
    #[must_use]
    pub fn bytes(&self, entry: &Entry) -> u64 {
        let layout = entry.layout();
        let chunks = self.chunks.iter().cloned().flatten();
        chunks.map(|chunk| u64::from(layout.chunk_len(chunk))).sum()
    }

    /// Returns the member that has all of its chunks; `None` if they lie on several.
    #[must_use]
    pub fn member(&self, entry: &Entry) -> Option<usize> {
        let layout = entry.layout();
        let mut members = self.chunks.iter().cloned().flatten().map(|chunk| layout.member(chunk));
        let first = members.next()?;
        members.all(|member| member == first).then_some(first)
    }

    /// Returns its chunks as runs of their member, which has all of them.
    pub(super) fn runs(&self, entry: &Entry) -> Vec<Run> {
        let layout = entry.layout();
        let run = |chunks: &Range<u32>| {
            let start = layout.local(chunks.start);
            let locals = start..start + (chunks.end - chunks.start);
            let number = layout.number(chunks.start);
            Run { locals, first: chunks.start, number, stride: 1, part: None }
        };
        self.chunks.iter().map(run).collect()
    }
}

/// Returns groups as the units of their members: those on several are the first member's, for a
/// host that reads them.
pub(super) fn piles(inputs: &[Entry], groups: &[Group]) -> Vec<Vec<Run>> {
    let mut piles = vec![Vec::new(); inputs[0].members.len()];
    for (number, group) in (0u32..).zip(groups) {
        let pile: &mut Vec<Run> = &mut piles[group.member(&inputs[group.input]).unwrap_or(0)];
        let local = u32::try_from(pile.len()).expect("fewer than all groups");
        let (locals, first) = (local..local + 1, number);
        pile.push(Run { locals, first, number, stride: 1, part: None });
    }
    piles
}
