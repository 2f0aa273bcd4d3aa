//! Namespaces: what a command set's commands do to the medium.
//!
//! Never: queues or PDUs. Invariant: a namespace answers with a status of its command set, and
//! never panics on a host's parameters.

pub mod block;
pub mod compute;
pub mod gate;
pub mod kv;
pub mod memory;

/// Namespace id of the block namespace.
pub const NSID_BLOCK: u32 = 1;
/// Namespace id of the user's kv namespace.
pub const NSID_KV: u32 = 2;
/// Namespace id of the kv namespace that holds objects of arrays.
pub const NSID_OBJECTS: u32 = 3;
/// Namespace id of the memory namespace.
pub const NSID_MEMORY: u32 = 4;
/// Namespace id of the compute namespace.
pub const NSID_COMPUTE: u32 = 5;
