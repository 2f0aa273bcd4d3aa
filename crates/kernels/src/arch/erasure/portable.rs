//! Portable version: two look-ups a byte, in the tables that shuffles use.
#![allow(unsafe_code)]

use super::tables::Nibbles;
use super::work::Work;

/// Does a pass.
///
/// # Safety
/// As [`Work`] says.
pub(super) unsafe fn run(work: &Work<'_>) {
    for (row, output) in work.outputs.iter().enumerate() {
        // SAFETY: the caller guarantees that these bytes are there and belong to this output alone.
        let output = unsafe { std::slice::from_raw_parts_mut(*output, work.bytes) };
        if !work.is_added {
            output.fill(0);
        }
        for (column, source) in work.sources.iter().enumerate() {
            // SAFETY: the caller guarantees that these bytes are there.
            let source = unsafe { std::slice::from_raw_parts(*source, work.bytes) };
            let Nibbles(table) =
                &work.tables.nibbles[work.first + column * work.tables.rows() + row];
            for (sum, byte) in output.iter_mut().zip(source) {
                *sum ^= table[usize::from(byte & 15)] ^ table[16 + usize::from(byte >> 4)];
            }
        }
    }
}
