//! Space that an object takes on its drives.

use super::record_bytes;
use crate::catalogue::{Entry, Placement};
use crate::extent::UNIT_BYTES;

/// Returns the bytes that the chunks and the parity of an object take: values with their headers,
/// and whole units of blocks. Parity that is missing is not counted.
#[must_use]
pub fn of_object(entry: &Entry) -> u64 {
    let chunks = match &entry.placement {
        Placement::Kv => {
            let layout = entry.layout();
            (0..layout.chunks()).map(|chunk| record_bytes(layout.chunk_len(chunk).into())).sum()
        }
        Placement::Block(extents) => {
            let units = extents.iter().flatten().map(|(_, count)| u64::from(*count));
            units.sum::<u64>() * UNIT_BYTES
        }
    };
    chunks + parity(entry)
}

fn parity(entry: &Entry) -> u64 {
    let (Some((protection, parity)), Some(stripes)) = (entry.protected(), entry.stripes()) else {
        return 0;
    };
    let scheme = protection.scheme;
    let of_stripe = |stripe| {
        let pieces = stripes.pieces(stripe).filter(|piece| *piece >= scheme.data());
        let stored = pieces.filter(|piece| !parity.missing.has(scheme, stripe, *piece)).count();
        stored as u64 * record_bytes(stripes.parity_bytes(stripe).into())
    };
    (0..stripes.count()).map(of_stripe).sum()
}
