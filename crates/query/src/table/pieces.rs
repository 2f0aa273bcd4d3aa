//! [`Reading`]: the row groups of a table that a scan reads, and the bytes of each.

use std::ops::Range;

use csd_nvme::vendor::execute::{SOURCE_BYTES_MAX, SOURCES_MAX};
use csd_run::program::Group;
use csd_store::catalogue::Entry;
use prost::Message;

use super::{File, Table, footer};
use crate::part::{self, Part, PartKind, RowGroup};
use crate::refusal::Refusal;

/// The row groups of a table that a scan reads.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The row groups, in the table's order.
    pub pieces: Vec<Piece>,
    /// Number of row groups that statistics exclude.
    pub excluded: usize,
}

/// A row group that a scan reads.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its chunks, and the parameters of its execution; the input is the index of its file.
    pub group: Group,
    /// Number of bytes in its chunks.
    pub bytes: u64,
    /// Number of its rows.
    pub rows: u64,
    /// Reason why no drive can read it, in words.
    pub apart: Option<String>,
}

impl Reading {
    /// Returns the row groups of `table` that `is_excluded` does not exclude, with the columns of
    /// these indexes, which ascend.
    ///
    /// # Errors
    /// [`Refusal`] if a footer does not have these columns.
    pub fn new(
        table: &Table,
        columns: &[usize],
        is_excluded: impl Fn(&File) -> Vec<bool>,
    ) -> Result<Self, Refusal> {
        let mut reading = Self::default();
        for (number, file) in table.files.iter().enumerate() {
            let excluded = is_excluded(file);
            for group in 0..file.metadata.num_row_groups() {
                match excluded.get(group) {
                    Some(true) => reading.excluded += 1,
                    _ => reading.pieces.push(Piece::new((number, file), group, columns)?),
                }
            }
        }
        Ok(reading)
    }

    /// Returns the number of bytes that executions read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rows).sum()
    }
}

impl Piece {
    fn new(
        (number, file): (usize, &File),
        group: usize,
        columns: &[usize],
    ) -> Result<Self, Refusal> {
        let named = |error| Refusal::new(error).of(&format!("{:?}", file.entry.name));
        let footer = footer::of_row_group(&file.metadata, group, columns).map_err(named)?;
        let chunks = chunks(file, group, columns)?;
        let ranges = chunks.iter().map(|chunks| bytes_of(&file.entry, chunks)).collect();
        let part = Part { kind: Some(PartKind::RowGroup(RowGroup { footer, ranges })) };
        let rows =
            u64::try_from(file.metadata.row_group(group).num_rows()).map_err(Refusal::new)?;
        let group = Group { input: number, chunks, parameters: part.encode_to_vec() };
        let bytes = group.bytes(&file.entry);
        let apart = apart(&file.entry, &group, bytes);
        Ok(Self { group, bytes, rows, apart })
    }
}

/// Returns the chunks of an object that hold these columns of a row group, in order.
fn chunks(file: &File, group: usize, columns: &[usize]) -> Result<Vec<Range<u32>>, Refusal> {
    let (layout, about) = (file.entry.layout(), file.metadata.file_metadata());
    let leaves = file.metadata.row_group(group).columns().iter().enumerate();
    let mut found: Vec<Range<u32>> = Vec::new();
    for (leaf, chunk) in leaves {
        let (start, bytes) = chunk.byte_range();
        if bytes == 0 || !columns.contains(&about.schema_descr().get_column_root_idx(leaf)) {
            continue;
        }
        let end = start.checked_add(bytes).filter(|end| *end <= file.entry.bytes);
        let Some(end) = end else {
            let name = &file.entry.name;
            return Err(Refusal::new(format!("{name:?}: a column beyond the end of the file")));
        };
        found.push(layout.chunk_at(start).0..layout.chunk_at(end - 1).0 + 1);
    }
    found.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u32>> = Vec::new();
    for range in found {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    // A row group without bytes has rows of no column, and an execution reads something.
    if joined.is_empty() && layout.chunks() > 0 {
        joined.push(0..1);
    }
    Ok(joined)
}

fn bytes_of(entry: &Entry, chunks: &Range<u32>) -> part::Range {
    let layout = entry.layout();
    let start = layout.bytes_of(chunks.start).start;
    part::Range { start, bytes: layout.bytes_of(chunks.end - 1).end - start }
}

/// Returns the reason why one execution of a drive cannot read these chunks.
fn apart(entry: &Entry, group: &Group, bytes: u64) -> Option<String> {
    let name = &entry.name;
    if group.member(entry).is_none() {
        return Some(format!(
            "{name:?} is cut by chunks, not by row groups: remove it and put it again"
        ));
    }
    // Each range of chunks may lie on two ranges of blocks.
    if group.chunks.len() > SOURCES_MAX / 2 {
        return Some(format!("{name:?} has row groups of too many columns"));
    }
    let most = SOURCE_BYTES_MAX - (8 << 20);
    (bytes > most).then(|| format!("{name:?} has row groups of more than {} MiB", most >> 20))
}
