//! Numbers that the standard leaves to vendors, as this project's drives use them: namespace
//! identifiers, and codes of the vendor specific ranges.
//!
//! Four opcodes are vendor specific: Store Newer of the Key Value command set, List Folder of the
//! objects' namespace, and the two of the tunnel, which a drive with a tunnel takes in its compute
//! namespace. The drives refuse all other admin commands C0h to FFh and I/O commands 80h to FFh.
//! `docs/internals/commands.md` has the same table, and a test compares the two.
//!
//! Modules, each with the byte layouts of one of our formats:
//! - [`execute`]: the payload of Execute Program
//! - [`combine`]: the task and the answers of the program `combine`
//! - [`pages`]: checksums of pages, and the task of the program that compares them
//! - [`executions`]: the log of executions
//! - [`decisions`]: the log of the cores that background tasks were sent to
//! - [`folders`]: what lies below a folder of objects' names
//! - `log_entries`: entries behind the header of a log page
//! - [`location`]: where a piece lies on a drive, in each of these formats
//! - [`media_errors`]: the log of media errors
//! - [`services`]: the log of the drive's services, and orders to one of them
//! - [`tunnel`]: packets to and from the drive's own operating system

pub mod combine;
pub mod decisions;
pub mod execute;
pub mod executions;
pub mod folders;
pub mod location;
mod log_entries;
pub mod media_errors;
pub mod pages;
pub mod services;
pub mod tunnel;

use crate::feature::FeatureId;
use crate::log::LogId;
use crate::opcode::{Cp, Kv};
use crate::status::Status;

/// Namespace identifier of the block namespace.
pub const NSID_BLOCK: u32 = 1;
/// Namespace identifier of the user's kv namespace.
pub const NSID_KV: u32 = 2;
/// Namespace identifier of the kv namespace that holds objects of arrays.
pub const NSID_OBJECTS: u32 = 3;
/// Namespace identifier of the memory namespace.
pub const NSID_MEMORY: u32 = 4;
/// Namespace identifier of the compute namespace.
pub const NSID_COMPUTE: u32 = 5;

/// Namespaces of a drive: identifier and name.
pub const NAMESPACES: [(u32, &str); 5] = [
    (NSID_BLOCK, "block"),
    (NSID_KV, "kv"),
    (NSID_OBJECTS, "objects"),
    (NSID_MEMORY, "memory"),
    (NSID_COMPUTE, "compute"),
];

/// Program type of WebAssembly modules (vendor range C0h to FFh).
pub const PROGRAM_TYPE_WASM: u8 = 0xC1;
/// Program type of plans of Substrait.
pub const PROGRAM_TYPE_SUBSTRAIT: u8 = 0xC2;

/// Kind of a vendor's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Namespace identifier (NSID).
    Namespace,
    /// Opcode of an I/O command.
    Opcode,
    /// Log page identifier (LID).
    LogPage,
    /// Feature Identifier (FID).
    Feature,
    /// Program type (PTYPE).
    ProgramType,
    /// Status Code Type and Status Code (SCT 7h).
    Status,
}

impl Kind {
    /// Returns the name of the kind in the documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Opcode => "opcode",
            Self::LogPage => "log page",
            Self::Feature => "feature",
            Self::ProgramType => "program type",
            Self::Status => "status",
        }
    }
}

/// All of these numbers: kind, number, name.
pub const TABLE: [(Kind, u32, &str); 25] = [
    (Kind::Namespace, NSID_BLOCK, NAMESPACES[0].1),
    (Kind::Namespace, NSID_KV, NAMESPACES[1].1),
    (Kind::Namespace, NSID_OBJECTS, NAMESPACES[2].1),
    (Kind::Namespace, NSID_MEMORY, NAMESPACES[3].1),
    (Kind::Namespace, NSID_COMPUTE, NAMESPACES[4].1),
    (Kind::Opcode, Kv::STORE_NEWER.0 as u32, "Store Newer"),
    (Kind::Opcode, Kv::LIST_FOLDER.0 as u32, "List Folder"),
    (Kind::LogPage, LogId::EXECUTIONS.0 as u32, "executions"),
    (Kind::LogPage, LogId::MEDIA_ERRORS.0 as u32, "media errors"),
    (Kind::LogPage, LogId::TUNNEL.0 as u32, "tunnel"),
    (Kind::LogPage, LogId::SERVICES.0 as u32, "services"),
    (Kind::LogPage, LogId::DECISIONS.0 as u32, "decisions"),
    (Kind::Opcode, Cp::TUNNEL_SEND.0 as u32, "Tunnel Send"),
    (Kind::Opcode, Cp::TUNNEL_RECEIVE.0 as u32, "Tunnel Receive"),
    (Kind::Feature, FeatureId::INSIDE_ONLY.0 as u32, "Inside Only"),
    (Kind::Feature, FeatureId::SERVICES.0 as u32, "Services"),
    (Kind::ProgramType, PROGRAM_TYPE_WASM as u32, "WebAssembly"),
    (Kind::ProgramType, PROGRAM_TYPE_SUBSTRAIT as u32, "Substrait"),
    (Kind::Status, Status::PROGRAM_FAILED.0 as u32, "program failed"),
    (Kind::Status, Status::SOURCE_MISSING.0 as u32, "source missing"),
    (Kind::Status, Status::SOURCE_TYPE.0 as u32, "source of another type"),
    (Kind::Status, Status::SOURCE_ORDER.0 as u32, "source not sorted"),
    (Kind::Status, Status::NOT_NEWER.0 as u32, "not newer"),
    (Kind::Status, Status::PEER_UNKNOWN.0 as u32, "peer unknown"),
    (Kind::Status, Status::PEER_FAILED.0 as u32, "peer failed"),
];
