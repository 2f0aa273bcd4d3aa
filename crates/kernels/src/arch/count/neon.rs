//! NEON: 16 bytes per load, four loads per turn; equal lanes (-1) are subtracted from lane
//! counters.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::{Functions, portable};

/// Bytes of one turn.
const TURN: usize = 64;
/// Bytes after which the 32-bit counters are added up. A lane counts at most a 16th of the elements
/// in them, so it cannot overflow.
const BLOCK: usize = 1 << 30;

/// The functions of this version.
pub(super) const FUNCTIONS: Functions = Functions { narrow, wide };

fn narrow(bytes: &[u8], mask: u32, bits: u32) -> u64 {
    // SAFETY: this version is only offered where NEON was detected.
    bytes.chunks(BLOCK).map(|block| unsafe { narrow_block(block, mask, bits) }).sum()
}

fn wide(bytes: &[u8], mask: u64, bits: u64) -> u64 {
    // SAFETY: this version is only offered where NEON was detected.
    unsafe { wide_all(bytes, mask, bits) }
}

#[target_feature(enable = "neon")]
fn narrow_block(bytes: &[u8], mask: u32, bits: u32) -> u64 {
    let (masks, wanted) = (vdupq_n_u32(mask), vdupq_n_u32(bits));
    let mut counts = [vdupq_n_u32(0); 4];
    let (turns, tail) = bytes.as_chunks::<TURN>();
    for turn in turns {
        for (count, vector) in counts.iter_mut().zip(load(turn)) {
            let equal = vceqq_u32(vandq_u32(vreinterpretq_u32_u8(vector), masks), wanted);
            *count = vsubq_u32(*count, equal);
        }
    }
    counts.into_iter().map(|count| vaddlvq_u32(count)).sum::<u64>()
        + portable::narrow(tail, mask, bits)
}

#[target_feature(enable = "neon")]
fn wide_all(bytes: &[u8], mask: u64, bits: u64) -> u64 {
    let (masks, wanted) = (vdupq_n_u64(mask), vdupq_n_u64(bits));
    let mut counts = [vdupq_n_u64(0); 4];
    let (turns, tail) = bytes.as_chunks::<TURN>();
    for turn in turns {
        for (count, vector) in counts.iter_mut().zip(load(turn)) {
            let equal = vceqq_u64(vandq_u64(vreinterpretq_u64_u8(vector), masks), wanted);
            *count = vsubq_u64(*count, equal);
        }
    }
    counts.into_iter().map(|count| vaddvq_u64(count)).sum::<u64>()
        + portable::wide(tail, mask, bits)
}

#[target_feature(enable = "neon")]
fn load(turn: &[u8; TURN]) -> [uint8x16_t; 4] {
    let at = |index: usize| turn[index * 16..].as_ptr();
    // SAFETY: index 0 to 3, so all 16 bytes lie in the turn; the load needs no alignment.
    unsafe { [vld1q_u8(at(0)), vld1q_u8(at(1)), vld1q_u8(at(2)), vld1q_u8(at(3))] }
}
