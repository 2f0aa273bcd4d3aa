//! A computational storage drive in one process: NVMe/TCP in front, memory or a file behind.
//!
//! Never: a clock, a thread or a system call of its own; all of that is the reactor's, so the same
//! drive runs in the simulation. Invariants: a command is answered once; nothing acknowledged as
//! durable is lost; no byte of a host or of the medium can make it panic.
//!
//! Modules, in the order of a command's way:
//! - [`transport`]: sockets to commands and back
//! - [`controller`]: who is connected, and what is counted
//! - [`namespace`]: block, kv, compute
//! - [`media`]: memory, file, simulated disk
//! - [`mod@format`]: the superblock
//! - [`drive`]: all of it put together, per core

pub mod controller;
pub mod drive;
pub mod error;
pub mod format;
pub mod media;
pub mod namespace;
mod stop;
pub mod transport;

pub use controller::Access;
pub use drive::{Config, MediaKind, serve};
pub use error::Error;
