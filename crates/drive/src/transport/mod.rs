//! NVMe/TCP on the drive's side: accepting connections, and one loop for each.
//!
//! Modules in the order of a command's way: [`accept`] deals connections to cores, [`connection`]
//! turns bytes into commands, [`link`] is what a connection's commands share, [`budget`] what all
//! connections of a core do, [`presence`] what becomes of commands whose host is gone, [`lend`] the
//! memory for data that a host is granted to send, `transfer` that data, [`outgoing`] what is sent,
//! [`auth`] what a host must pass first, [`turns`] when that may compute, [`newcomers`] who has not
//! passed yet, [`command`] runs one command (`block` those of blocks, `now` those that need not
//! wait, `retrieve` values, `memory` those of memory), `connect` and [`session`] are Connect and
//! the admin queue.
//!
//! Never: what a command means to the medium. Invariants: a connection stays on its core; a
//! command is answered once; back-pressure parks a connection's read side and never fails a
//! command.

pub mod accept;
pub mod auth;
mod block;
pub mod budget;
pub mod command;
mod connect;
pub mod connection;
pub mod lend;
pub mod link;
mod memory;
pub mod newcomers;
mod now;
pub mod outgoing;
pub mod presence;
mod report;
mod retrieve;
pub mod session;
mod transfer;
pub mod turns;

use csd_nvme::tcp::Digests;
use csd_nvme::tcp::controller::Limits;

/// Most bytes of one H2CData PDU (MAXH2CDATA), and of one C2HData PDU.
pub const PDU_DATA_BYTES_MAX: u32 = 128 << 10;

/// Most bytes of in-capsule data.
pub const IN_CAPSULE_BYTES_MAX: u32 = 8 << 10;

/// What every connection is held to.
pub const LIMITS: Limits = Limits {
    h2c_data_bytes_max: PDU_DATA_BYTES_MAX,
    in_capsule_bytes_max: IN_CAPSULE_BYTES_MAX,
    digests: Digests { header: true, data: true },
};
