//! How an execution is cut into parts that several cores work on side by side.
//!
//! A part is an execution over a contiguous piece of the same sources, which writes its piece of
//! the same output; results are folded. Never: a read or a computation. Invariants: parts are cut
//! at whole units of the program, and where chunks of the output end; together they read every
//! byte of the cut streams once and write every byte of the output once.

use std::ops::Range;

use csd_kernels::verify::{Spacing, Whole};
use csd_nvme::execute::{Execution, Output, Place, Source};

/// Fewest bytes of a stream that a part is worth.
const PART_BYTES_MIN: u64 = 64 << 10;

/// How a program's executions may be cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    /// Streams that are cut, all at the same bytes, the first ones.
    pub(super) cut: usize,
    /// Streams that the program reads; those not cut are read by every part.
    pub(super) streams: usize,
    /// Bytes of an item of each cut stream.
    pub(super) item_bytes: u64,
    /// Bytes that the program writes for an item.
    pub(super) written_bytes: u64,
    /// Items that belong together.
    pub(super) unit_items: u64,
    /// What the results come to.
    pub(super) fold: Fold,
}

impl Grain {
    /// One stream, cut anywhere; nothing is written, and results are added up.
    pub(super) const SUM: Self = Self {
        cut: 1,
        streams: 1,
        item_bytes: 1,
        written_bytes: 0,
        unit_items: 1,
        fold: Fold::Sum,
    };
}

/// How the results of parts become that of the whole.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fold {
    /// Their sum.
    Sum,
    /// As results of `verify`: digests and numbers of pages.
    Digest {
        /// Bytes of a page.
        page_bytes: u64,
        /// How the pages lie among those of an object.
        spacing: Spacing,
    },
}

/// One core's part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// What it runs.
    pub(super) execution: Execution,
    /// Bytes of each cut stream that it covers.
    pub(super) bytes: Range<u64>,
    /// Bytes of all streams that its program uses.
    pub(super) used_bytes: u64,
}

/// The lengths of an execution's sources, in order: of each its values', or its own alone.
pub(super) type Lengths = Vec<Vec<u64>>;

/// Cuts an execution for at most `cores` cores; `None` when it is not worth it, or cannot be done
/// without changing what the whole would do. Blocks have `block_bytes` bytes.
pub(super) fn cut(
    execution: &Execution,
    grain: &Grain,
    lengths: &Lengths,
    cores: u64,
    block_bytes: u64,
) -> Option<Vec<Part>> {
    let is_whole = |place| matches!(place, Place::KvTail { .. } | Place::Inline { .. });
    if execution.sources.iter().any(|source| is_whole(source.place)) {
        return None;
    }
    let stream_bytes = |stream: usize| -> u64 {
        let sources = execution.sources.iter().zip(lengths);
        sources.filter(|(at, _)| usize::from(at.stream) == stream).flat_map(|(_, l)| l).sum()
    };
    let whole = stream_bytes(0);
    if (1..grain.cut).any(|stream| stream_bytes(stream) != whole) {
        return None;
    }
    let (step_bytes, writes) = (step_bytes(execution, grain)?, grain.written_bytes > 0);
    if let (Output::Memory { bytes, .. }, true) = (execution.output, writes) {
        // The whole writes as much as there is room for before it fails.
        if written(grain, whole) > u64::from(bytes) {
            return None;
        }
    }
    let count = cores.min(whole / PART_BYTES_MIN);
    let mut ends: Vec<u64> = (1..count)
        .map(|part| floor(execution, grain, lengths, step_bytes, whole / count * part))
        .filter(|end| *end > 0)
        .collect();
    ends.dedup();
    ends.push(whole);
    let rest_bytes: u64 = (grain.cut..grain.streams).map(stream_bytes).sum();
    let mut start = 0;
    let parts = ends.into_iter().map(|end| {
        let bytes = std::mem::replace(&mut start, end)..end;
        let used_bytes = (bytes.end - bytes.start) * grain.cut as u64 + rest_bytes;
        let sources = piece(execution, grain.cut, lengths, &bytes, (whole, block_bytes))?;
        let output = output(execution.output, grain, &bytes)?;
        let execution = Execution { sources, output, cores: 1, ..execution.clone() };
        Some(Part { execution, bytes, used_bytes })
    });
    parts.collect::<Option<Vec<_>>>().filter(|parts| parts.len() > 1)
}

/// The result of the whole, from those of its parts.
pub(super) fn fold(grain: &Grain, results: &[(Range<u64>, u64)]) -> u64 {
    let Fold::Digest { page_bytes, spacing } = grain.fold else {
        return results.iter().map(|(_, result)| result).sum();
    };
    let gaps = |pages: u64| match spacing.every {
        0 => 0,
        every => pages / u64::from(every) * spacing.gap,
    };
    let span = |pages: u64| pages + gaps(pages.saturating_sub(1));
    let whole = results.last().map_or(0, |(bytes, _)| bytes.end.div_ceil(page_bytes));
    let mut digest = Whole::new(span(whole));
    for (bytes, result) in results {
        let (before, pages) = (bytes.start / page_bytes, result >> 32);
        let of_part = u32::try_from(result & u64::from(u32::MAX)).expect("masked");
        // Parts begin where a gap ends.
        digest.add(before + gaps(before), span(pages), of_part);
    }
    u64::from(digest.value()) | whole << 32
}

/// Bytes written for the first `bytes` of the cut streams.
fn written(grain: &Grain, bytes: u64) -> u64 {
    bytes.div_ceil(grain.item_bytes) * grain.written_bytes
}

/// Parts begin at multiples of this: whole units, for which whole chunks are written.
fn step_bytes(execution: &Execution, grain: &Grain) -> Option<u64> {
    let items = match execution.output {
        Output::KvChunks { chunk_bytes, .. } if grain.written_bytes > 0 => {
            let chunk_bytes = u64::from(chunk_bytes);
            chunk_bytes / common_divisor(chunk_bytes, grain.written_bytes)
        }
        _ => 1,
    };
    let units = items / common_divisor(items, grain.unit_items);
    grain.item_bytes.checked_mul(grain.unit_items)?.checked_mul(units).filter(|step| *step > 0)
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// The last byte up to `bytes` at which the cut streams may be cut: no value is.
fn floor(
    execution: &Execution,
    grain: &Grain,
    lengths: &Lengths,
    step_bytes: u64,
    mut bytes: u64,
) -> u64 {
    loop {
        let before = bytes;
        bytes -= bytes % step_bytes;
        for (start, source, lengths) in placed(execution, lengths) {
            let is_cut = usize::from(source.stream) < grain.cut;
            if !is_cut || !matches!(source.place, Place::KvChunks { .. }) {
                continue;
            }
            let mut start = start;
            for length in lengths {
                if start < bytes && bytes < start + length {
                    bytes = start;
                }
                start += length;
            }
        }
        if bytes == before {
            return bytes;
        }
    }
}

/// Every source, where it begins in its stream, and its lengths.
fn placed<'a>(
    execution: &'a Execution,
    lengths: &'a Lengths,
) -> impl Iterator<Item = (u64, &'a Source, &'a Vec<u64>)> {
    let mut starts = [0; u8::MAX as usize + 1];
    execution.sources.iter().zip(lengths).map(move |(source, lengths)| {
        let start = &mut starts[usize::from(source.stream)];
        let begun = *start;
        *start += lengths.iter().sum::<u64>();
        (begun, source, lengths)
    })
}

/// The sources that bytes `bytes` of the cut streams come from, and all of the others.
fn piece(
    execution: &Execution,
    cut: usize,
    lengths: &Lengths,
    bytes: &Range<u64>,
    (whole, block_bytes): (u64, u64),
) -> Option<Vec<Source>> {
    let mut sources = Vec::new();
    for (start, source, lengths) in placed(execution, lengths) {
        if usize::from(source.stream) >= cut {
            sources.push(*source);
            continue;
        }
        let end = start + lengths.iter().sum::<u64>();
        let inner = bytes.start.max(start)..bytes.end.min(end);
        let place = match source.place {
            Place::KvChunks { nsid, prefix, first, count: _, stride } => {
                // An empty value at a part's end is the next one's.
                let mut at = start;
                let is_in = lengths.iter().map(|length| {
                    let begun = at;
                    at += length;
                    let is_last = bytes.end == whole && begun == whole;
                    bytes.contains(&begun) || is_last
                });
                let is_in: Vec<bool> = is_in.collect();
                let skipped = is_in.iter().take_while(|is_in| !**is_in).count();
                let count = u32::try_from(is_in.iter().filter(|is_in| **is_in).count()).ok()?;
                let first = first + u32::try_from(skipped).ok()?.checked_mul(stride)?;
                (count > 0).then_some(Place::KvChunks { nsid, prefix, first, count, stride })
            }
            Place::KvTail { .. } | Place::Inline { .. } => None,
            _ if inner.is_empty() => None,
            Place::Blocks { nsid, slba, skip, .. } => {
                let skip = u64::from(skip) + inner.start - start;
                let slba = slba.checked_add(skip / block_bytes)?;
                let skip = u32::try_from(skip % block_bytes).ok()?;
                let bytes = u32::try_from(inner.end - inner.start).ok()?;
                Some(Place::Blocks { nsid, slba, skip, bytes })
            }
            Place::Memory { nsid, start: byte, .. } => {
                let byte = byte.checked_add(inner.start - start)?;
                let bytes = u32::try_from(inner.end - inner.start).ok()?;
                Some(Place::Memory { nsid, start: byte, bytes })
            }
        };
        sources.extend(place.map(|place| place.on(source.stream)));
    }
    Some(sources)
}

/// Where a part writes that covers `bytes` of the cut streams.
fn output(output: Output, grain: &Grain, bytes: &Range<u64>) -> Option<Output> {
    let before = written(grain, bytes.start);
    Some(match output {
        Output::Memory { nsid, start, .. } if grain.written_bytes > 0 => {
            let bytes = u32::try_from(written(grain, bytes.end) - before).ok()?;
            Output::Memory { nsid, start: start.checked_add(before)?, bytes }
        }
        Output::KvChunks { nsid, prefix, first, stride, chunk_bytes } => {
            let number = u32::try_from(before / u64::from(chunk_bytes)).ok()?;
            let first = number.checked_mul(stride)?.checked_add(first)?;
            Output::KvChunks { nsid, prefix, first, stride, chunk_bytes }
        }
        other => other,
    })
}

#[cfg(test)]
mod tests;
