//! Shared parts of the benchmarks: a client that sends raw capsules, servers as processes, and
//! tables of pairs of runs.
//!
//! Each figure is reported with a bound measured in the same run. `bench/README.md` estimates the
//! expected figures.

pub mod client;
pub mod file;
pub mod floor;
pub mod report;
pub mod serve;
