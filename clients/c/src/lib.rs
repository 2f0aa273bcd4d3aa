//! `libcsd_kv`: key-value namespaces of NVMe/TCP drives, for C. The header `csd_kv.h` documents it.
//!
//! Handles are numbers in a table, so a closed or made-up one is an error. Values are copied at the
//! call and at the reaping, so the library's own thread never touches the caller's memory. All
//! `unsafe` is here: reading and writing what callers' pointers name, and calling their callbacks.
//! Invariants: no panic crosses into C; every command completes once; in a fork of the process a
//! call takes no lock that its parent's threads may have held.
//!
//! - `fault`: errors as numbers, and their words
//! - `handle`: the table
//! - `memory`: callers' bytes
//! - `open`: namespaces
//! - `wait`: blocking calls; `object`: those for objects of any length
//! - `completion`, `queue`, `submit`: completions, their queues, and the calls that use them

#![allow(unreachable_pub, reason = "C reaches functions by their names")]

mod completion;
mod fault;
mod handle;
mod memory;
mod object;
mod open;
mod queue;
mod submit;
mod wait;
