//! Version for every processor: a loop that compilers vectorise to the target's baseline.

use super::Functions;

/// The functions of this version.
pub(super) const FUNCTIONS: Functions = Functions { narrow, wide };

pub(super) fn narrow(bytes: &[u8], mask: u32, bits: u32) -> u64 {
    // Inner counts of 32 bits keep the lanes as wide as the elements; a block is too short to
    // overflow one.
    let blocks = bytes.chunks(1 << 16);
    blocks.map(|block| u64::from(narrow_block(block, mask, bits))).sum()
}

fn narrow_block(block: &[u8], mask: u32, bits: u32) -> u32 {
    let elements = block.as_chunks::<4>().0.iter();
    elements.map(|element| u32::from(u32::from_le_bytes(*element) & mask == bits)).sum()
}

pub(super) fn wide(bytes: &[u8], mask: u64, bits: u64) -> u64 {
    let elements = bytes.as_chunks::<8>().0.iter();
    elements.map(|element| u64::from(u64::from_le_bytes(*element) & mask == bits)).sum()
}
