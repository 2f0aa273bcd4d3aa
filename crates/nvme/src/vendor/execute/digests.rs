//! [`Digests`]: what a host knows of the bytes that an execution reads.

use std::ops::RangeInclusive;

use super::{CHUNKS_MAX, Malformed, SOURCES_MAX, Source, SourceData};

/// Numbers of bytes of blocks that a digest may cover.
pub const DIGEST_BLOCKS: RangeInclusive<u32> = 4096..=8 << 20;
/// Maximum digests of one execution: what [`CHUNKS_MAX`] chunks need, and the ends of sources.
pub const DIGESTS_MAX: usize = CHUNKS_MAX as usize + SOURCES_MAX;

/// CRC-32C of the values and blocks that sources name. Bytes that are sound, but older or another
/// object's, have other digests. Memory, keys and inline bytes have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digests {
    /// Bytes of blocks that one digest covers, counted from the first byte of a source's first
    /// block, skipped ones too; the last digest of a source covers what is left.
    pub unit_bytes: u32,
    /// Streams whose sources have digests: bit `i` for stream `i`.
    pub streams: u8,
    /// Digests of these sources, in order: of each value as a whole, and of each unit of blocks.
    pub sums: Vec<u32>,
}

impl Digests {
    /// Returns true if a source has digests: values and blocks of the streams that are named.
    pub fn cover(&self, source: &Source) -> bool {
        let kinds = matches!(
            source.data,
            SourceData::KvChunks { .. } | SourceData::KvTail { .. } | SourceData::Blocks { .. }
        );
        kinds && self.streams >> source.stream & 1 == 1
    }

    /// Returns the number of digests that these sources need.
    pub fn needed(&self, sources: &[Source]) -> u64 {
        sources.iter().map(|source| self.count(source)).sum()
    }

    fn count(&self, source: &Source) -> u64 {
        match source.data {
            _ if !self.cover(source) => 0,
            SourceData::KvChunks { count, .. } => count.into(),
            SourceData::Blocks { skip, bytes, .. } => {
                (u64::from(skip) + u64::from(bytes)).div_ceil(self.unit_bytes.max(1).into())
            }
            _ => 1,
        }
    }

    /// Returns the digests of each of these sources, in order.
    ///
    /// # Panics
    /// When there are fewer than the sources need; [`Execution::parse`](super::Execution::parse)
    /// has looked.
    pub fn of_sources<'a>(&'a self, sources: &'a [Source]) -> impl Iterator<Item = &'a [u32]> {
        let mut rest = &self.sums[..];
        sources.iter().map(move |source| {
            let count = usize::try_from(self.count(source)).expect("few digests");
            let (ours, others) = rest.split_at(count);
            rest = others;
            ours
        })
    }

    /// Parses the digests of these sources; returns what follows them, too.
    pub(super) fn parse<'a>(
        sources: &[Source],
        data: &'a [u8],
    ) -> Result<(Self, &'a [u8]), Malformed> {
        let short = Malformed("shorter than its digests");
        let (head, data) = data.split_first_chunk::<8>().ok_or(short)?;
        let [a, b, c, d, streams, reserved @ ..] = *head;
        if reserved != [0; 3] {
            return Err(Malformed("reserved bytes of digests are not zero"));
        }
        let unit_bytes = u32::from_le_bytes([a, b, c, d]);
        let this = Self { unit_bytes, streams, sums: Vec::new() };
        let mut chunks = 0;
        for source in sources {
            chunks += source.chunks();
            let SourceData::Blocks { skip, .. } = source.data else { continue };
            if !this.cover(source) {
                continue;
            }
            if !DIGEST_BLOCKS.contains(&unit_bytes) {
                return Err(Malformed("a digest of blocks covers less than 4 KiB or over 8 MiB"));
            }
            if skip >= unit_bytes {
                return Err(Malformed("a source skips all that a digest covers"));
            }
            // What is skipped is read for the digest.
            chunks += u64::from(skip).div_ceil(1 << 20);
        }
        if chunks > u64::from(CHUNKS_MAX) {
            return Err(Malformed("digests cover more than 256 MiB in one execution"));
        }
        let needed = usize::try_from(this.needed(sources)).unwrap_or(usize::MAX);
        if needed > DIGESTS_MAX {
            return Err(Malformed("more than 512 digests in one execution"));
        }
        let (sums, rest) = data.split_at_checked(4 * needed).ok_or(short)?;
        let sums = sums.as_chunks().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        Ok((Self { sums, ..this }, rest))
    }

    /// Appends the digests of these sources.
    pub(super) fn encode(&self, sources: &[Source], data: &mut Vec<u8>) {
        let needed = self.needed(sources);
        assert_eq!(needed, self.sums.len() as u64, "the digests of all sources");
        data.extend_from_slice(&self.unit_bytes.to_le_bytes());
        data.extend_from_slice(&[self.streams, 0, 0, 0]);
        data.extend(self.sums.iter().flat_map(|sum| sum.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Execution, Output};
    use super::*;

    /// Returns digests of streams 0 and 1, with a unit of 8 KiB.
    fn digests(sums: std::ops::Range<u32>) -> Option<Digests> {
        Some(Digests { unit_bytes: 8192, streams: 3, sums: sums.collect() })
    }

    fn sample() -> Execution {
        let (nsid, prefix) = (3, [7; 12]);
        let sources = vec![
            SourceData::KvChunks { nsid, prefix, first: 1, count: 2, stride: 1 }.on(0),
            SourceData::KvTail { nsid, prefix, number: 9, skip: 1 }.on(0),
            SourceData::Inline { bytes: 1 }.on(0),
            SourceData::Blocks { nsid: 1, slba: 99, skip: 4097, bytes: 12288 }.on(1),
            SourceData::Blocks { nsid: 1, slba: 9, skip: 1 << 20, bytes: 12288 }.on(2),
            SourceData::Memory { nsid: 4, start: 0, bytes: 4 }.on(1),
        ];
        Execution {
            program: 1,
            output: Output::Completion,
            sources,
            inline: vec![5],
            digests: digests(10..16),
            parameters: vec![1, 2, 3],
            serial: true,
            cores: 1,
        }
    }

    #[test]
    fn values_and_units_of_blocks_have_a_digest_each() {
        let execution = sample();
        let data = execution.encode();
        assert_eq!(data.len(), 64 + 6 * 32 + 1 + 8 + 6 * 4 + 3);
        assert_eq!(Execution::parse(&data), Ok(execution.clone()));
        let digests = execution.digests.unwrap();
        let of: Vec<&[u32]> = digests.of_sources(&execution.sources).collect();
        let expected: [&[u32]; 6] = [&[10, 11], &[12], &[], &[13, 14, 15], &[], &[]];
        assert_eq!(of, expected);
    }

    #[test]
    fn payloads_without_all_digests_are_refused() {
        let data = sample().encode();
        for length in 0..data.len() {
            assert!(Execution::parse(&data[..length]).is_err(), "cut to {length}");
        }
        let at = 64 + 6 * 32 + 1;
        let with = |unit: u32, reserved: u8| {
            let mut data = data.clone();
            data[at..at + 4].copy_from_slice(&unit.to_le_bytes());
            data[at + 7] = reserved;
            Execution::parse(&data).unwrap_err().0
        };
        for unit in [0, 4095, (8 << 20) + 1] {
            let why = with(unit, 0);
            assert_eq!(why, "a digest of blocks covers less than 4 KiB or over 8 MiB", "{unit}");
        }
        assert_eq!(with(4097, 0), "a source skips all that a digest covers");
        assert_eq!(with(8193, 0), "length of the parameters is not what follows");
        assert_eq!(with(8192, 1), "reserved bytes of digests are not zero");
    }

    #[test]
    fn digests_are_few_and_cover_few_bytes() {
        let with = |sources: Vec<SourceData>, unit_bytes: u32| {
            let sources: Vec<Source> = sources.into_iter().map(Source::from).collect();
            let mut digests = Digests { unit_bytes, streams: 1, sums: Vec::new() };
            digests.sums = vec![7; usize::try_from(digests.needed(&sources)).unwrap()];
            let (inline, digests) = (Vec::new(), Some(digests));
            Execution::parse(&Execution { sources, inline, digests, ..sample() }.encode())
        };
        let blocks = |skip, bytes| SourceData::Blocks { nsid: 1, slba: 0, skip, bytes };
        let all = vec![blocks((4 << 20) - 1, 4 << 20); 32];
        assert!(with(all.clone(), 4 << 20).is_ok());
        let more = [all, vec![blocks(0, 1)]].concat();
        let refused = "digests cover more than 256 MiB in one execution";
        assert_eq!(with(more, 4 << 20), Err(Malformed(refused)));
        assert!(with(vec![blocks(0, 512 * 4096)], 4096).is_ok());
        let refused = "more than 512 digests in one execution";
        assert_eq!(with(vec![blocks(0, 512 * 4096 + 1)], 4096), Err(Malformed(refused)));
    }
}
