//! NVMe/TCP on the drive's side: accepts connections, and runs one loop for each.
//!
//! Invariants: a connection stays on its core; a command is answered once; back-pressure parks a
//! connection's read side and never fails a command.
//!
//! | module | contents, in the order of a command's way |
//! |---|---|
//! | [`accept`] | distribution of connections to cores |
//! | [`unauthenticated`] | connections whose hosts have not authenticated themselves |
//! | [`connection`] | a connection's loop: bytes to commands, commands to bytes |
//! | [`request`] | one command, from its capsule to its answer |
//! | `command` | dispatch, and one file for each command set |
//! | [`link`] | state that a connection's loop and its commands share |
//! | [`connections`] | registry of a core's connections |
//! | [`cause`] | reasons why a connection ended, for log and metrics |
//! | [`session`], [`events`], `error_log` | the queue of a connection, its events and its errors |
//! | [`auth_gate`], [`auth_scheduler`] | authentication, and scheduling of its computations |
//! | [`grants`], `transfer` | memory and data that a host is granted to send (R2T) |
//! | [`data_pdu`] | the data of an answer, as one PDU |
//! | [`backpressure`], [`outgoing`] | space for answers, and their bytes |
//! | [`budget`] | memory of a core for data on its way |
//! | [`host_presence`] | the end of commands whose host is gone |

pub mod accept;
pub mod auth_gate;
pub mod auth_scheduler;
pub mod backpressure;
pub mod budget;
pub mod cause;
mod command;
pub mod connection;
pub mod connections;
pub mod data_pdu;
mod error_log;
pub mod events;
pub mod grants;
pub mod host_presence;
pub mod link;
pub mod outgoing;
pub mod request;
pub mod session;
mod transfer;
pub mod unauthenticated;
