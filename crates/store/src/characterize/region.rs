//! [`Region`]: the part of a drive's block namespace that is measured, as one run of bytes.
//!
//! Never: I/O. Invariant: what [`Region::cut`] gives lies within the region and is as long as
//! asked for.

use std::ops::Range;

/// Longest piece that is read or written at once: the chunk size of objects.
pub const PIECE_BYTES: u64 = 1 << 20;

/// Ranges of a block namespace, taken as one run of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The block namespace.
    pub nsid: u32,
    /// Offset and length of each range in bytes, multiples of the block size.
    ranges: Vec<(u64, u64)>,
}

impl Region {
    /// A region of these ranges, each an offset and a length in bytes.
    #[must_use]
    pub fn new(nsid: u32, ranges: Vec<(u64, u64)>) -> Self {
        Self { nsid, ranges }
    }

    /// Length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Where `wanted` of the region lies: offsets and lengths, in order.
    ///
    /// # Panics
    /// When the region is shorter: our bug.
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

/// A working set of equally long streams, one after another in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkingSet {
    /// All bytes.
    pub bytes: u64,
    /// Streams.
    pub streams: usize,
}

impl WorkingSet {
    /// Length of a stream in bytes.
    #[must_use]
    pub fn stream_bytes(&self) -> u64 {
        self.bytes / self.streams as u64
    }

    /// Where bytes `range` of `stream` lie in the region.
    #[must_use]
    pub fn of_stream(&self, stream: usize, range: &Range<u64>) -> Range<u64> {
        let start = self.stream_bytes() * stream as u64;
        start + range.start..start + range.end
    }

    /// Part `index` of `count` of every stream: equal parts in grains of `grain` bytes, the first
    /// ones a grain longer where it does not come out even.
    #[must_use]
    pub fn part(&self, index: u64, count: u64, grain: u64) -> Range<u64> {
        let grains = self.stream_bytes() / grain;
        let start = |index: u64| (grains / count * index + index.min(grains % count)) * grain;
        start(index)..start(index + 1)
    }
}

/// Pieces of at most [`PIECE_BYTES`].
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
