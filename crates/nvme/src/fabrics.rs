//! Fabrics commands: Connect, Property Get, Property Set, Disconnect.
//!
//! Source: NVM Express Base Specification 2.2, "Fabrics Command Set". The meaning of properties is
//! in [`crate::property`].

use crate::capsule::{FLAGS_SGL, Sqe};
use crate::opcode::{Admin, Fabrics};
use crate::wire::layout;

layout! {
    /// Connect command.
    pub struct Connect[64] {
        /// Fabrics Command Type (FCTYPE).
        fctype / set_fctype: u8 @ 4,
        /// Record Format (RECFMT), 0.
        recfmt / set_recfmt: u16 @ 40,
        /// Queue ID (QID), 0 is the admin queue.
        qid / set_qid: u16 @ 42,
        /// Submission Queue Size (SQSIZE), 0's based.
        sqsize / set_sqsize: u16 @ 44,
        /// Connect Attributes (CATTR): bit 2 disables submission queue flow control.
        cattr / set_cattr: u8 @ 46,
        /// Keep Alive Timeout (KATO) in milliseconds.
        kato / set_kato: u32 @ 48,
    }
}

/// Connect attribute: no submission queue flow control.
pub const CATTR_NO_FLOW_CONTROL: u8 = 1 << 2;
/// Controller id that asks for a new controller (dynamic model).
pub const CNTLID_DYNAMIC: u16 = 0xFFFF;

layout! {
    /// Data of the Connect command.
    pub struct ConnectData[1024] {
        /// Host Identifier (HOSTID).
        hostid / set_hostid: [16] @ 0,
        /// Controller ID (CNTLID).
        cntlid / set_cntlid: u16 @ 16,
        /// Subsystem NQN, zero-terminated.
        subnqn / set_subnqn: [256] @ 256,
        /// Host NQN, zero-terminated.
        hostnqn / set_hostnqn: [256] @ 512,
    }
}

layout! {
    /// Property Get and Property Set command.
    pub struct Property[64] {
        /// Fabrics Command Type (FCTYPE).
        fctype / set_fctype: u8 @ 4,
        /// Attributes: bits 2:0 size, 0 is 4 bytes and 1 is 8 bytes.
        attrib / set_attrib: u8 @ 40,
        /// Offset of the property (OFST) in bytes.
        ofst / set_ofst: u32 @ 44,
        /// New value (Property Set).
        value / set_value: u64 @ 48,
    }
}

fn fabrics(fctype: Fabrics) -> Sqe {
    let mut sqe = Sqe::zeroed();
    // FCTYPE stands in the first byte of what is NSID elsewhere.
    sqe.set_opcode(Admin::FABRICS.0).set_flags(FLAGS_SGL).set_nsid(u32::from(fctype.0));
    sqe
}

/// Returns Connect for queue `qid` of `entries` entries (1's based here); the 1,024 bytes of
/// [`ConnectData`] go in the capsule.
pub fn connect(qid: u16, entries: u16, kato_ms: u32, cattr: u8) -> Sqe {
    let mut command = Connect::from_bytes(*fabrics(Fabrics::CONNECT).as_bytes());
    command.set_qid(qid).set_sqsize(entries.saturating_sub(1)).set_cattr(cattr).set_kato(kato_ms);
    Sqe::from_bytes(*command.as_bytes())
}

/// Returns Property Get of the property at `offset`, 8 bytes if `wide`, else 4.
pub fn property_get(offset: u32, wide: bool) -> Sqe {
    let mut command = Property::from_bytes(*fabrics(Fabrics::PROPERTY_GET).as_bytes());
    command.set_attrib(u8::from(wide)).set_ofst(offset);
    Sqe::from_bytes(*command.as_bytes())
}

/// Returns Property Set of the 4-byte property at `offset`.
pub fn property_set(offset: u32, value: u32) -> Sqe {
    let mut command = Property::from_bytes(*fabrics(Fabrics::PROPERTY_SET).as_bytes());
    command.set_ofst(offset).set_value(u64::from(value));
    Sqe::from_bytes(*command.as_bytes())
}

/// Returns the fabrics command type of a command with opcode 7Fh.
pub fn fctype(sqe: &Sqe) -> Fabrics {
    Fabrics(sqe.as_bytes()[4])
}
