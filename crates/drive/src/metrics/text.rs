//! Parts of the text format of Prometheus.

use std::fmt::Write;

/// Writes the two lines before the values of a name.
pub(super) fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail, here and below.
    let _ = write!(page, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// Formats nanoseconds as seconds, exactly.
pub(super) fn seconds(ns: u64) -> String {
    let (whole, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    match rest {
        0 => whole.to_string(),
        _ => format!("{whole}.{rest:09}").trim_end_matches('0').to_owned(),
    }
}

#[test]
fn seconds_are_exact() {
    assert_eq!(seconds(10_000), "0.00001");
    assert_eq!(seconds(2_000_000_000), "2");
    assert_eq!(seconds(1_500_000_001), "1.500000001");
}
