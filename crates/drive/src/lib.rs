//! A computational storage drive in one process: NVMe/TCP in front, memory or a file behind.
//!
//! Time, threads and system calls are the reactor's, so the same drive runs in the simulation.
//! Invariants: a command is answered once; nothing acknowledged as durable is lost; no byte of a
//! host or of the medium can make it panic.
//!
//! Modules, in the order in which a command passes them:
//! - [`transport`]: sockets to commands and back
//! - [`controller`]: controllers, their hosts and settings
//! - [`namespace`]: block and memory; [`compute`]: executions; kv and media are in `csd_kvlog`
//! - [`drive`]: assembly, per core
//! - [`config`], `resources`, [`limits`]: options, resources and announced sizes
//! - [`serve`](mod@serve), [`life`]: serving, start and stop
//! - `backend_choice`: the reactor's back end for a medium
//! - `core_choice`: the core on which background work is done
//! - `describe`: identity and namespaces
//! - `side`: the sides that connections come from
//! - [`peers`]: drives that this drive may work with
//! - [`tunnel`]: packets between a host and the drive's own operating system
//! - `services`: work besides hosts' commands, and its settings: cleaning, checkpoints, [`scrub`],
//!   commands of other drives
//! - [`throttle`]: delays of a modelled device
//! - [`health`]: failing media
//! - [`mod@log`], [`metrics`]: events and counts

mod backend_choice;
mod collect_chunks;
pub mod compute;
pub mod config;
pub mod controller;
pub mod core_choice;
mod count_chunks;
pub mod dedup;
mod describe;
pub mod drive;
pub mod error;
mod folders;
pub mod health;
pub mod kv_store;
pub mod life;
pub mod limits;
pub mod log;
pub mod metrics;
pub mod namespace;
mod page_check;
mod pass_bound;
pub mod peers;
mod resources;
pub mod scrub;
pub mod serve;
mod services;
mod share_chunks;
mod side;
pub mod throttle;
pub mod transport;
pub mod tunnel;
mod wait_until_free;

pub use config::{Config, HostLimits, MediaKind};
pub use controller::Access;
pub use error::Error;
pub use resources::{Expose, Resources};
pub use serve::{Started, serve, serve_with};
pub use side::Side;
