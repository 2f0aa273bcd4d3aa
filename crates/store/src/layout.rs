//! Where a chunk of an object lies: the `spread` layout, as arithmetic.
//!
//! Chunk `i` is on member `(i + offset) mod members`. Never: I/O, or knowledge of drives beyond
//! their number. Invariants: every chunk has exactly one member; the chunks of a member, in order,
//! are `first, first + members, first + 2 * members, ...`; every chunk but the last is full, and
//! holds whole elements because a chunk's size is a power of two of at least
//! [`CHUNK_BYTES_MIN`] bytes.

use std::fmt;

/// Chunk size unless the user says otherwise, bytes.
pub const CHUNK_BYTES: u32 = 1 << 20;
/// Smallest chunk, bytes: a block, so that a chunk on a block namespace is whole blocks.
pub const CHUNK_BYTES_MIN: u32 = 4096;
/// Largest chunk, bytes: a unit of the block allocator, so that no chunk crosses one.
pub const CHUNK_BYTES_MAX: u32 = 8 << 20;
/// Most drives of an array.
pub const DRIVES_MAX: usize = 1024;

/// The spread of an object of `bytes` over `members` drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Size of the object, bytes.
    pub bytes: u64,
    /// Size of every chunk but the last, bytes.
    pub chunk_bytes: u32,
    /// Number of drives that hold chunks, at least 1.
    pub members: u16,
    /// Member of chunk 0, less than `members`.
    pub offset: u16,
}

/// Why a layout is impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The chunk size is not a power of two within the limits.
    ChunkBytes {
        /// What was asked for, bytes.
        chunk_bytes: u64,
        /// Largest that the drives allow, bytes.
        largest: u32,
    },
    /// The object would have more than 2^32 - 1 chunks.
    TooManyChunks {
        /// The object's size, bytes.
        bytes: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChunkBytes { chunk_bytes, largest } => write!(
                f,
                "a chunk of {chunk_bytes} bytes is not possible: it must be a power of two from \
                 {CHUNK_BYTES_MIN} to {largest} bytes"
            ),
            Self::TooManyChunks { bytes } => {
                write!(f, "an object of {bytes} bytes has too many chunks: use larger ones")
            }
        }
    }
}

impl std::error::Error for Error {}

/// The chunk size to use: `wanted`, or else 1 MiB or the largest power of two that a value of
/// `value_bytes_max` bytes has room for.
///
/// # Errors
/// [`Error::ChunkBytes`] when `wanted`, or what the drives allow, is outside the limits.
pub fn chunk_bytes(wanted: Option<u64>, value_bytes_max: u32) -> Result<u32, Error> {
    let fits = value_bytes_max.checked_ilog2().map_or(0, |bits| 1 << bits);
    let largest = CHUNK_BYTES_MAX.min(fits);
    let chunk_bytes = wanted.unwrap_or_else(|| CHUNK_BYTES.min(largest).into());
    match u32::try_from(chunk_bytes) {
        Ok(bytes) if bytes.is_power_of_two() && bytes >= CHUNK_BYTES_MIN && bytes <= largest => {
            Ok(bytes)
        }
        _ => Err(Error::ChunkBytes { chunk_bytes, largest }),
    }
}

impl Spread {
    /// Number of chunks.
    ///
    /// # Errors
    /// [`Error::TooManyChunks`] when the number leaves 32 bits.
    pub fn checked_chunks(&self) -> Result<u32, Error> {
        let chunks = self.bytes.div_ceil(self.chunk_bytes.into());
        u32::try_from(chunks).map_err(|_| Error::TooManyChunks { bytes: self.bytes })
    }

    /// Number of chunks of a layout that was checked before.
    ///
    /// # Panics
    /// When the number leaves 32 bits, which [`Spread::checked_chunks`] tells beforehand.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.checked_chunks().expect("layouts are checked when they are made or read")
    }

    /// Member that holds chunk `chunk`.
    #[must_use]
    pub fn member(&self, chunk: u32) -> usize {
        member(chunk, self.offset, self.members)
    }

    /// Length of chunk `chunk`, bytes.
    ///
    /// # Panics
    /// When there is no such chunk.
    #[must_use]
    pub fn chunk_len(&self, chunk: u32) -> u32 {
        assert!(chunk < self.chunks(), "chunk {chunk} of {}", self.chunks());
        let rest = self.bytes - u64::from(chunk) * u64::from(self.chunk_bytes);
        u32::try_from(rest.min(self.chunk_bytes.into())).expect("at most a chunk")
    }

    /// Lowest chunk number that `member` would hold.
    #[must_use]
    pub fn first(&self, member: usize) -> u32 {
        let members = usize::from(self.members);
        let first = (member + members - usize::from(self.offset)) % members;
        u32::try_from(first).expect("fewer than 2^16 members")
    }

    /// Number of chunks on `member`.
    #[must_use]
    pub fn count(&self, member: usize) -> u32 {
        self.chunks().saturating_sub(self.first(member)).div_ceil(self.members.into())
    }

    /// Number of the `local`-th chunk of `member`.
    #[must_use]
    pub fn chunk(&self, member: usize, local: u32) -> u32 {
        self.first(member) + local * u32::from(self.members)
    }

    /// Place of chunk `chunk` among the chunks of its member.
    #[must_use]
    pub fn local(&self, chunk: u32) -> u32 {
        chunk / u32::from(self.members)
    }

    /// Bytes in `count` chunks of `member` from the `local`-th on.
    #[must_use]
    pub fn range_bytes(&self, member: usize, local: u32, count: u32) -> u64 {
        if count == 0 {
            return 0;
        }
        let full = u64::from(count - 1) * u64::from(self.chunk_bytes);
        full + u64::from(self.chunk_len(self.chunk(member, local + count - 1)))
    }
}

/// Member of chunk `chunk` when chunk 0 is on member `offset` of `members`.
#[must_use]
pub fn member(chunk: u32, offset: u16, members: u16) -> usize {
    let member = (u64::from(chunk) + u64::from(offset)) % u64::from(members);
    usize::try_from(member).expect("fewer than 2^16 members")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spreads() -> impl Iterator<Item = Spread> {
        let sizes = [0, 1, 4095, 4096, 4097, 40_960, 123_456];
        (1..=5u16).flat_map(move |members| {
            (0..members).flat_map(move |offset| {
                sizes.map(|bytes| Spread { bytes, chunk_bytes: 4096, members, offset })
            })
        })
    }

    #[test]
    fn every_chunk_is_on_one_member_and_found_there_by_first_and_stride() {
        for spread in spreads() {
            let mut found = vec![0; spread.chunks() as usize];
            for member in 0..usize::from(spread.members) {
                for local in 0..spread.count(member) {
                    let chunk = spread.chunk(member, local);
                    assert_eq!(spread.member(chunk), member, "{spread:?} chunk {chunk}");
                    assert_eq!(spread.local(chunk), local, "{spread:?} chunk {chunk}");
                    found[chunk as usize] += 1;
                }
            }
            assert!(found.iter().all(|&times| times == 1), "{spread:?}: {found:?}");
        }
    }

    #[test]
    fn lengths_of_chunks_and_of_ranges_sum_to_the_object() {
        for spread in spreads() {
            let sum: u64 = (0..spread.chunks()).map(|c| u64::from(spread.chunk_len(c))).sum();
            assert_eq!(sum, spread.bytes, "{spread:?}");
            let members = 0..usize::from(spread.members);
            let ranges: u64 = members.map(|m| spread.range_bytes(m, 0, spread.count(m))).sum();
            assert_eq!(ranges, spread.bytes, "{spread:?}");
        }
    }

    #[test]
    fn counts_of_members_differ_by_at_most_one() {
        for spread in spreads() {
            let counts: Vec<_> =
                (0..usize::from(spread.members)).map(|m| spread.count(m)).collect();
            let (low, high) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(high - low <= 1, "{spread:?}: {counts:?}");
        }
    }

    #[test]
    fn chunk_sizes_are_powers_of_two_that_a_value_can_hold() {
        assert_eq!(chunk_bytes(None, 16 << 20), Ok(1 << 20));
        assert_eq!(chunk_bytes(None, 1_000_000), Ok(512 << 10));
        assert_eq!(chunk_bytes(Some(8 << 20), 16 << 20), Ok(8 << 20));
        for wrong in [0, 1, 2048, 4097, 16 << 20, 1 << 40] {
            assert!(chunk_bytes(Some(wrong), 16 << 20).is_err(), "{wrong}");
        }
        assert!(chunk_bytes(Some(2 << 20), 1 << 20).is_err());
        assert!(chunk_bytes(None, 100).is_err());
        assert!(chunk_bytes(None, 0).is_err());
    }

    #[test]
    fn more_than_32_bits_of_chunks_is_an_error() {
        let spread = Spread { bytes: u64::MAX, chunk_bytes: 4096, members: 1, offset: 0 };
        assert_eq!(spread.checked_chunks(), Err(Error::TooManyChunks { bytes: u64::MAX }));
    }
}
