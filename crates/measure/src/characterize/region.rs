//! [`Region`]: the part of a drive's block namespace that is measured, as one sequence of bytes.
//!
//! Performs no I/O. Invariant: ranges from [`Region::cut`] lie within the region and have the
//! requested length.

use std::ops::Range;

/// Longest piece of one read or write: the chunk size of objects.
pub const PIECE_BYTES: u64 = 1 << 20;

/// Ranges of a block namespace, treated as one sequence of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Identifier of the block namespace.
    pub nsid: u32,
    /// Offset and length of each range in bytes, multiples of the block size.
    ranges: Vec<(u64, u64)>,
}

impl Region {
    /// Returns a region of these ranges, each an offset and a length in bytes.
    #[must_use]
    pub fn new(nsid: u32, ranges: Vec<(u64, u64)>) -> Self {
        Self { nsid, ranges }
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the offsets and lengths of bytes `wanted` of the region, in order.
    ///
    /// # Panics
    /// When the region is shorter: an internal error.
    #[must_use]
    pub fn cut(&self, wanted: Range<u64>) -> Vec<(u64, u64)> {
        assert!(wanted.end <= self.bytes(), "{wanted:?} lies in the region");
        let mut cut = Vec::new();
        let mut start = 0;
        for &(offset, bytes) in &self.ranges {
            let (from, to) = (wanted.start.max(start), wanted.end.min(start + bytes));
            if from < to {
                cut.push((offset + (from - start), to - from));
            }
            start += bytes;
        }
        cut
    }
}

/// A working set of streams of equal length, one after another in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkingSet {
    /// Total size, bytes.
    pub bytes: u64,
    /// Number of streams.
    pub streams: usize,
}

impl WorkingSet {
    /// Returns the length of a stream in bytes.
    #[must_use]
    pub fn stream_bytes(&self) -> u64 {
        self.bytes / self.streams as u64
    }

    /// Returns the location in the region of bytes `range` of `stream`.
    #[must_use]
    pub fn of_stream(&self, stream: usize, range: &Range<u64>) -> Range<u64> {
        let start = self.stream_bytes() * stream as u64;
        start + range.start..start + range.end
    }

    /// Returns part `index` of `count` of every stream, in units of `grain` bytes. Parts are equal,
    /// or the first ones are one unit longer.
    #[must_use]
    pub fn part(&self, index: u64, count: u64, grain: u64) -> Range<u64> {
        let grains = self.stream_bytes() / grain;
        let start = |index: u64| (grains / count * index + index.min(grains % count)) * grain;
        start(index)..start(index + 1)
    }
}

/// Returns the pieces of a range, each of at most [`PIECE_BYTES`].
pub fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = (range.start..range.end).step_by(usize::try_from(PIECE_BYTES).expect("a MiB"));
    starts.map(move |start| start..range.end.min(start + PIECE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_one_run_of_bytes() {
        let region = Region::new(1, vec![(8192, 4096), (65_536, 8192), (0, 4096)]);
        assert_eq!(region.bytes(), 16_384);
        assert_eq!(region.cut(0..16_384), [(8192, 4096), (65_536, 8192), (0, 4096)]);
        assert_eq!(region.cut(2048..6144), [(10_240, 2048), (65_536, 2048)]);
        assert_eq!(region.cut(4096..12_288), [(65_536, 8192)]);
        assert_eq!(region.cut(5..5), []);
    }

    #[test]
    fn parts_cover_every_grain_once() {
        for (bytes, streams) in [(1 << 20, 1), (2 << 20, 2), (12_288, 1)] {
            let set = WorkingSet { bytes, streams };
            for count in 1..6 {
                let parts: Vec<_> = (0..count).map(|index| set.part(index, count, 4096)).collect();
                assert_eq!(parts[0].start, 0);
                assert_eq!(parts[parts.len() - 1].end, set.stream_bytes());
                assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
                let lengths = parts.iter().map(|part| part.end - part.start);
                assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 4096);
            }
        }
        let set = WorkingSet { bytes: 100, streams: 2 };
        assert_eq!(set.of_stream(1, &(10..20)), 60..70);
    }

    #[test]
    fn pieces_are_a_mebibyte_but_for_the_last() {
        let cut: Vec<_> = pieces(4096..PIECE_BYTES * 2).collect();
        let whole = 4096..4096 + PIECE_BYTES;
        assert_eq!(cut, [whole.clone(), whole.end..PIECE_BYTES * 2]);
        assert_eq!(pieces(7..7).count(), 0);
    }
}
