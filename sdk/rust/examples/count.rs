//! Count: how many `i32` of stream 0 equal the parameter, an `i32`. The drive's own `count` does the
//! same; this one is measured beside it.
#![no_std]

use csd_sdk::{Element, fail, parameters, whole, work};

csd_sdk::program!(run);

fn run() -> u64 {
    let mut room = [0; 8];
    let wanted = match parameters(&mut room) {
        bytes if bytes.len() == 4 => i32::read(bytes),
        _ => fail("the parameter is an i32"),
    };
    let mut found = 0;
    whole(0, 4, |bytes| {
        // Sums of few elements fit 32 bits, and 32-bit sums fill vectors.
        for part in bytes.chunks(1 << 16) {
            let equal = part.as_chunks::<4>().0.iter();
            let sum: u32 = equal.map(|four| u32::from(i32::from_le_bytes(*four) == wanted)).sum();
            found += u64::from(sum);
        }
        work(bytes.len() as u64 / 4);
    });
    found
}
