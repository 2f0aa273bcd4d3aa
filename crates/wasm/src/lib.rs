//! Programs in WebAssembly, for a drive that is given [`Wasm`] as one of its engines.
//!
//! A program is a module that exports its `memory` and `csd_run`, and imports what it needs of the
//! functions that `docs/guide/programs.md` lists: bytes of its streams, its parameters, bytes for
//! its output. There is no WASI: no clock, no file, no socket, no other program.
//!
//! A guest runs on a stack of its own (a fiber), so that one that waits for bytes gives the compute
//! lane back in the middle of a call, and goes on when they are there. Between two ticks of the
//! drive it may run as it likes; at the next one its step ends.
//!
//! Never: a thread, a clock, a file, `unsafe` of ours. Invariants: a guest reads and writes its own
//! memory alone, at most as much of it as its limits say; whatever its bytes are, it is refused in
//! words, or runs and is ended in words.
//!
//! Modules: `exports` names what a module exports, `limits` bounds a module before it is compiled,
//! `engine` compiles and checks, `cache` keeps what was compiled, `host` is what a guest may
//! call, `resources` what it may take, `guest` is one execution.

mod cache;
mod engine;
mod exports;
mod guest;
mod host;
mod limits;
mod resources;

pub use engine::{Module, PROGRAM_TYPE, Wasm};
pub use exports::Entry;
