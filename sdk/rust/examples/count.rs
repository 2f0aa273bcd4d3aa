//! Count: the number of `i32` in stream 0 that equal the parameter, an `i32`. The drive's built-in
//! `count` does the same, and is the baseline of this one.
#![no_std]

use core::arch::wasm32::{
    i32x4_add, i32x4_eq, i32x4_splat, i32x4_sub, u32x4_extract_lane, v128_load,
};

use csd_sdk::{Element, fail, parameters, whole, work};

csd_sdk::program!(run);

/// Vectors that are compared per turn, to spread the cost of the loop over them.
const VECTORS: usize = 16;

fn run() -> u64 {
    let mut room = [0; 8];
    let wanted = match parameters(&mut room) {
        bytes if bytes.len() == 4 => i32::read(bytes),
        _ => fail("the parameter is an i32"),
    };
    let mut found = 0;
    whole(0, 4, |bytes| {
        let (turns, rest) = bytes.as_chunks::<{ VECTORS * 16 }>();
        // A piece has fewer elements than 32 bits can count.
        let mut sums = [i32x4_splat(0); 4];
        for turn in turns {
            for at in 0..VECTORS {
                // SAFETY: the vector lies in the turn.
                let vector = unsafe { v128_load(turn.as_ptr().add(at * 16).cast()) };
                // A lane that is equal is -1.
                sums[at % 4] = i32x4_sub(sums[at % 4], i32x4_eq(vector, i32x4_splat(wanted)));
            }
        }
        let sum = i32x4_add(i32x4_add(sums[0], sums[1]), i32x4_add(sums[2], sums[3]));
        let lanes = [
            u32x4_extract_lane::<0>(sum),
            u32x4_extract_lane::<1>(sum),
            u32x4_extract_lane::<2>(sum),
            u32x4_extract_lane::<3>(sum),
        ];
        found += lanes.map(u64::from).iter().sum::<u64>();
        let equal =
            rest.as_chunks::<4>().0.iter().filter(|four| i32::from_le_bytes(**four) == wanted);
        found += equal.count() as u64;
        work(bytes.len() as u64 / 4);
    });
    found
}
