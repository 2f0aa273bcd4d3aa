//! Layouts: the location of each chunk of an object, as arithmetic.
//!
//! Layout `spread` distributes single chunks ([`Spread`]); the others distribute parts: whole
//! ranges of values, or whole rows ([`Parts`]). [`Stripes`] adds parity. Performs no I/O, and knows
//! only the number of drives. Invariants: every chunk has exactly one member; chunks are numbered
//! in the object's order.

mod parts;
mod scheme;
mod spread;
mod stripes;

use std::ops::Range;

pub use parts::{Kind, Part, Parts};
pub use scheme::{NoScheme, Scheme};
pub use spread::{Spread, member};
pub use stripes::{Dealer, Stripes, stripes, width};

/// Most dimensions of a shape.
pub const DIMENSIONS_MAX: usize = 32;
/// Size of a unit of a block namespace, bytes.
pub const UNIT_BYTES: u64 = 8 << 20;
/// Default chunk size, bytes.
pub const CHUNK_BYTES: u32 = 1 << 20;
/// Smallest chunk of a put, bytes: a block, so that a chunk on a block namespace is whole blocks.
pub const CHUNK_BYTES_MIN: u32 = 4096;
/// Smallest chunk that is a value, bytes: whole elements of every type.
pub const CHUNK_BYTES_VALUE_MIN: u32 = 16;
/// Largest chunk, bytes: a unit of the block allocator, so that no chunk crosses one.
pub const CHUNK_BYTES_MAX: u32 = 8 << 20;

/// Reason why a layout is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The chunk size is not a power of two within the limits.
    #[error(
        "a chunk of {chunk_bytes} bytes is not possible: it must be a power of two from \
         {CHUNK_BYTES_MIN} to {largest} bytes"
    )]
    ChunkBytes {
        /// Chunk size asked for, bytes.
        chunk_bytes: u64,
        /// Largest chunk size that the drives allow, bytes.
        largest: u32,
    },
    /// The object would have more than 2^32 - 1 chunks.
    #[error("an object of {bytes} bytes has too many chunks: use larger ones")]
    TooManyChunks {
        /// The object's size, bytes.
        bytes: u64,
    },
}

/// Returns the chunk size to use: `wanted`, or else 1 MiB or the largest power of two that fits
/// into a value of `value_bytes_max` bytes.
///
/// # Errors
/// [`Error::ChunkBytes`] when `wanted`, or the largest value of the drives, is outside the limits.
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

/// Layout of the chunks of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Single chunks, round-robin.
    Spread(Spread),
    /// Parts, round-robin.
    Parts(Parts),
}

/// Chunks of one member that follow one another without a gap in a stream; one source of an
/// execution can name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Indices among the member's chunks.
    pub locals: Range<u32>,
    /// First chunk, in the object's order.
    pub first: u32,
    /// Number in the key of the first chunk.
    pub number: u32,
    /// Distance between consecutive chunks, and between their numbers.
    pub stride: u32,
    /// Part that they form, if the layout has parts.
    pub part: Option<usize>,
}

macro_rules! either {
    ($self:ident, $layout:ident => $answer:expr) => {
        match $self {
            Self::Spread($layout) => $answer,
            Self::Parts($layout) => $answer,
        }
    };
}

impl Layout {
    /// Returns the number of chunks.
    ///
    /// # Panics
    /// When the number exceeds 32 bits, which is checked when layouts are made or read.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        either!(self, layout => layout.chunks())
    }

    /// Returns the member that holds chunk `chunk`.
    #[must_use]
    pub fn member(&self, chunk: u32) -> usize {
        either!(self, layout => layout.member(chunk))
    }

    /// Returns the length of chunk `chunk`, bytes.
    ///
    /// # Panics
    /// When there is no such chunk.
    #[must_use]
    pub fn chunk_len(&self, chunk: u32) -> u32 {
        either!(self, layout => layout.chunk_len(chunk))
    }

    /// Returns the number of chunks on `member`.
    #[must_use]
    pub fn count(&self, member: usize) -> u32 {
        either!(self, layout => layout.count(member))
    }

    /// Returns the number of the `local`-th chunk of `member`.
    #[must_use]
    pub fn chunk(&self, member: usize, local: u32) -> u32 {
        either!(self, layout => layout.chunk(member, local))
    }

    /// Returns the number in the key of chunk `chunk`.
    #[must_use]
    pub fn number(&self, chunk: u32) -> u32 {
        match self {
            Self::Spread(_) => chunk,
            Self::Parts(parts) => parts.number(chunk),
        }
    }

    /// Returns the object's bytes that chunk `chunk` holds.
    ///
    /// # Panics
    /// When there is no such chunk.
    #[must_use]
    pub fn bytes_of(&self, chunk: u32) -> Range<u64> {
        let begin = match self {
            Self::Spread(spread) => u64::from(chunk) * u64::from(spread.chunk_bytes),
            Self::Parts(parts) => parts.begin(chunk),
        };
        begin..begin + u64::from(self.chunk_len(chunk))
    }

    /// Returns the chunk that holds the object's byte `byte`, and the first byte of that chunk.
    ///
    /// # Panics
    /// When the object is not that long.
    #[must_use]
    pub fn chunk_at(&self, byte: u64) -> (u32, u64) {
        either!(self, layout => layout.chunk_at(byte))
    }

    /// Returns the index of chunk `chunk` among the chunks of its member.
    #[must_use]
    pub fn local(&self, chunk: u32) -> u32 {
        either!(self, layout => layout.local(chunk))
    }

    /// Returns the chunks of `member`, in order, as runs; none is empty.
    #[must_use]
    pub fn runs(&self, member: usize) -> Vec<Run> {
        either!(self, layout => layout.runs(member))
    }

    /// Returns the size of `count` chunks of `member` from the `local`-th on, all of one run,
    /// bytes.
    #[must_use]
    pub fn range_bytes(&self, member: usize, local: u32, count: u32) -> u64 {
        either!(self, layout => layout.range_bytes(member, local, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
