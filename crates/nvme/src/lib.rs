//! NVMe over TCP on the wire, and the two state machines that speak it.
//!
//! Declares every byte layout once (PDUs, capsules, commands, identify data, logs, features), and
//! implements the host's and the controller's side of a connection as state machines that callers
//! feed with bytes.
//!
//! Does no I/O, reads no clock, draws no random numbers, has no `unsafe`, and does not panic on
//! bytes of a peer.
//!
//! Invariants: multi-byte fields are little-endian; unknown values survive a round trip, because a
//! layout keeps the bytes it was parsed from; a command is answered exactly once
//! ([`controller::queue::Permit`]).
//!
//! Modules, in the order of a command's way:
//! - [`wire`]: declarations of layouts, bit fields and code tables
//! - [`pdu`]: the nine PDUs of NVMe/TCP
//! - [`tcp`]: bytes to PDUs and back, for both sides, with digests
//! - [`capsule`]: submission and completion queue entries, data descriptors
//! - [`status`], [`opcode`]: code tables
//! - [`fabrics`], [`property`]: Connect, Property Get and Set, controller registers
//! - [`nvm`], [`kv`], [`memory`], [`compute`]: the I/O command sets
//! - [`program`]: programs that hosts load, and memory ranges
//! - [`discovery`]: subsystems to connect to
//! - [`identify`], [`log`], [`feature`]: data of admin commands
//! - [`vendor`]: what the standard leaves to vendors, as this project fills it: numbers, the
//!   payloads of programs, the tunnel
//! - [`auth`]: DH-HMAC-CHAP, messages and both sides
//! - [`controller`]: queues, admin commands, features and events of the drive's side
//! - [`host`]: the commands and connection steps of the host's side

pub mod auth;
pub mod capsule;
pub mod compute;
pub mod controller;
pub mod discovery;
pub mod fabrics;
pub mod feature;
pub mod host;
pub mod identify;
pub mod kv;
pub mod log;
pub mod memory;
pub mod nvm;
pub mod opcode;
pub mod pdu;
pub mod program;
pub mod property;
pub mod status;
pub mod tcp;
pub mod vendor;
pub mod wire;

/// Maximum length of an NVMe Qualified Name in bytes, without the terminating zero.
pub const NQN_BYTES_MAX: usize = 223;

/// TCP port that IANA assigned to NVMe/TCP I/O controllers.
pub const PORT: u16 = 4420;

/// Namespace id that means "all namespaces".
pub const NSID_ALL: u32 = 0xFFFF_FFFF;
