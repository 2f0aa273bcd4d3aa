//! What the benchmarks share: a client that speaks raw capsules, servers as processes, and pairs of
//! runs as a table.
//!
//! Never a figure by itself: each stands beside its floor from the same run. `bench/README.md` has
//! the back of the envelope for each.

pub mod client;
pub mod file;
pub mod floor;
pub mod report;
pub mod serve;
