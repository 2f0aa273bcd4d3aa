//! Splits an execution into parts that several cores work on in parallel.
//!
//! A part is an execution over a contiguous piece of the same sources, and writes its piece of the
//! same output; the kernel joins the results. This module performs no I/O and computes no result.
//! Invariants: parts are split at whole units of the program, where chunks of the output end, and
//! never within bytes that one digest covers; together they read every byte of the split streams
//! once and write every byte of the output once.

use std::ops::Range;

use csd_kernels::program::SplitRule;
use csd_nvme::vendor::execute::{Digests, Execution, Output, Source, SourceData};
use csd_reactor::{ITEM, worked};

/// Smallest number of bytes of a stream that is worth a part.
const PART_BYTES_MIN: u64 = 64 << 10;
/// Most tries to find a byte at which all streams may be split.
const ROUNDS_MAX: usize = 64;

/// One core's part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// Execution of the part.
    pub(super) execution: Execution,
    /// Byte range of each split stream that it covers.
    pub(super) bytes: Range<u64>,
    /// Bytes of all streams that its program uses.
    pub(super) used_bytes: u64,
}

/// Lengths of an execution's sources, in order: for each source those of its values, or of blocks
/// that one digest covers, or its own alone.
pub(super) type Lengths = Vec<Vec<u64>>;

/// Returns the lengths of the units, which begin `skip` bytes before the first of these bytes.
pub(super) fn unit_lengths(unit_bytes: u64, (skip, bytes): (u32, u32)) -> Vec<u64> {
    let (mut at, end) = (u64::from(skip), u64::from(skip) + u64::from(bytes));
    let mut lengths = Vec::new();
    while at < end {
        let length = (unit_bytes - at % unit_bytes).min(end - at);
        lengths.push(length);
        at += length;
    }
    lengths
}

/// Splits an execution for at most `cores` cores. Returns `None` if that is not worth it, or would
/// change the outcome. Blocks have `block_bytes` bytes.
pub(super) fn cut(
    execution: &Execution,
    rule: &SplitRule,
    lengths: &Lengths,
    cores: u64,
    block_bytes: u64,
) -> Option<Vec<Part>> {
    let is_whole = |data| {
        matches!(
            data,
            SourceData::KvTail { .. } | SourceData::Inline { .. } | SourceData::Keys { .. }
        )
    };
    if execution.sources.iter().any(|source| is_whole(source.data)) {
        return None;
    }
    let stream_bytes = |stream: usize| -> u64 {
        let sources = execution.sources.iter().zip(lengths);
        sources.filter(|(at, _)| usize::from(at.stream) == stream).flat_map(|(_, l)| l).sum()
    };
    let whole = stream_bytes(0);
    if (1..rule.split_streams).any(|stream| stream_bytes(stream) != whole) {
        return None;
    }
    let (step_bytes, writes) = (step_bytes(execution, rule)?, rule.written_bytes > 0);
    if let (Output::Memory { bytes, .. }, true) = (execution.output, writes) {
        // The whole execution writes until the output is full, and then fails; parts could not do
        // the same.
        if written(rule, whole) > u64::from(bytes) {
            return None;
        }
    }
    let count = cores.min(whole / PART_BYTES_MIN);
    let uncut = uncut(execution, rule, lengths);
    let mut ends: Vec<u64> = (1..count)
        .map(|part| floor(&uncut, step_bytes, whole / count * part))
        .filter(|end| *end > 0)
        .collect();
    ends.dedup();
    ends.push(whole);
    let rest_bytes: u64 = (rule.split_streams..rule.streams).map(stream_bytes).sum();
    // What all parts have: the lists are long, and each part has its own.
    let common = Execution { sources: Vec::new(), digests: None, cores: 1, ..execution.clone() };
    let mut start = 0;
    let parts = ends.into_iter().map(|end| {
        let bytes = std::mem::replace(&mut start, end)..end;
        let used_bytes = (bytes.end - bytes.start) * rule.split_streams as u64 + rest_bytes;
        let covered = (&bytes, whole);
        let (sources, digests) =
            piece(execution, rule.split_streams, lengths, covered, block_bytes)?;
        let output = output(execution.output, rule, &bytes)?;
        let execution = Execution { sources, digests, output, ..common.clone() };
        Some(Part { execution, bytes, used_bytes })
    });
    parts.collect::<Option<Vec<_>>>().filter(|parts| parts.len() > 1)
}

/// Returns the number of bytes written for the first `bytes` of the split streams.
fn written(rule: &SplitRule, bytes: u64) -> u64 {
    bytes.div_ceil(rule.item_bytes) * rule.written_bytes
}

/// Returns the alignment of parts in bytes: whole units, which write whole chunks.
fn step_bytes(execution: &Execution, rule: &SplitRule) -> Option<u64> {
    let items = match execution.output {
        Output::KvChunks { chunk_bytes, .. } if rule.written_bytes > 0 => {
            let chunk_bytes = u64::from(chunk_bytes);
            chunk_bytes / common_divisor(chunk_bytes, rule.written_bytes)
        }
        _ => 1,
    };
    let units = items / common_divisor(items, rule.unit_items);
    rule.item_bytes.checked_mul(rule.unit_items)?.checked_mul(units).filter(|step| *step > 0)
}

fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Returns the values, and blocks that one digest covers, of each stream that is split, in order:
/// no part ends within one.
fn uncut(execution: &Execution, rule: &SplitRule, lengths: &Lengths) -> Vec<Vec<Range<u64>>> {
    let mut uncut = vec![Vec::new(); rule.split_streams];
    for (mut start, source, lengths) in placed(execution, lengths) {
        let has_ends = match source.data {
            SourceData::KvChunks { .. } => true,
            SourceData::Blocks { .. } => execution.unit_of(source).is_some(),
            _ => false,
        };
        let of_stream = uncut.get_mut(usize::from(source.stream));
        let Some(of_stream) = of_stream.filter(|_| has_ends) else { continue };
        for length in lengths {
            of_stream.push(start..start + length);
            start += length;
        }
    }
    uncut
}

/// Returns the last byte up to `bytes` at which the split streams may be split, and 0 if it is not
/// found soon: steps and values of many lengths need not meet before the beginning.
fn floor(uncut: &[Vec<Range<u64>>], step_bytes: u64, mut bytes: u64) -> u64 {
    for _ in 0..ROUNDS_MAX {
        worked(uncut.len() as u64 * ITEM);
        let before = bytes;
        bytes -= bytes % step_bytes;
        for whole in uncut {
            let at = whole.partition_point(|range| range.end <= bytes);
            bytes = whole.get(at).map_or(bytes, |range| range.start.min(bytes));
        }
        if bytes == before {
            return bytes;
        }
    }
    0
}

/// Returns every source, its first byte in its stream, and its lengths.
fn placed<'a>(
    execution: &'a Execution,
    lengths: &'a Lengths,
) -> impl Iterator<Item = (u64, &'a Source, &'a Vec<u64>)> {
    let mut starts = [0; u8::MAX as usize + 1];
    execution.sources.iter().zip(lengths).map(move |(source, lengths)| {
        worked(ITEM + lengths.len() as u64);
        let start = &mut starts[usize::from(source.stream)];
        let begun = *start;
        *start += lengths.iter().sum::<u64>();
        (begun, source, lengths)
    })
}

/// Returns the sources that contain bytes `covered` of the split streams of `whole` bytes, and all
/// of the others, with their digests.
fn piece(
    execution: &Execution,
    cut: usize,
    lengths: &Lengths,
    (covered, whole): (&Range<u64>, u64),
    block_bytes: u64,
) -> Option<(Vec<Source>, Option<Digests>)> {
    let mut sources = Vec::new();
    let mut digests = execution.digests.as_ref().map(|all| {
        let kept = Digests { sums: Vec::new(), ..*all };
        (all.of_sources(&execution.sources), kept)
    });
    for (start, source, lengths) in placed(execution, lengths) {
        // Blocks are split at any of them, or at those where a digest begins.
        let step_bytes = execution.unit_of(source).map_or(block_bytes, u64::from);
        let (taken, which) = match usize::from(source.stream) >= cut {
            true => (Some(source.data), 0..usize::MAX),
            false => {
                let at = (start, &lengths[..]);
                taken(source.data, at, (covered, whole), (block_bytes, step_bytes))?
            }
        };
        sources.extend(taken.map(|data| data.on(source.stream)));
        if let Some((of_sources, kept)) = &mut digests {
            let sums = of_sources.next()?;
            if !sums.is_empty() {
                kept.sums.extend(sums.get(which.start..which.end.min(sums.len()))?);
            }
        }
    }
    Some((sources, digests.map(|(_, kept)| kept)))
}

/// Returns what a part takes of a source that begins at byte `start` of its stream, and which of
/// the source's digests, if it has some.
fn taken(
    data: SourceData,
    (start, lengths): (u64, &[u64]),
    (covered, whole): (&Range<u64>, u64),
    (block_bytes, step_bytes): (u64, u64),
) -> Option<(Option<SourceData>, Range<usize>)> {
    let end = start + lengths.iter().sum::<u64>();
    let inner = covered.start.max(start)..covered.end.min(end);
    Some(match data {
        SourceData::KvChunks { nsid, prefix, first, count: _, stride } => {
            // An empty value at a part's end belongs to the next part.
            let mut at = start;
            let is_in = lengths.iter().map(|length| {
                let begun = at;
                at += length;
                let is_last = covered.end == whole && begun == whole;
                covered.contains(&begun) || is_last
            });
            let is_in: Vec<bool> = is_in.collect();
            let skipped = is_in.iter().take_while(|is_in| !**is_in).count();
            let values = is_in.iter().filter(|is_in| **is_in).count();
            let count = u32::try_from(values).ok()?;
            let first = first + u32::try_from(skipped).ok()?.checked_mul(stride)?;
            let data = SourceData::KvChunks { nsid, prefix, first, count, stride };
            ((count > 0).then_some(data), if count > 0 { skipped..skipped + values } else { 0..0 })
        }
        SourceData::KvTail { .. } | SourceData::Inline { .. } | SourceData::Keys { .. } => {
            (None, 0..0)
        }
        _ if inner.is_empty() => (None, 0..0),
        SourceData::Blocks { nsid, slba, skip, .. } => {
            let skip = u64::from(skip) + inner.start - start;
            let bytes = inner.end - inner.start;
            let before = skip / step_bytes;
            let slba = slba.checked_add(before * step_bytes / block_bytes)?;
            let digests = before..(skip + bytes).div_ceil(step_bytes);
            let digests =
                usize::try_from(digests.start).ok()?..usize::try_from(digests.end).ok()?;
            let (skip, bytes) =
                (u32::try_from(skip % step_bytes).ok()?, u32::try_from(bytes).ok()?);
            (Some(SourceData::Blocks { nsid, slba, skip, bytes }), digests)
        }
        SourceData::Memory { nsid, start: byte, .. } => {
            let start = byte.checked_add(inner.start - start)?;
            let bytes = u32::try_from(inner.end - inner.start).ok()?;
            (Some(SourceData::Memory { nsid, start, bytes }), 0..0)
        }
    })
}

/// Returns the output of a part that covers `bytes` of the split streams.
fn output(output: Output, rule: &SplitRule, bytes: &Range<u64>) -> Option<Output> {
    let before = written(rule, bytes.start);
    Some(match output {
        Output::Memory { nsid, start, .. } if rule.written_bytes > 0 => {
            let bytes = u32::try_from(written(rule, bytes.end) - before).ok()?;
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
