//! [`Marks`]: a set of keys of shared chunks, in bounded memory.
//!
//! A Bloom filter of one hash function (Bloom, "Space/time trade-offs in hash coding with allowable
//! errors", 1970): a key that was added is in the set; one that was not may seem to be. The next
//! set draws another salt, so that a key does not seem to be in every set. Keys are made from
//! hashes, so their bits are spread already. Does no I/O.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use csd_nvme::kv::Key;

/// Bits for each key that is expected: one key in 16 that was not added seems to be in the set.
const BITS_PER_KEY: u64 = 16;
/// Fewest bits.
const BITS_MIN: u64 = 1 << 16;

/// A set of keys.
#[derive(Debug)]
pub(crate) struct Marks {
    words: Vec<AtomicU64>,
    salt: u64,
}

impl Marks {
    /// Makes an empty set for about so many keys, of at most so many bytes.
    pub(crate) fn new(keys: u64, bytes_max: u64, salt: u64) -> Self {
        let most = (bytes_max.max(BITS_MIN / 8) * 8 + 1).next_power_of_two() / 2;
        let bits = (keys.saturating_mul(BITS_PER_KEY)).clamp(BITS_MIN, most).next_power_of_two();
        let words = usize::try_from(bits.min(most) / 64).expect("memory has them");
        // Odd, so that multiplying by it loses nothing.
        Self { words: (0..words).map(|_| AtomicU64::new(0)).collect(), salt: salt | 1 }
    }

    /// Adds a key.
    pub(crate) fn add(&self, key: &Key) {
        let (word, bit) = self.spot(key);
        self.words[word].fetch_or(bit, SeqCst);
    }

    /// Returns true if the key was added, or seems so.
    pub(crate) fn has(&self, key: &Key) -> bool {
        let (word, bit) = self.spot(key);
        self.words[word].load(SeqCst) & bit != 0
    }

    fn spot(&self, key: &Key) -> (usize, u64) {
        let (words, _) = key.padded().as_chunks::<8>();
        let [low, high] = [words[0], words[1]].map(u64::from_le_bytes);
        let other = self.salt.rotate_left(32) | 1;
        let folded = low.wrapping_mul(self.salt).wrapping_add(high.wrapping_mul(other));
        // The highest bits depend on all others.
        let bit = folded >> (64 - (self.words.len() as u64 * 64).ilog2());
        ((bit / 64) as usize, 1 << (bit % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        let mut bits = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Key::new(&[bits.to_le_bytes(), (bits ^ number).to_le_bytes()].concat()).unwrap()
    }

    #[test]
    fn what_was_added_is_there_and_of_the_rest_little_and_not_always_the_same() {
        const KEYS: u64 = 10_000;
        let seeming = |salt: u64, bytes_max: u64| {
            let marks = Marks::new(KEYS, bytes_max, salt);
            assert!(marks.words.len() as u64 * 8 <= bytes_max);
            (0..KEYS).for_each(|number| marks.add(&key(number)));
            assert!((0..KEYS).all(|number| marks.has(&key(number))));
            (KEYS..2 * KEYS).filter(|number| marks.has(&key(*number))).collect::<Vec<u64>>()
        };
        let (one, other) = (seeming(12_345, 1 << 20), seeming(987_654_321, 1 << 20));
        for seen in [&one, &other] {
            assert!((1..KEYS / 10).contains(&(seen.len() as u64)), "{}", seen.len());
        }
        let both = one.iter().filter(|number| other.contains(number)).count();
        assert!(both * 4 < one.len(), "{both} of {}", one.len());
        assert!((seeming(1, 8 << 10).len() as u64) < KEYS, "with an eighth of the memory");
    }
}
