//! Digests of page checksums that are computed in parts, in any order and on any machine.
//!
//! The digest of a whole is the CRC-32C of all its checksums, little-endian and in order. A part
//! digests its own checksums ([`Digest`]), with zeros in place of those of other parts
//! ([`Spacing`]). Because the CRC is linear, the parts' digests, shifted to their places, add up to
//! the whole's ([`Whole`]). Invariant: the whole's digest does not depend on the division into
//! parts.

use super::{NAME, Version};
use crate::numeric::{Malformed, PARAMETER_BYTES};

/// The polynomial, reflected.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// Bytes of a checksum.
const CHECKSUM_BYTES: u64 = 4;

/// Positions of a part's checksums among those of the whole: `every` of them, then a gap.
///
/// | bytes | meaning |
/// |---|---|
/// | 0..4 | checksums between two gaps; 0 without gaps |
/// | 4..8 | reserved, 0 |
/// | 8..16 | checksums of others in a gap |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spacing {
    /// Number of checksums between two gaps; 0 without gaps.
    pub every: u32,
    /// Number of other parts' checksums in a gap.
    pub gap: u64,
}

impl Spacing {
    /// Encodes the spacing.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut data = self.every.to_le_bytes().to_vec();
        data.extend_from_slice(&[0; 4]);
        data.extend_from_slice(&self.gap.to_le_bytes());
        data
    }

    /// Returns the number of checksums of others in the gaps after the first `checksums`.
    pub(super) fn gaps(&self, checksums: u64) -> u64 {
        checksums.checked_div(self.every.into()).map_or(0, |gaps| gaps * self.gap)
    }

    /// Returns the number of checksums from the first to the last of `checksums`, gaps included.
    pub(super) fn span(&self, checksums: u64) -> u64 {
        checksums + self.gaps(checksums.saturating_sub(1))
    }

    /// Parses a spacing.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let malformed = |reason| Malformed { kernel: NAME, reason };
        let data: &[u8; PARAMETER_BYTES] =
            data.try_into().map_err(|_| malformed("the spacing has not 16 bytes"))?;
        let [e0, e1, e2, e3, r0, r1, r2, r3, gap @ ..] = *data;
        let (every, gap) = (u32::from_le_bytes([e0, e1, e2, e3]), u64::from_le_bytes(gap));
        if [r0, r1, r2, r3] != [0; 4] {
            return Err(malformed("reserved bytes are not zero"));
        }
        if every == 0 && gap != 0 {
            return Err(malformed("a gap without a distance between gaps"));
        }
        Ok(Self { every, gap })
    }
}

/// Digest of a part in progress.
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    spacing: Spacing,
    /// Factor by which a gap multiplies the state.
    over_gap: u32,
    state: u32,
    since_gap: usize,
    span: u64,
}

impl Digest {
    /// Starts a digest.
    #[must_use]
    pub fn new(spacing: Spacing) -> Self {
        let over_gap = power(spacing.gap.saturating_mul(CHECKSUM_BYTES));
        Self { spacing, over_gap, state: !0, since_gap: 0, span: 0 }
    }

    /// Takes the next checksums.
    pub fn push(&mut self, checksums: &[u32]) {
        let every = usize::try_from(self.spacing.every).expect("32 bits");
        let mut rest = checksums;
        while !rest.is_empty() {
            if every != 0 && self.since_gap == every {
                self.state = multiply(self.over_gap, self.state);
                self.span += self.spacing.gap;
                self.since_gap = 0;
            }
            let until_gap = if every == 0 { rest.len() } else { every - self.since_gap };
            let (now, later) = rest.split_at(rest.len().min(until_gap));
            self.state = add(crate::arch::verify::best(), self.state, now);
            self.since_gap += now.len();
            self.span += now.len() as u64;
            rest = later;
        }
    }

    /// Returns the digest so far.
    #[must_use]
    pub fn value(&self) -> u32 {
        !self.state
    }

    /// Returns the number of checksums from the first to the last, with the gaps between.
    #[must_use]
    pub fn span(&self) -> u64 {
        self.span
    }
}

/// Digest of a whole, computed from those of its parts in any order.
#[derive(Clone, Copy, Debug)]
pub struct Whole {
    checksums: u64,
    linear: u32,
}

impl Whole {
    /// Starts the digest of a whole of this many checksums.
    #[must_use]
    pub fn new(checksums: u64) -> Self {
        Self { checksums, linear: 0 }
    }

    /// Adds the digest of a part that spans `span` checksums from the `first` on.
    ///
    /// # Panics
    /// When the part ends beyond the whole.
    pub fn add(&mut self, first: u64, span: u64, digest: u32) {
        let behind = self.checksums.checked_sub(first + span).expect("a part of the whole");
        let linear = digest ^ of_zeros(span);
        self.linear ^= multiply(power(behind * CHECKSUM_BYTES), linear);
    }

    /// Returns the sum of the parts added so far, for [`join`](Self::join) of the same whole
    /// elsewhere.
    #[must_use]
    pub fn linear(&self) -> u32 {
        self.linear
    }

    /// Adds a sum of parts of the same whole from elsewhere.
    pub fn join(&mut self, linear: u32) {
        self.linear ^= linear;
    }

    /// Returns the whole's digest.
    #[must_use]
    pub fn value(&self) -> u32 {
        self.linear ^ of_zeros(self.checksums)
    }
}

/// Returns the state of a digest after more checksums.
pub(super) fn add(version: Version, mut state: u32, checksums: &[u32]) -> u32 {
    // One call takes many checksums: a call for each costs a tenth of a page of 4 KiB.
    let mut bytes = [0; 256];
    for some in checksums.chunks(bytes.len() / 4) {
        for (to, checksum) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(some) {
            *to = checksum.to_le_bytes();
        }
        state = version.run.update(state, &bytes[..4 * some.len()]);
    }
    state
}

/// Returns the CRC of that many zero checksums.
fn of_zeros(checksums: u64) -> u32 {
    !multiply(power(checksums.saturating_mul(CHECKSUM_BYTES)), !0)
}

/// Returns the product of two polynomials modulo the CRC's; bit 31 is the coefficient of 1.
fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        if a >> bit & 1 != 0 {
            product ^= b;
        }
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
    }
    product
}

/// Returns the factor by which that many zero bytes multiply a state.
fn power(mut bytes: u64) -> u32 {
    let (mut result, mut square) = (1 << 31, 1 << 23);
    while bytes != 0 {
        if bytes & 1 != 0 {
            result = multiply(result, square);
        }
        square = multiply(square, square);
        bytes >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksums(count: u32) -> Vec<u32> {
        (0..count).map(|i| i.wrapping_mul(0x9E37_79B9) ^ 0x5A5A).collect()
    }

    fn direct(checksums: &[u32]) -> u32 {
        let bytes: Vec<u8> = checksums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        crc32c::crc32c(&bytes)
    }

    #[test]
    fn a_part_with_gaps_is_the_crc_of_zeros_in_the_gaps() {
        let sums = checksums(7);
        let mut digest = Digest::new(Spacing { every: 3, gap: 5 });
        digest.push(&sums[..2]);
        digest.push(&sums[2..]);
        let zeros = [0; 5];
        let spread = [&sums[..3], &zeros, &sums[3..6], &zeros, &sums[6..]].concat();
        assert_eq!((digest.value(), digest.span()), (direct(&spread), 17));
        let mut plain = Digest::new(Spacing::default());
        plain.push(&sums);
        assert_eq!((plain.value(), plain.span()), (direct(&sums), 7));
    }

    #[test]
    fn parts_in_any_order_give_the_whole() {
        let sums = checksums(1003);
        for (members, every) in [(1usize, 4u32), (3, 8), (4, 256)] {
            let mut whole = Whole::new(sums.len() as u64);
            for member in (0..members).rev() {
                let gap = u64::from(every) * (members as u64 - 1);
                let mut digest = Digest::new(Spacing { every, gap });
                let chunks = sums.chunks(every as usize).skip(member).step_by(members);
                chunks.for_each(|chunk| digest.push(chunk));
                whole.add(u64::from(every) * member as u64, digest.span(), digest.value());
            }
            assert_eq!(whole.value(), direct(&sums), "{members} members");
        }
        assert_eq!(Whole::new(0).value(), direct(&[]));
    }

    #[test]
    fn a_spacing_has_these_bytes_and_wrong_ones_are_named() {
        let spacing = Spacing { every: 256, gap: 768 };
        let good = [0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0];
        assert_eq!((spacing.encode(), Spacing::parse(&good)), (good.to_vec(), Ok(spacing)));
        let with = |index: usize, byte: u8| {
            let mut data = good;
            data[index] = byte;
            Spacing::parse(&data).map_err(|malformed| malformed.reason)
        };
        assert_eq!(with(4, 1), Err("reserved bytes are not zero"));
        assert_eq!(with(1, 0), Err("a gap without a distance between gaps"));
        assert!(Spacing::parse(&good[1..]).is_err());
    }
}
