//! Programs in WebAssembly through a client of raw bytes: the standard's commands alone, with the
//! examples of the SDK, all known kinds of bad programs, and mutants.
//!
//! Whatever a program does, the drive answers with a status, logs the reason, and goes on serving.

#![allow(missing_docs, unreachable_pub, clippy::cast_possible_truncation, clippy::unwrap_used)]

mod apart;
mod bad;
mod host;
mod kept;
mod mutants;
mod standard;
#[allow(dead_code)]
#[path = "../../crates/wasm/tests/worst/mod.rs"]
mod worst;
