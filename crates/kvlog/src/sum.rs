//! [`checksum`]: the CRC-32C of bytes that may be long.
//!
//! The sum of a longest value takes more than a millisecond of a core, so it yields to other tasks
//! regularly.

use csd_reactor::{worked, yield_now};

/// Bytes that are summed between two yields.
const TURN_BYTES: usize = 128 << 10;

/// Returns the CRC-32C of all pieces together.
pub(crate) async fn checksum(pieces: impl Iterator<Item = &[u8]>) -> u32 {
    let (mut crc, mut summed) = (0, 0);
    for part in pieces.flat_map(|piece| piece.chunks(TURN_BYTES)) {
        if summed > 0 && summed + part.len() > TURN_BYTES {
            yield_now().await;
            summed = 0;
        }
        crc = crc32c::crc32c_append(crc, part);
        summed += part.len();
        worked(part.len() as u64);
    }
    crc
}
