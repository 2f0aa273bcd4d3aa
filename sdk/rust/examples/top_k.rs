//! Top k: emits the k largest `f32` of stream 0, largest first; the parameter is k, a `u32`, at
//! most 1024. The result is how many there are. NaN is no number and left out.
#![no_std]

use csd_sdk::{Element, elements, emit, fail, parameters};

csd_sdk::program!(run);

const MOST: usize = 1024;

fn run() -> u64 {
    let mut room = [0; 8];
    let wanted = match parameters(&mut room) {
        bytes if bytes.len() == 4 => u32::read(bytes) as usize,
        _ => fail("the parameter is a u32"),
    };
    if wanted == 0 || wanted > MOST {
        fail("k is 1 to 1024");
    }
    // Falling; those of equal size in the order in which they came.
    let mut best = [0f32; MOST];
    let mut count = 0;
    elements(0, |value: f32| {
        if value.is_nan() || (count == wanted && value <= best[count - 1]) {
            return;
        }
        let at = best[..count].partition_point(|other| *other >= value);
        count = wanted.min(count + 1);
        best.copy_within(at..count - 1, at + 1);
        best[at] = value;
    });
    best[..count].iter().for_each(|value| emit(&value.to_le_bytes()));
    count as u64
}
