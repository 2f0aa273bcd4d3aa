//! Layouts of parts: an object consists of parts of whole ranges of values or whole rows, and each
//! part lies on one member, in chunks of its own.
//!
//! Invariants: chunks are in the object's order through all parts; every chunk of a part but its
//! last is full; an empty part has no chunk. The numbers in chunks' keys may have gaps, because
//! only an upper bound of a program's output is known beforehand.

use std::sync::Arc;

use super::{Error, Run};

/// Kind of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ranges of values of sorted elements: a part's mark is the order key of the least value that
    /// may be in it. Equal elements lie in one part.
    Range,
    /// Whole rows of a matrix: a part's mark is its first row.
    Rows,
    /// Whole rows of a graph's incoming edges: a part's mark is its first row. The last part holds
    /// the nodes' numbers of outgoing edges instead; its mark is the number of nodes.
    Graph,
    /// Groups of a table's rows, as its file has them: a part's mark is its first row. The first
    /// part begins with the file; the last one has what follows the rows, such as a footer, and its
    /// mark is the number of rows.
    Table,
}

/// A part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Member that it lies on.
    pub member: u16,
    /// Number in the key of the first chunk; the others are consecutive.
    pub number: u32,
    /// Size, bytes.
    pub bytes: u64,
    /// Mark of the beginning: see [`Kind`].
    pub mark: u64,
}

/// All parts of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    kind: Kind,
    chunk_bytes: u32,
    parts: Arc<[Part]>,
    /// First chunk of every part, and the total number of chunks.
    firsts: Arc<[u32]>,
    /// Index of the first chunk of every part among the chunks of its member.
    locals: Arc<[u32]>,
    /// Number of chunks of every member.
    counts: Arc<[u32]>,
}

impl Parts {
    /// Returns the layout of these parts over `members` drives; `None` when a part names another
    /// member.
    ///
    /// # Errors
    /// [`Error::TooManyChunks`] when their number exceeds 32 bits.
    pub fn new(
        kind: Kind,
        chunk_bytes: u32,
        members: u16,
        parts: Vec<Part>,
    ) -> Result<Option<Self>, Error> {
        let bytes = parts.iter().map(|part| u128::from(part.bytes)).sum::<u128>();
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let too_many = Error::TooManyChunks { bytes };
        let (mut firsts, mut locals) = (vec![0u32], Vec::with_capacity(parts.len()));
        let (mut counts, mut first) = (vec![0u32; usize::from(members)], 0u32);
        for part in &parts {
            let chunks = part.bytes.div_ceil(chunk_bytes.into());
            let chunks = u32::try_from(chunks).map_err(|_| too_many.clone())?;
            first = first.checked_add(chunks).ok_or_else(|| too_many.clone())?;
            part.number.checked_add(chunks).ok_or_else(|| too_many.clone())?;
            let Some(count) = counts.get_mut(usize::from(part.member)) else { return Ok(None) };
            firsts.push(first);
            locals.push(*count);
            *count += chunks;
        }
        let (firsts, locals, counts) = (firsts.into(), locals.into(), counts.into());
        let parts = parts.into();
        Ok(Some(Self { kind, chunk_bytes, parts, firsts, locals, counts }))
    }

    /// Returns the kind of the parts.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the parts, in the object's order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the chunks of a part.
    #[must_use]
    pub fn part_chunks(&self, part: usize) -> std::ops::Range<u32> {
        self.firsts[part]..self.firsts[part + 1]
    }

    /// Returns the parts that hold values or rows: all but a graph's last.
    #[must_use]
    pub fn content(&self) -> &[Part] {
        let content =
            self.parts.len() - usize::from(self.kind == Kind::Graph).min(self.parts.len());
        &self.parts[..content]
    }

    /// Returns the size of the object, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    pub(super) fn chunks(&self) -> u32 {
        self.firsts[self.parts.len()]
    }

    fn part_of(&self, chunk: u32) -> usize {
        assert!(chunk < self.chunks(), "chunk {chunk} of {}", self.chunks());
        self.firsts.partition_point(|first| *first <= chunk) - 1
    }

    pub(super) fn member(&self, chunk: u32) -> usize {
        self.parts[self.part_of(chunk)].member.into()
    }

    pub(super) fn chunk_len(&self, chunk: u32) -> u32 {
        let part = self.part_of(chunk);
        let before = u64::from(chunk - self.firsts[part]) * u64::from(self.chunk_bytes);
        let rest = self.parts[part].bytes - before;
        u32::try_from(rest.min(self.chunk_bytes.into())).expect("at most a chunk")
    }

    /// Returns the object's first byte that a chunk holds.
    pub(super) fn begin(&self, chunk: u32) -> u64 {
        let part = self.part_of(chunk);
        let before: u64 = self.parts[..part].iter().map(|part| part.bytes).sum();
        before + u64::from(chunk - self.firsts[part]) * u64::from(self.chunk_bytes)
    }

    pub(super) fn chunk_at(&self, byte: u64) -> (u32, u64) {
        let mut begin = 0;
        for (part, first) in self.parts.iter().zip(self.firsts.iter()) {
            if byte - begin < part.bytes {
                let number = (byte - begin) / u64::from(self.chunk_bytes);
                let chunk = first + u32::try_from(number).expect("the number of chunks is checked");
                return (chunk, begin + number * u64::from(self.chunk_bytes));
            }
            begin += part.bytes;
        }
        panic!("byte {byte} of {begin}")
    }

    pub(super) fn count(&self, member: usize) -> u32 {
        self.counts[member]
    }

    pub(super) fn number(&self, chunk: u32) -> u32 {
        let part = self.part_of(chunk);
        self.parts[part].number + (chunk - self.firsts[part])
    }

    pub(super) fn local(&self, chunk: u32) -> u32 {
        let part = self.part_of(chunk);
        self.locals[part] + (chunk - self.firsts[part])
    }

    pub(super) fn chunk(&self, member: usize, local: u32) -> u32 {
        let runs = self.runs(member);
        let run = runs.iter().find(|run| run.locals.contains(&local));
        let run = run.expect("a chunk of the member");
        self.firsts[run.part.expect("a run of a part")] + (local - run.locals.start)
    }

    pub(super) fn runs(&self, member: usize) -> Vec<Run> {
        let mine = |(_, part): &(usize, &Part)| usize::from(part.member) == member;
        let run = |(part, it): (usize, &Part)| {
            let chunks = self.part_chunks(part);
            let start = self.locals[part];
            let locals = start..start + (chunks.end - chunks.start);
            Run { locals, first: chunks.start, number: it.number, stride: 1, part: Some(part) }
        };
        let runs = self.parts.iter().enumerate().filter(mine).map(run);
        runs.filter(|run| !run.locals.is_empty()).collect()
    }

    pub(super) fn range_bytes(&self, member: usize, local: u32, count: u32) -> u64 {
        if count == 0 {
            return 0;
        }
        let last = self.chunk(member, local) + (count - 1);
        u64::from(count - 1) * u64::from(self.chunk_bytes) + u64::from(self.chunk_len(last))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::*;

    fn parts(parts: &[(u16, u64)]) -> Parts {
        let part = |&(member, bytes): &(u16, u64)| Part { member, number: 9, bytes, mark: 0 };
        let parts = parts.iter().map(part).collect();
        Parts::new(Kind::Range, 4096, 3, parts).unwrap().unwrap()
    }

    #[test]
    fn every_chunk_is_found_from_its_member_and_lengths_sum_to_the_object() {
        let cut = [(0, 5000), (2, 0), (1, 4096), (0, 1), (2, 20_000), (0, 0), (0, 8192)];
        let layout = Layout::Parts(parts(&cut));
        assert_eq!(layout.chunks(), 2 + 1 + 1 + 5 + 2);
        let mut seen = vec![0; layout.chunks() as usize];
        let mut bytes = 0;
        for member in 0..3 {
            let runs = layout.runs(member);
            let locals: u32 = runs.iter().map(|run| run.locals.end - run.locals.start).sum();
            assert_eq!(locals, layout.count(member));
            for run in runs {
                let count = run.locals.end - run.locals.start;
                bytes += layout.range_bytes(member, run.locals.start, count);
                for local in run.locals.clone() {
                    let chunk = layout.chunk(member, local);
                    assert_eq!(chunk, run.first + (local - run.locals.start));
                    assert_eq!((layout.member(chunk), layout.local(chunk)), (member, local));
                    seen[chunk as usize] += 1;
                }
            }
        }
        assert!(seen.iter().all(|times| *times == 1), "{seen:?}");
        let mut end = 0;
        for chunk in 0..layout.chunks() {
            let of_chunk = layout.bytes_of(chunk);
            assert_eq!(of_chunk.start, end);
            end = of_chunk.end;
        }
        let lengths: u64 = (0..layout.chunks()).map(|c| u64::from(layout.chunk_len(c))).sum();
        assert_eq!((lengths, bytes), (37_289, 37_289));
    }

    #[test]
    fn wrong_members_and_too_many_chunks_are_refused() {
        let part = Part { member: 3, number: 0, bytes: 1, mark: 0 };
        assert_eq!(Parts::new(Kind::Rows, 4096, 3, vec![part]), Ok(None));
        let huge = Part { member: 0, number: 0, bytes: u64::MAX, mark: 0 };
        assert!(Parts::new(Kind::Rows, 4096, 3, vec![huge, huge]).is_err());
        assert_eq!(parts(&[]).chunks(), 0);
    }

    #[test]
    fn the_last_part_of_a_graph_is_no_row() {
        let part = Part { member: 0, number: 0, bytes: 4, mark: 0 };
        let graph = Parts::new(Kind::Graph, 4096, 1, vec![part; 2]).unwrap().unwrap();
        assert_eq!(graph.content().len(), 1);
        let rows = Parts::new(Kind::Rows, 4096, 1, vec![part; 2]).unwrap().unwrap();
        assert_eq!(rows.content().len(), 2);
    }
}
