//! Reference of summarize: one element after the other, into a sum of 2,304 bits each.

use super::{Parameters, Summarize, Summary};

/// Returns the summary of whole elements, each summarized by itself and combined.
///
/// # Panics
/// If the bytes do not hold whole elements.
#[must_use]
pub fn summarize(parameters: Parameters, bytes: &[u8]) -> Summary {
    let mut whole = Summary::default();
    for element in bytes.chunks(parameters.element().bytes()) {
        let mut one = Summarize::new(parameters);
        one.feed(element).expect("whole elements");
        whole.combine(one.summary());
    }
    whole
}
