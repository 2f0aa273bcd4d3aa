//! Histogram: emits the count of every byte value in stream 0 as 256 `u64`; the result is the
//! number of bytes. The fold adds the counts of two answers.
#![no_std]

use csd_sdk::{each, emit, fail, part};

csd_sdk::program!(run);
csd_sdk::fold!(fold);

const TABLE_BYTES: usize = 256 * 8;

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

fn fold() -> u64 {
    let (mut before, mut after) = ([0; TABLE_BYTES], [0; TABLE_BYTES]);
    let (before, after) = (part(0, &mut before), part(1, &mut after));
    if before.output.len() != TABLE_BYTES || after.output.len() != TABLE_BYTES {
        fail("this is no histogram");
    }
    let tables = [before.output, after.output].map(|table| table.as_chunks::<8>().0);
    for (one, other) in tables[0].iter().zip(tables[1]) {
        emit(&(u64::from_le_bytes(*one) + u64::from_le_bytes(*other)).to_le_bytes());
    }
    before.result + after.result
}
