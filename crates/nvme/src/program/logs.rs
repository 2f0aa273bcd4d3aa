//! The logs 83h and 84h of a compute namespace: types of program, memory range sets.
//!
//! Provisional: no source of ours has their headers and entries. Ours begin with a count.

use super::{MemoryRange, RANGE_BYTES};
use crate::wire::layout;

/// Bytes of the provisional header of the logs 83h and 84h: u32 count, then zeros.
pub const LIST_HEADER_BYTES: usize = 64;

layout! {
    /// Entry of the Downloadable Program Types List log. Provisional.
    pub struct ProgramTypeEntry[64] {
        /// Program Type (PTYPE).
        ptype / set_ptype: u8 @ 0,
        /// Its name, zero-terminated.
        name / set_name: [16] @ 48,
    }
}

layout! {
    /// Entry of the Memory Range Set List log; so many range descriptors follow. Provisional.
    pub struct RangeSetEntry[32] {
        /// Memory Range Set ID (RSID).
        rsid / set_rsid: u16 @ 0,
        /// Number of memory ranges (NUMR).
        ranges / set_ranges: u8 @ 2,
        /// 1 while an execution uses it.
        in_use / set_in_use: u8 @ 3,
    }
}

/// A program type that a drive takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramType {
    /// Program type.
    pub ptype: u8,
    /// Its name, at most 16 ASCII characters.
    pub name: String,
}

/// A memory range set as the log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSet {
    /// Identifier.
    pub rsid: u16,
    /// True if an execution uses it.
    pub in_use: bool,
    /// Its ranges.
    pub ranges: Vec<MemoryRange>,
}

fn list(count: usize, entries: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut data = vec![0; LIST_HEADER_BYTES];
    let count = u32::try_from(count).expect("a short list");
    data[..4].copy_from_slice(&count.to_le_bytes());
    data.extend(entries);
    data
}

/// Returns the data of the Downloadable Program Types List log.
pub fn program_types(types: &[ProgramType]) -> Vec<u8> {
    let entry = |one: &ProgramType| {
        let mut entry = ProgramTypeEntry::zeroed();
        entry.set_ptype(one.ptype).set_name(&crate::wire::fixed_text(&one.name, 0));
        *entry.as_bytes()
    };
    list(types.len(), types.iter().flat_map(entry))
}

/// Returns the data of the Memory Range Set List log.
pub fn range_sets(sets: &[RangeSet]) -> Vec<u8> {
    let entry = |set: &RangeSet| {
        let mut entry = RangeSetEntry::zeroed();
        let ranges = u8::try_from(set.ranges.len()).expect("few ranges");
        entry.set_rsid(set.rsid).set_ranges(ranges).set_in_use(set.in_use.into());
        let ranges = set.ranges.iter().flat_map(MemoryRange::encode);
        entry.as_bytes().iter().copied().chain(ranges).collect::<Vec<u8>>()
    };
    list(sets.len(), sets.iter().flat_map(entry))
}

fn count_of(data: &[u8]) -> Option<(usize, &[u8])> {
    let count = usize::try_from(u32::from_le_bytes(*data.first_chunk()?)).ok()?;
    Some((count, data.get(LIST_HEADER_BYTES..)?))
}

/// Parses the data of the Downloadable Program Types List log; `None` when it is malformed.
pub fn parse_program_types(data: &[u8]) -> Option<Vec<ProgramType>> {
    let (count, rest) = count_of(data)?;
    let entries = rest.as_chunks::<64>().0.get(..count)?.iter();
    let parse = |bytes: &[u8; 64]| {
        let entry = ProgramTypeEntry::from_bytes(*bytes);
        let name = crate::wire::text_of(&entry.name())?.to_owned();
        Some(ProgramType { ptype: entry.ptype(), name })
    };
    entries.map(parse).collect()
}

/// Parses the data of the Memory Range Set List log; `None` when it is malformed.
pub fn parse_range_sets(data: &[u8]) -> Option<Vec<RangeSet>> {
    let (count, mut rest) = count_of(data)?;
    let mut sets = Vec::new();
    for _ in 0..count {
        let entry = RangeSetEntry::parse(rest)?;
        let end = RangeSetEntry::SIZE + usize::from(entry.ranges()) * RANGE_BYTES;
        let ranges = MemoryRange::parse_all(rest.get(RangeSetEntry::SIZE..end)?);
        sets.push(RangeSet { rsid: entry.rsid(), in_use: entry.in_use() == 1, ranges });
        rest = &rest[end..];
    }
    Some(sets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Range;

    fn range(start: u64, length: u64) -> MemoryRange {
        MemoryRange { nsid: 4, range: Range { start, length } }
    }

    #[test]
    fn lists_round_trip_and_refuse_short_data() {
        let types = [ProgramType { ptype: 0xC1, name: "wasm".into() }];
        let data = program_types(&types);
        assert_eq!(parse_program_types(&data).unwrap(), types);
        assert!(parse_program_types(&data[..data.len() - 1]).is_none());
        let sets = [
            RangeSet { rsid: 1, in_use: true, ranges: vec![range(0, 8), range(8, 8)] },
            RangeSet { rsid: 9, in_use: false, ranges: vec![range(64, 4)] },
        ];
        let data = range_sets(&sets);
        assert_eq!(parse_range_sets(&data).unwrap(), sets);
        assert!(parse_range_sets(&data[..data.len() - 1]).is_none());
        assert!(parse_range_sets(&[255; 64]).is_none() && parse_program_types(&[]).is_none());
    }
}
