//! NEON: 16 bytes a vector, two table look-ups a product.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::tables::{Nibbles, Tables};
use super::work::run;

run!("neon", 16, 1 => 4, 2 => 4, 3 => 4, 4 => 2, 5 => 2, 6 => 2, 7 => 2, 8 => 2);

fn tables(tables: &Tables) -> *const Nibbles {
    tables.nibbles.as_ptr()
}

#[inline]
#[target_feature(enable = "neon")]
fn zero() -> uint8x16_t {
    vdupq_n_u8(0)
}

#[inline]
#[target_feature(enable = "neon")]
unsafe fn load(from: *const u8) -> uint8x16_t {
    // SAFETY: the caller guarantees 16 bytes.
    unsafe { vld1q_u8(from) }
}

#[inline]
#[target_feature(enable = "neon")]
unsafe fn store(to: *mut u8, vector: uint8x16_t) {
    // SAFETY: the caller guarantees 16 bytes.
    unsafe { vst1q_u8(to, vector) }
}

/// Returns the low and the high halves of the bytes.
#[inline]
#[target_feature(enable = "neon")]
fn split(vector: uint8x16_t) -> [uint8x16_t; 2] {
    [vandq_u8(vector, vdupq_n_u8(15)), vshrq_n_u8::<4>(vector)]
}

#[inline]
#[target_feature(enable = "neon")]
unsafe fn table(nibbles: *const Nibbles) -> [uint8x16_t; 2] {
    let half: *const u8 = nibbles.cast();
    // SAFETY: the caller guarantees 32 bytes.
    unsafe { [vld1q_u8(half), vld1q_u8(half.add(16))] }
}

#[inline]
#[target_feature(enable = "neon")]
fn add(sum: uint8x16_t, vector: [uint8x16_t; 2], table: [uint8x16_t; 2]) -> uint8x16_t {
    let low = vqtbl1q_u8(table[0], vector[0]);
    let high = vqtbl1q_u8(table[1], vector[1]);
    veorq_u8(sum, veorq_u8(low, high))
}
