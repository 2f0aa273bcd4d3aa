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
         {}; bring the drives back, or fetch the rest with `csd get --partial`",
        in_words(.ranges), all(.why)
    )]
    Lost {
        /// The object.
        name: String,
        /// Bytes that cannot be read, in order.
        ranges: Vec<Range<u64>>,
        /// Reasons of all losses, each once.
        why: Vec<String>,
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

/// Most reasons in a message.
const REASONS_SHOWN: usize = 12;

fn all(reasons: &[String]) -> String {
    let more = match reasons.len().saturating_sub(REASONS_SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    reasons[..reasons.len().min(REASONS_SHOWN)].join("; ") + &more
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
    fn a_loss_has_all_its_reasons() {
        let why = vec!["drive d1 is down: a".to_owned(), "drive d2: no answer".to_owned()];
        let lost = ProtectionError::Lost { name: "x".to_owned(), ranges: vec![0..2, 4..5], why };
        let words = lost.to_string();
        assert!(
            words.contains("0-1, 4-4 cannot be read: drive d1 is down: a; drive d2: no answer;")
        );
        let many: Vec<String> = (0..14).map(|number| number.to_string()).collect();
        assert!(all(&many).ends_with("; 11; and 2 more"));
    }

    #[test]
    fn many_ranges_are_cut_short() {
        assert_eq!(in_words(&[0..1, 4096..8192]), "0-0, 4096-8191");
        let many: Vec<_> = (0..10).map(|begin| begin..begin + 1).collect();
        assert!(in_words(&many).ends_with("7-7 and 2 more ranges"));
    }
}
