//! A computational storage drive in one process: NVMe/TCP in front, memory or a file behind.
//!
//! Never: a clock, a thread or a system call of its own; all of that is the reactor's, so the same
//! drive runs in the simulation. Invariants: a command is answered once; nothing acknowledged as
//! durable is lost; no byte of a host or of the medium can make it panic.
//!
//! Modules, in the order of a command's way:
//! - [`transport`]: sockets to commands and back
//! - [`controller`]: who is connected, and what is counted
//! - [`namespace`]: block, kv, memory, compute
//! - [`media`]: memory, file, simulated disk
//! - [`mod@format`]: the superblock
//! - [`drive`]: all of it put together, per core
//! - [`config`], [`serve`](mod@serve), [`life`]: how it is to serve, its beginning and end
//! - `describe`: what it says it is
//! - `provision`: what it is given beside its medium
//! - [`pace`]: as slow as another device
//! - [`health`]: failing media
//! - [`mod@log`], [`metrics`]: what is told and counted while it serves
//! - [`check`]: a look at a medium that nobody serves

pub mod check;
pub mod config;
pub mod controller;
mod describe;
pub mod drive;
pub mod error;
pub mod format;
pub mod health;
pub mod life;
pub mod log;
pub mod media;
pub mod metrics;
pub mod namespace;
pub mod pace;
mod provision;
pub mod serve;
pub mod transport;

pub use config::{Config, HostLimits, MediaKind};
pub use controller::Access;
pub use error::Error;
pub use provision::{Expose, Provision};
pub use serve::{Started, serve, serve_told};
