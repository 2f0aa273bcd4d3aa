//! WebAssembly programs, for a drive that has [`Wasm`] as one of its engines.
//!
//! A program is a module that exports its `memory` and `csd_run`. It may import the functions that
//! `docs/guide/programs.md` lists: bytes of its streams, its parameters, bytes for its output.
//! There is no WASI: no clock, no file, no socket, no other program.
//!
//! A guest runs on its own stack (a fiber). So a guest that waits for bytes yields the compute
//! thread in the middle of a call, and continues when they are there. Its step ends at the next
//! tick of the drive.
//!
//! This crate starts no threads, reads no clock, opens no files and contains no `unsafe`.
//! Invariants: a guest accesses its own memory only, and at most as much as its limits allow. Any
//! bytes are refused with a reason, or run and end with an answer or a reason.
//!
//! Modules: `exports` names a module's exports, `limits` bounds a module before it is compiled,
//! `engine` compiles and checks, `cache` keeps compiled modules, `host` has the functions that a
//! guest may call, `resources` limits its memory and tables, `guest` is one execution.

mod cache;
mod engine;
mod exports;
mod guest;
mod host;
mod limits;
mod resources;

pub use engine::{Module, PROGRAM_TYPE, Wasm};
pub use exports::Entry;
