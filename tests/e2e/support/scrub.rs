//! Scrubs, and the damage that they find.

use serde_json::{Value, json};

use crate::support::harness::Array;
use crate::support::json_page::documented;

/// Runs a scrub; returns the result.
#[track_caller]
pub(crate) fn scrubbed(array: &Array, more: &[&str], code: i32) -> Value {
    documented(array, "scrub", more, code)
}

/// Returns a piece of a protected object, as `bad[]` names it.
pub(crate) fn bad_piece(
    object: &str,
    (stripe, piece): (u64, u64),
    drive: usize,
    cause: &str,
) -> Value {
    json!({
        "object": object,
        "stripe": stripe,
        "piece": piece,
        "page": if cause == "missing" { Value::Null } else { 5.into() },
        "drive": format!("d{drive}"),
        "cause": cause,
        "repaired": false,
    })
}
