//! Programs in WebAssembly through a client of raw bytes: the standard's commands and nothing else,
//! with the examples of the SDK, with every bad program that we could think of, and with mutants.
//!
//! Whatever a program does, the drive answers with a status, says why in its log, and serves on.

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
