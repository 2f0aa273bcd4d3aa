//! The permutation of keys that the hashed index sorts by.
//!
//! Four rounds of a Feistel network (Luby and Rackoff, "How to construct pseudorandom permutations
//! from pseudorandom functions", 1988) mix the sixteen bytes of a zero-padded key, so that keys
//! spread evenly over partitions, and every key can be computed back. The round function is no
//! cipher: hosts that choose their keys on purpose can fill one partition. Invariant: the
//! permutation never changes, because the order of List depends on it.

/// Constants of the rounds: multiples of 2^64 divided by the golden ratio.
const ROUNDS: [u64; 4] =
    [0x9E37_79B9_7F4A_7C15, 0x3C6E_F372_FE94_F82A, 0xDAA6_6D2C_7DDF_743F, 0x78DD_E6E5_FD29_F054];

/// Mixes 64 bits: the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
const fn mix(value: u64, round: u64) -> u64 {
    let mut mixed = value.wrapping_add(round);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Returns the permuted value of a zero-padded key.
pub(super) fn permute(key: &[u8; 16]) -> u128 {
    let (mut left, mut right) = halves(u128::from_be_bytes(*key));
    for round in ROUNDS {
        (left, right) = (right, left ^ mix(right, round));
    }
    u128::from(left) << 64 | u128::from(right)
}

/// Returns the zero-padded key of a permuted value.
pub(super) fn inverse(permuted: u128) -> [u8; 16] {
    let (mut left, mut right) = halves(permuted);
    for round in ROUNDS.into_iter().rev() {
        (left, right) = (right ^ mix(left, round), left);
    }
    (u128::from(left) << 64 | u128::from(right)).to_be_bytes()
}

#[allow(clippy::cast_possible_truncation)] // the halves
fn halves(whole: u128) -> (u64, u64) {
    ((whole >> 64) as u64, whole as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_returns_every_key() {
        for number in 0..100_000u128 {
            for key in [number, number << 64, number << 113, !number, number * 0x1_0001_0000_0001] {
                let key = key.to_be_bytes();
                assert_eq!(inverse(permute(&key)), key);
            }
        }
    }

    /// The order of List over restarts and versions depends on these values.
    #[test]
    fn the_permutation_never_changes() {
        let of = |key: &[u8]| {
            let mut padded = [0; 16];
            padded[..key.len()].copy_from_slice(key);
            permute(&padded)
        };
        assert_eq!(of(b""), 0x96B6_979E_E294_8716_7AFF_03F1_D356_900D);
        assert_eq!(of(b"a"), 0x4996_89D1_CEC8_E0E9_C22D_EB90_49F5_D5DE);
        assert_eq!(of(b"0123456789abcdef"), 0x7E90_D886_21E8_395F_FF81_869D_4491_5777);
    }

    #[test]
    fn one_bit_of_a_key_changes_half_of_the_bits() {
        let mut changed = 0;
        for bit in 0..128 {
            changed += (permute(&(1u128 << bit).to_be_bytes()) ^ permute(&[0; 16])).count_ones();
        }
        let mean = changed / 128;
        assert!((56..=72).contains(&mean), "{mean} of 128 bits change");
    }
}
