//! Histogram: how often every byte value is in stream 0, emitted as 256 `u64`; the result is the
//! number of bytes.
#![no_std]

use csd_sdk::{each, emit};

csd_sdk::program!(run);

fn run() -> u64 {
    // Four tables, so that equal neighbours do not wait for each other.
    let mut counts = [[0u64; 256]; 4];
    let mut all = 0;
    each(0, |bytes| {
        let (fours, rest) = bytes.as_chunks::<4>();
        for four in fours {
            for (table, byte) in counts.iter_mut().zip(four) {
                table[usize::from(*byte)] += 1;
            }
        }
        rest.iter().for_each(|byte| counts[0][usize::from(*byte)] += 1);
        all += bytes.len() as u64;
    });
    for value in 0..256 {
        emit(&counts.iter().map(|table| table[value]).sum::<u64>().to_le_bytes());
    }
    all
}
