//! A host's side of NVMe/TCP: connect, queues, batching.
//!
//! A [`Controller`] lives on one core of the reactor; every queue is one connection and one task,
//! which first receives what has arrived and then sends, in one call, all commands of the turn.
//! Data of a command is received straight into its buffer and sent straight from it.
//!
//! This crate does not retry; it has no media, no clock or thread of its own, and no `unsafe`.
//! Invariants: every command given to [`Controller::submit`] ends, with an answer or an error, by
//! its timeout at the latest; an error status leaves the connection usable, any other fault closes
//! it and fails every command in flight at once; no bytes of a drive cause a panic.
//!
//! Modules, in the order in which a command passes them:
//! - `address`, `options`, `error`: addresses, settings, errors
//! - `controller`: connecting, identity, the choice of a queue, keep-alive
//! - `connection`: one queue, its commands in flight, its task
//! - `association`: state shared by the connections of a controller, which fail together
//! - `handle`: a drive and a namespace id
//! - `kv`, `block`, `memory`, `compute`: the command sets as typed calls
//! - `program`: programs that a host loads

mod address;
mod association;
mod block;
mod compute;
mod connection;
mod controller;
mod error;
mod handle;
mod kv;
mod memory;
mod options;
mod program;

pub use address::{Address, resolve};
pub use association::Traffic;
pub use block::Block;
pub use compute::Compute;
pub use connection::Reply;
pub use controller::{Controller, Namespace, NamespaceKind, discover};
pub use error::Error;
pub use handle::Handle;
pub use kv::Kv;
pub use memory::Memory;
pub use options::{CONNECT_ANSWERS, Options};
pub use program::ProgramSlot;

pub use csd_nvme::auth::{Secret, Secrets};
pub use csd_nvme::discovery::DiscoveryRecord;
pub use csd_nvme::tcp::Digests;
