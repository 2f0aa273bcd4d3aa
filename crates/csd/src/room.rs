//! Free space for objects, as text and JSON.

use csd_store::room::Room;
use serde_json::{Value, json};

use crate::units::size;

/// Formats the free space, to follow the words "can take".
pub(crate) fn takes(room: &Room) -> String {
    let (kv, block) = (size(room.kv_bytes), size(room.block_bytes));
    format!("{kv} more as values (--on kv), {block} more on blocks (--on block)")
}

/// Describes the free space for JSON output.
pub(crate) fn describe(room: &Room) -> Value {
    json!({ "kv_bytes": room.kv_bytes, "block_bytes": room.block_bytes })
}
