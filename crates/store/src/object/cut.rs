//! Cutting a stream of elements into parts, and parts into chunks.
//!
//! Performs no I/O. Invariants: a part begins only where [`Kind`] allows it; unsorted numbers and
//! NaN are rejected in a range layout.

use std::collections::VecDeque;

use csd_kernels::{Numeric, array_merge::range};
use csd_reactor::Buffer;

use super::Error;
use super::arrange::Arrange;
use super::draft::Shape;
use crate::catalogue::Entry;
use crate::layout::{self, Kind, Part};
use crate::source::Source;

/// Intended maximum of chunks in a part: a quarter of the input of an execution, so that two parts
/// fit into one even when the second is three times as dense.
const PART_CHUNKS: u64 = 64;
/// Parts of each size and member. Parts begin with one chunk and grow, so that all drives have a
/// share of short objects and long objects have few parts.
const PARTS_OF_A_SIZE: u64 = 4;

/// Bytes of the stream, and the beginnings of parts in them: byte and mark.
pub(super) struct Read {
    pub(super) bytes: Buffer,
    /// CRC-32C of the bytes if they are one chunk: without parts.
    pub(super) sum: Option<u32>,
    pub(super) cuts: Vec<(usize, u64)>,
}

/// Determines the beginnings of parts.
pub(super) struct Cutter {
    rule: Rule,
    name: String,
    members: u64,
    chunk_bytes: u64,
    /// Number of parts begun.
    parts: u64,
    /// Bytes of the last part so far.
    open: u64,
    /// Bytes of the stream so far.
    at: u64,
}

enum Rule {
    Spread,
    Range { element: Numeric, last: Option<i64>, marks: Option<VecDeque<u64>> },
    Rows { row_bytes: u64 },
    Given { kind: Kind, starts: VecDeque<(u64, u64)> },
}

/// Returns the rule by which parts begin at these bytes, with these marks.
///
/// # Errors
/// In words, if they are not in order from the first byte on: they may come from a stranger's file.
fn given(kind: Kind, starts: &[(u64, u64)]) -> Result<Rule, String> {
    let from_0 = starts.first().is_none_or(|(first, _)| *first == 0);
    if !from_0 || !starts.is_sorted() {
        return Err(
            "its parts are not said to follow one another from its first byte on".to_owned()
        );
    }
    Ok(Rule::Given { kind, starts: starts.iter().copied().collect() })
}

impl Cutter {
    pub(super) fn new(
        arrange: &Arrange,
        align: Option<&Entry>,
        shape: &Shape,
        source: &Source,
    ) -> Result<Self, Error> {
        let name = source.name().to_owned();
        let refuse = |why: String| Error::Input { name: name.clone(), why };
        let sorted = |marks: Option<VecDeque<u64>>| {
            let element = Numeric::try_from(shape.element);
            let element = element.map_err(|error| refuse(error.to_string()))?;
            Ok::<_, Error>(Rule::Range { element, last: None, marks })
        };
        let rule = match (align.map(|to| (to, to.parts.as_ref())), arrange) {
            (Some((to, Some(parts))), _) if parts.kind() == Kind::Range => {
                if parts.parts().is_empty() {
                    let why = format!("{:?} is empty: align it to this one instead", to.name);
                    return Err(refuse(why));
                }
                if to.element != shape.element {
                    let (other, element) = (to.element, shape.element);
                    let why = format!("{:?} is of type {other}, not {element}", to.name);
                    return Err(refuse(why));
                }
                sorted(Some(parts.parts().iter().map(|part| part.mark).collect()))?
            }
            (Some((to, Some(_))), _) => {
                let why = format!("{:?} is cut by rows: nothing can be aligned to it", to.name);
                return Err(refuse(why));
            }
            (Some((_, None)), _) | (None, Arrange::Spread | Arrange::Whole) => Rule::Spread,
            (None, Arrange::Range) => sorted(None)?,
            (None, Arrange::Rows) => match (source.known_shape(), shape.element.bytes() as u64) {
                (Some([_, columns]), bytes) if *columns > 0 => {
                    Rule::Rows { row_bytes: columns * bytes }
                }
                _ => {
                    let why = "rows need an array of two dimensions: store it as .npy";
                    return Err(refuse(why.to_owned()));
                }
            },
            (None, Arrange::Graph { starts }) => given(Kind::Graph, starts).map_err(refuse)?,
            (None, Arrange::Table { starts }) => given(Kind::Table, starts).map_err(refuse)?,
        };
        let (members, chunk_bytes) = (shape.members.len() as u64, shape.chunk_bytes.into());
        Ok(Self { rule, name, members, chunk_bytes, parts: 0, open: 0, at: 0 })
    }

    /// Returns the kind of the parts; `None` when there are none.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self.rule {
            Rule::Spread => None,
            Rule::Range { .. } => Some(Kind::Range),
            Rule::Rows { .. } => Some(Kind::Rows),
            Rule::Given { kind, .. } => Some(kind),
        }
    }

    /// Returns the size at which the current part should end.
    fn goal(&self) -> u64 {
        let chunks = 1 + self.parts.saturating_sub(1) / (PARTS_OF_A_SIZE * self.members.max(1));
        self.chunk_bytes * chunks.min(PART_CHUNKS)
    }

    /// Returns the beginnings of parts in the next bytes.
    pub(super) fn cut(&mut self, bytes: &[u8]) -> Result<Vec<(usize, u64)>, Error> {
        let mut cuts = Vec::new();
        if bytes.is_empty() {
            return Ok(cuts);
        }
        let mut rule = std::mem::replace(&mut self.rule, Rule::Spread);
        let done = match &mut rule {
            Rule::Spread => Ok(()),
            Rule::Range { element, last, marks } => {
                self.ranges(*element, last, marks, bytes, &mut cuts)
            }
            Rule::Rows { row_bytes } => {
                self.rows(*row_bytes, bytes.len() as u64, &mut cuts);
                Ok(())
            }
            Rule::Given { starts, .. } => {
                self.given(starts, bytes.len() as u64, &mut cuts);
                Ok(())
            }
        };
        self.rule = rule;
        self.at += bytes.len() as u64;
        done.map(|()| cuts)
    }

    fn begin(&mut self, cuts: &mut Vec<(usize, u64)>, at: usize, mark: u64) {
        cuts.push((at, mark));
        self.parts += 1;
        self.open = 0;
    }

    fn ranges(
        &mut self,
        element: Numeric,
        last: &mut Option<i64>,
        marks: &mut Option<VecDeque<u64>>,
        bytes: &[u8],
        cuts: &mut Vec<(usize, u64)>,
    ) -> Result<(), Error> {
        let size = element.bytes();
        let first = self.at / size as u64;
        let keys = range::order_keys(element, bytes, *last).map_err(|wrong| {
            let (at, what) = match wrong {
                range::Disorder::Nan { at } => (at, "is NaN, which has no place in an order"),
                range::Disorder::NotSorted { at } => {
                    (at, "is smaller than the one before: sort the numbers first")
                }
            };
            let why = format!("element {} {what}", first + at as u64);
            Error::Input { name: self.name.clone(), why }
        })?;
        let before = last.replace(*keys.last().expect("the bytes are not empty"));
        if let Some(marks) = marks {
            while let Some(&mark) = marks.front() {
                let at = keys.partition_point(|key| *key < mark.cast_signed());
                if at == keys.len() {
                    break;
                }
                marks.pop_front();
                self.begin(cuts, at * size, mark);
            }
            return Ok(());
        }
        if self.parts == 0 {
            self.begin(cuts, 0, i64::MIN.cast_unsigned());
        }
        let mut at = 0;
        loop {
            let wanted = self.goal().saturating_sub(self.open) / size as u64;
            let wanted = usize::try_from(wanted).expect("a part is meant to be small");
            let before = match (at + wanted).checked_sub(1) {
                Some(index) if index >= keys.len() => None,
                Some(index) => Some(keys[index]),
                None => before,
            };
            // Equal elements must lie in one part.
            let next = before.map(|before| keys.partition_point(|key| *key <= before));
            let Some(next) = next.filter(|next| *next < keys.len()) else { break };
            self.begin(cuts, next * size, keys[next].cast_unsigned());
            at = next;
        }
        self.open += ((keys.len() - at) * size) as u64;
        Ok(())
    }

    fn rows(&mut self, row_bytes: u64, bytes: u64, cuts: &mut Vec<(usize, u64)>) {
        let end = self.at + bytes;
        let mut at = self.at;
        if self.parts == 0 {
            self.begin(cuts, 0, 0);
        }
        loop {
            let whole = (self.goal() / row_bytes).max(1) * row_bytes;
            let next = at + (whole - self.open);
            if next >= end {
                break;
            }
            let offset = usize::try_from(next - self.at).expect("within a chunk");
            self.begin(cuts, offset, next / row_bytes);
            at = next;
        }
        self.open += end - at;
    }

    fn given(
        &mut self,
        starts: &mut VecDeque<(u64, u64)>,
        bytes: u64,
        cuts: &mut Vec<(usize, u64)>,
    ) {
        let end = self.at + bytes;
        while let Some(&(start, mark)) = starts.front().filter(|(start, _)| *start < end) {
            starts.pop_front();
            let offset = usize::try_from(start - self.at).expect("within a chunk");
            cuts.push((offset, mark));
            self.parts += 1;
        }
    }

    /// Returns the marks of the empty parts at the end.
    pub(super) fn finish(&mut self) -> Vec<u64> {
        match &mut self.rule {
            Rule::Range { marks: Some(marks), .. } => marks.drain(..).collect(),
            Rule::Given { starts, .. } => starts.drain(..).map(|(_, mark)| mark).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the places where parts of a graph's rows may begin. Between them are as many rows as fit
/// into the intended size of a part, or one longer row; the numbers of outgoing edges come last.
#[must_use]
pub fn graph_starts(rows: &[u8], members: usize, chunk_bytes: u32) -> Vec<(u64, u64)> {
    let words = rows.as_chunks::<4>().0;
    let (mut starts, mut at, mut row) = (Vec::new(), 0usize, 0u64);
    let mut open = u64::MAX;
    while at < words.len() {
        let bytes = 4 * (1 + u64::from(u32::from_le_bytes(words[at])));
        let begun = (starts.len() as u64).saturating_sub(1);
        let chunks = 1 + begun / (PARTS_OF_A_SIZE * members.max(1) as u64);
        let goal = u64::from(chunk_bytes) * chunks.min(PART_CHUNKS);
        if open.saturating_add(bytes) > goal {
            starts.push((4 * at as u64, row));
            open = 0;
        }
        open += bytes;
        at += usize::try_from(bytes / 4).expect("a row is in memory");
        row += 1;
    }
    starts.push((rows.len() as u64, row));
    starts
}

/// Chunks with their members and numbers.
pub(super) type Chunks = Vec<(usize, u32, Buffer)>;

/// Layout of the packed chunks.
pub(super) struct Packed {
    pub(super) bytes: u64,
    /// CRC-32C of every chunk.
    pub(super) sums: Vec<u32>,
    pub(super) parts: Vec<Part>,
}

/// Makes chunks of the bytes read. In the spread layout each read is one chunk; parts have chunks
/// of their own.
pub(super) struct Packer {
    members: u16,
    offset: u16,
    chunk_bytes: usize,
    has_parts: bool,
    next: u32,
    open: Option<(Buffer, usize)>,
    packed: Packed,
}

impl Packer {
    pub(super) fn new(entry: &Entry, has_parts: bool) -> Self {
        Self {
            members: entry.member_count(),
            offset: entry.offset,
            chunk_bytes: entry.chunk_bytes as usize,
            has_parts,
            next: 0,
            open: None,
            packed: Packed { bytes: 0, sums: Vec::new(), parts: Vec::new() },
        }
    }

    pub(super) fn pack(&mut self, read: Read) -> Result<Chunks, Error> {
        let mut chunks = Vec::new();
        self.packed.bytes += read.bytes.len() as u64;
        if !self.has_parts {
            let member = layout::member(self.next, self.offset, self.members);
            let sum = read.sum.unwrap_or_else(|| crc32c::crc32c(&read.bytes));
            chunks.push((member, self.number(sum)?, read.bytes));
            return Ok(chunks);
        }
        let mut at = 0;
        for (cut, mark) in read.cuts {
            self.fill(&read.bytes[at..cut], &mut chunks)?;
            self.close(&mut chunks)?;
            self.begin(mark);
            at = cut;
        }
        self.fill(&read.bytes[at..], &mut chunks)?;
        Ok(chunks)
    }

    /// Returns the open chunk, and adds the empty parts with these marks that follow it.
    pub(super) fn finish(mut self, marks: Vec<u64>) -> Result<(Chunks, Packed), Error> {
        let mut chunks = Vec::new();
        self.close(&mut chunks)?;
        marks.into_iter().for_each(|mark| self.begin(mark));
        Ok((chunks, self.packed))
    }

    /// Begins a part; members take parts in turn.
    fn begin(&mut self, mark: u64) {
        let part = self.packed.parts.len() % usize::from(self.members.max(1));
        let member = u16::try_from(part).expect("fewer than 2^16 members");
        self.packed.parts.push(Part { member, number: self.next, bytes: 0, mark });
    }

    fn fill(&mut self, mut bytes: &[u8], chunks: &mut Chunks) -> Result<(), Error> {
        while !bytes.is_empty() {
            let chunk_bytes = self.chunk_bytes;
            let open = || (Buffer::with_room(0, chunk_bytes, 0), 0);
            let (buffer, filled) = self.open.get_or_insert_with(open);
            let count = bytes.len().min(chunk_bytes - *filled);
            buffer[*filled..*filled + count].copy_from_slice(&bytes[..count]);
            *filled += count;
            let full = *filled == chunk_bytes;
            let part = self.packed.parts.last_mut().expect("a part begins with the first byte");
            part.bytes += count as u64;
            bytes = &bytes[count..];
            if full {
                self.close(chunks)?;
            }
        }
        Ok(())
    }

    fn close(&mut self, chunks: &mut Chunks) -> Result<(), Error> {
        if let Some((mut buffer, filled)) = self.open.take() {
            buffer.truncate(filled);
            let part = self.packed.parts.last().expect("a chunk is of a part");
            let member = part.member.into();
            let sum = crc32c::crc32c(&buffer);
            chunks.push((member, self.number(sum)?, buffer));
        }
        Ok(())
    }

    /// Returns the number of the next chunk, and keeps its sum.
    fn number(&mut self, sum: u32) -> Result<u32, Error> {
        self.packed.sums.push(sum);
        let number = self.next;
        let bytes = self.packed.bytes;
        self.next = number.checked_add(1).ok_or(layout::Error::TooManyChunks { bytes })?;
        Ok(number)
    }
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
