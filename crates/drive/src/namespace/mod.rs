//! Namespaces: the effect of each command set's commands on the medium.
//!
//! Invariant: a namespace answers with a status of its command set, and does not panic on a host's
//! parameters.

pub mod block;
pub mod memory;
pub mod write_gate;
