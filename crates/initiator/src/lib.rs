//! A host's side of NVMe/TCP: connect, queues, batching.
//!
//! A [`Controller`] lives on one core of the reactor; every queue is one connection and one task,
//! which first takes in what arrived and then sends, in one call, what the turn's commands made.
//! Data of a command is received straight into its buffer and sent straight from it.
//!
//! Never: retries, media, a clock or a thread of its own, `unsafe`. Invariants: a command given to
//! [`Controller::submit`] ends, with an answer or an error, at the latest when its time is up; an
//! error status leaves the connection standing, any other fault closes it and fails every command
//! in flight at once; nothing that a drive sends panics.
//!
//! Modules, in the order of a command's way:
//! - `address`, `options`, `error`: where to, how, and what may go wrong
//! - `controller`: connecting, identity, the choice of a queue, keep-alive
//! - `connection`: one queue, its commands in flight, its task
//! - `association`: what the connections of a controller share: they fail together
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

pub use address::Address;
pub use association::Traffic;
pub use block::Block;
pub use compute::Compute;
pub use connection::Reply;
pub use controller::{Controller, Namespace, NamespaceKind, discover};
pub use error::Error;
pub use handle::Handle;
pub use kv::Kv;
pub use memory::Memory;
pub use options::Options;
pub use program::Place;

pub use csd_nvme::auth::{Secret, Secrets};
pub use csd_nvme::discovery::DiscoveryRecord;
pub use csd_nvme::tcp::Digests;
