//! The `spread` layout: chunk `i` is on member `(i + offset) mod members`.
//!
//! Invariants: the chunks of a member, in order, are `first, first + members, first + 2 * members,
//! ...`; every chunk but the last is full, and holds whole elements because a chunk's size is a
//! power of two of at least [`CHUNK_BYTES_VALUE_MIN`](super::CHUNK_BYTES_VALUE_MIN) bytes.

use super::{Error, Run};

/// Spread layout of an object of `bytes` over `members` drives.
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

impl Spread {
    /// Returns the number of chunks.
    ///
    /// # Errors
    /// [`Error::TooManyChunks`] when the number exceeds 32 bits.
    pub fn checked_chunks(&self) -> Result<u32, Error> {
        let chunks = self.bytes.div_ceil(self.chunk_bytes.into());
        u32::try_from(chunks).map_err(|_| Error::TooManyChunks { bytes: self.bytes })
    }

    /// Returns the number of chunks of a layout that was checked before.
    ///
    /// # Panics
    /// When the number exceeds 32 bits, which [`Spread::checked_chunks`] reports as an error.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.checked_chunks().expect("layouts are checked when they are made or read")
    }

    /// Returns the member that holds chunk `chunk`.
    #[must_use]
    pub fn member(&self, chunk: u32) -> usize {
        member(chunk, self.offset, self.members)
    }

    /// Returns the length of chunk `chunk`, bytes.
    ///
    /// # Panics
    /// When there is no such chunk.
    #[must_use]
    pub fn chunk_len(&self, chunk: u32) -> u32 {
        assert!(chunk < self.chunks(), "chunk {chunk} of {}", self.chunks());
        let rest = self.bytes - u64::from(chunk) * u64::from(self.chunk_bytes);
        u32::try_from(rest.min(self.chunk_bytes.into())).expect("at most a chunk")
    }

    /// Returns the chunk that holds byte `byte`, and the first byte of that chunk.
    pub(super) fn chunk_at(&self, byte: u64) -> (u32, u64) {
        assert!(byte < self.bytes, "byte {byte} of {}", self.bytes);
        let number = byte / u64::from(self.chunk_bytes);
        let chunk = u32::try_from(number).expect("the number of chunks is checked");
        (chunk, number * u64::from(self.chunk_bytes))
    }

    /// Returns the lowest chunk number that `member` would hold.
    #[must_use]
    pub fn first(&self, member: usize) -> u32 {
        let members = usize::from(self.members);
        let first = (member + members - usize::from(self.offset)) % members;
        u32::try_from(first).expect("fewer than 2^16 members")
    }

    /// Returns the number of chunks on `member`.
    #[must_use]
    pub fn count(&self, member: usize) -> u32 {
        self.chunks().saturating_sub(self.first(member)).div_ceil(self.members.into())
    }

    /// Returns the number of the `local`-th chunk of `member`.
    #[must_use]
    pub fn chunk(&self, member: usize, local: u32) -> u32 {
        self.first(member) + local * u32::from(self.members)
    }

    /// Returns the index of chunk `chunk` among the chunks of its member.
    #[must_use]
    pub fn local(&self, chunk: u32) -> u32 {
        chunk / u32::from(self.members)
    }

    /// Returns the size of `count` chunks of `member` from the `local`-th on, bytes.
    #[must_use]
    pub fn range_bytes(&self, member: usize, local: u32, count: u32) -> u64 {
        if count == 0 {
            return 0;
        }
        let full = u64::from(count - 1) * u64::from(self.chunk_bytes);
        full + u64::from(self.chunk_len(self.chunk(member, local + count - 1)))
    }

    /// Returns the chunks of `member` as one run.
    pub(super) fn runs(&self, member: usize) -> Vec<Run> {
        let locals = 0..self.count(member);
        let first = self.first(member);
        let run = Run { locals, first, number: first, stride: self.members.into(), part: None };
        if run.locals.is_empty() { Vec::new() } else { vec![run] }
    }
}

/// Returns the member of chunk `chunk` when chunk 0 is on member `offset` of `members`.
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
    fn more_than_32_bits_of_chunks_is_an_error() {
        let spread = Spread { bytes: u64::MAX, chunk_bytes: 4096, members: 1, offset: 0 };
        assert_eq!(spread.checked_chunks(), Err(Error::TooManyChunks { bytes: u64::MAX }));
    }
}
