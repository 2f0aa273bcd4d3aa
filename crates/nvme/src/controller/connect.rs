//! Checks of the Connect command, before a queue exists.
//!
//! The drive owns the table of controllers. Invariant: a refusal names the wrong field by its
//! offset, as the standard requires (IPO and IATTR in dword 0).

use super::Subsystem;
use crate::NQN_BYTES_MAX;
use crate::capsule::Sqe;
use crate::discovery::DISCOVERY_NQN;
use crate::fabrics::{CNTLID_DYNAMIC, Connect, ConnectData};
use crate::status::Status;
use crate::wire::text_of;

/// Offset of the Host NQN in the data of Connect.
pub const HOSTNQN_OFFSET: u32 = 512;

/// A refused Connect: status, and dword 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Status of the completion.
    pub status: Status,
    /// Invalid Parameter Offset (IPO, bits 15:0) and Invalid Attributes (IATTR, bit 16).
    pub dword0: u32,
}

impl Refused {
    /// Returns a refusal for an invalid parameter at `offset` of the command.
    pub const fn command(offset: u32) -> Self {
        Self { status: Status::CONNECT_INVALID_PARAMETERS, dword0: offset }
    }

    /// Returns a refusal for an invalid parameter at `offset` of the data.
    pub const fn data(offset: u32) -> Self {
        Self { status: Status::CONNECT_INVALID_PARAMETERS, dword0: 1 << 16 | offset }
    }
}

/// Checked contents of a Connect command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command.
    pub connect: Connect,
    /// Host identifier.
    pub hostid: [u8; 16],
    /// Host NQN; empty if the host gives none, which only a drive without an access list may
    /// accept.
    pub hostnqn: String,
    /// Controller id asked for; [`CNTLID_DYNAMIC`] on the admin queue.
    pub cntlid: u16,
    /// True if the host asked for the discovery subsystem.
    pub discovery: bool,
}

impl Request {
    /// Returns true for the admin queue.
    pub fn is_admin(&self) -> bool {
        self.connect.qid() == 0
    }

    /// Checks a Connect command and its data against the subsystem.
    ///
    /// # Errors
    /// [`Refused`] with the offending field.
    pub fn parse(sqe: &Sqe, data: &[u8], subsystem: &Subsystem) -> Result<Self, Refused> {
        let connect = Connect::from_bytes(*sqe.as_bytes());
        let Some(data) = ConnectData::parse(data) else {
            return Err(Refused { status: Status::SGL_LENGTH_INVALID, dword0: 0 });
        };
        if connect.recfmt() != 0 {
            return Err(Refused { status: Status::INCOMPATIBLE_FORMAT, dword0: 0 });
        }
        if connect.sqsize() == 0 || connect.sqsize() >= subsystem.queue_entries_max {
            return Err(Refused::command(44));
        }
        if connect.qid() > subsystem.io_queues_max {
            return Err(Refused::command(42));
        }
        let subnqn = data.subnqn();
        let discovery = text_of(&subnqn) == Some(DISCOVERY_NQN);
        if !discovery && text_of(&subnqn) != Some(subsystem.nqn.as_str()) {
            return Err(Refused::data(256));
        }
        // A discovery controller has no I/O queues.
        if discovery && connect.qid() != 0 {
            return Err(Refused::command(42));
        }
        let hostnqn = data.hostnqn();
        let hostnqn = text_of(&hostnqn).filter(|nqn| nqn.is_empty() || is_nqn(nqn));
        let hostnqn = hostnqn.ok_or(Refused::data(HOSTNQN_OFFSET))?;
        if connect.qid() == 0 && data.cntlid() != CNTLID_DYNAMIC {
            return Err(Refused::data(16));
        }
        let (hostid, cntlid) = (data.hostid(), data.cntlid());
        Ok(Self { connect, hostid, hostnqn: hostnqn.to_owned(), cntlid, discovery })
    }
}

/// Returns true if `text` has the form of an NVMe Qualified Name.
pub fn is_nqn(text: &str) -> bool {
    text.len() <= NQN_BYTES_MAX && text.starts_with("nqn.") && text.len() > 4
}
