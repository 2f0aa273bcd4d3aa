//! Objects whose names begin with a prefix.

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object;
use serde_json::{Value, json};

use crate::object::describe;
use crate::report::Failure;
use crate::units::{counted, size};

/// Returns the objects whose names begin with `prefix`, by name.
///
/// # Errors
/// Run: too few drives answer.
pub(crate) async fn under(array: &Array, prefix: &str) -> Result<Vec<Entry>, Failure> {
    Ok(object::list_under(array, prefix).await?.0)
}

/// Describes objects for JSON output.
pub(crate) fn result(entries: &[Entry]) -> Value {
    json!({ "objects": entries.iter().map(describe).collect::<Vec<_>>() })
}

/// Returns a line for people of a prefix under which there is nothing.
pub(crate) fn nothing(prefix: &str) -> String {
    match prefix {
        "" => "no objects\n".to_owned(),
        prefix => format!("no objects whose names begin with {prefix:?}\n"),
    }
}

/// Returns the number of objects and their size in words.
pub(crate) fn amount(entries: &[Entry]) -> String {
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    format!("{}, {}", counted(entries.len() as u64, "object"), size(bytes))
}

/// Returns a prefix that ends in `/`; the empty one stands for all names.
pub(crate) fn as_folder(prefix: &str) -> String {
    match prefix.is_empty() || prefix.ends_with('/') {
        true => prefix.to_owned(),
        false => format!("{prefix}/"),
    }
}
