//! [`ProtectionError`]: reason why an object cannot be protected, or what its protection does not
//! cover.

use std::ops::Range;

/// Why an object cannot be protected, or what its protection does not cover.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectionError {
    /// More pieces of an object are lost than its parity covers.
    #[error(
        "object {name:?}: more pieces are lost than its parity covers, bytes {} cannot be read: \
         {why}; bring the drives back, or fetch the rest with `csd get --partial`",
        in_words(.ranges)
    )]
    Lost {
        /// The object.
        name: String,
        /// Bytes that cannot be read, in order.
        ranges: Vec<Range<u64>>,
        /// Reason of the first loss.
        why: String,
    },
    /// An object cannot have this protection.
    #[error("{why}")]
    Impossible {
        /// Description of the fault, with a remedy.
        why: String,
    },
    /// Too few pieces of a stripe are durable.
    #[error(
        "object {name:?}: stripe {stripe} has only {durable} durable pieces and needs {needed}, \
         one more than its data: bring drives back first"
    )]
    Thin {
        /// The object.
        name: String,
        /// The first such stripe.
        stripe: u32,
        /// Number of its durable pieces.
        durable: usize,
        /// Number of pieces that it needs.
        needed: usize,
    },
}

/// Most ranges in a message.
const RANGES_SHOWN: usize = 8;

/// Describes ranges of bytes.
#[must_use]
pub fn in_words(ranges: &[Range<u64>]) -> String {
    let shown = ranges.iter().take(RANGES_SHOWN);
    let shown: Vec<String> =
        shown.map(|bytes| format!("{}-{}", bytes.start, bytes.end - 1)).collect();
    let more = match ranges.len().saturating_sub(RANGES_SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more ranges"),
    };
    shown.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranges_are_cut_short() {
        assert_eq!(in_words(&[0..1, 4096..8192]), "0-0, 4096-8191");
        let many: Vec<_> = (0..10).map(|begin| begin..begin + 1).collect();
        assert!(in_words(&many).ends_with("7-7 and 2 more ranges"));
    }
}
