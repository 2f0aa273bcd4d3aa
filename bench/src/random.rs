//! Pseudo-random numbers and bytes, the same ones in every run.

use csd_kernels::kernel::mix;

/// Returns an endless sequence of numbers; sequences of other seeds differ.
pub fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = mix(seed) | 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

/// Returns bytes that do not compress.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (word, number) in bytes.chunks_mut(8).zip(numbers(seed)) {
        word.copy_from_slice(&number.to_le_bytes()[..word.len()]);
    }
    bytes
}

/// Brings items in a random order, the same one each time.
pub fn shuffle<T>(items: &mut [T]) {
    for (index, number) in (1..items.len()).rev().zip(numbers(0)) {
        items.swap(index, usize::try_from(number % (index as u64 + 1)).unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_order_has_every_item_once() {
        let items: Vec<u8> = (0..100).collect();
        let mut mixed = items.clone();
        shuffle(&mut mixed);
        assert_ne!(mixed, items);
        mixed.sort_unstable();
        assert_eq!(mixed, items);
        shuffle::<u8>(&mut []);
    }

    #[test]
    fn bytes_have_the_length_that_is_asked_for_and_begin_alike() {
        let long = bytes(21, 1);
        assert_eq!((long.len(), &long[..13]), (21, &bytes(13, 1)[..]));
        assert_ne!(long, bytes(21, 2));
    }
}
