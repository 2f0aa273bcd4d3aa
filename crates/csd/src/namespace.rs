//! A drive's namespaces in JSON.

use csd_initiator::{Namespace, NamespaceKind};
use serde_json::{Value, json};

/// Describes a namespace for JSON output.
pub(crate) fn describe(namespace: &Namespace) -> Value {
    let mut described = match namespace.kind {
        NamespaceKind::Block { blocks, block_bytes } => {
            let bytes = blocks * u64::from(block_bytes);
            json!({ "kind": "block", "bytes": bytes, "block_bytes": block_bytes })
        }
        NamespaceKind::Kv { bytes, used_bytes, value_bytes_max } => json!({
            "kind": "kv", "bytes": bytes, "used_bytes": used_bytes,
            "value_bytes_max": value_bytes_max,
        }),
        NamespaceKind::Memory { bytes } => json!({ "kind": "memory", "bytes": bytes }),
        NamespaceKind::Compute => json!({ "kind": "compute" }),
        _ => json!({ "kind": "other" }),
    };
    described["nsid"] = namespace.nsid.into();
    described
}
