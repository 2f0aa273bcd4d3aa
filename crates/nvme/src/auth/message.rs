//! The messages of DH-HMAC-CHAP and the two commands that carry them.
//!
//! Source: NVM Express Base Specification 2.2, "DH-HMAC-CHAP Protocol". The order of messages is
//! in [`super::controller`] and [`super::host`]. Invariant: a parsed message has all the bytes that
//! its length fields promise; bytes after them are padding.

use super::{Group, Hash, SECP_NVME};
use crate::capsule::Sqe;
use crate::opcode::{Admin, Fabrics};
use crate::wire::{codes, layout};

/// Type of messages common to all protocols.
pub const TYPE_COMMON: u8 = 0;
/// Type of DH-HMAC-CHAP messages.
pub const TYPE_DHCHAP: u8 = 1;
/// Protocol identifier of DH-HMAC-CHAP in a negotiation.
const PROTOCOL_DHCHAP: u8 = 1;
/// Entries of each identifier list.
const LIST_ENTRIES: usize = 30;

codes! {
    /// Message identifier.
    pub struct Id: u8 {
        NEGOTIATE = 0x00: "negotiate",
        CHALLENGE = 0x01: "challenge",
        REPLY = 0x02: "reply",
        SUCCESS1 = 0x03: "success1",
        SUCCESS2 = 0x04: "success2",
        FAILURE2 = 0xF0: "failure2",
        FAILURE1 = 0xF1: "failure1",
    }
}

codes! {
    /// Reason of a failed authentication (reason code explanation).
    pub struct Reason: u8 {
        FAILED = 1: "authentication failed",
        PROTOCOL = 2: "no authentication protocol in common",
        SECURE_CHANNEL = 3: "no secure channel in common",
        HASH = 4: "no hash function in common",
        GROUP = 5: "no Diffie-Hellman group in common",
        PAYLOAD = 6: "malformed message",
        MESSAGE = 7: "message out of order",
    }
}

layout! {
    /// Authentication Send and Authentication Receive.
    pub struct AuthCommand[64] {
        /// Fabrics Command Type (FCTYPE).
        fctype / set_fctype: u8 @ 4,
        /// Security Protocol Specific 0 (SPSP0), 1.
        spsp0 / set_spsp0: u8 @ 41,
        /// Security Protocol Specific 1 (SPSP1), 1.
        spsp1 / set_spsp1: u8 @ 42,
        /// Security Protocol (SECP), E9h.
        secp / set_secp: u8 @ 43,
        /// Transfer Length (TL) or Allocation Length (AL) in bytes.
        length / set_length: u32 @ 44,
    }
}

impl AuthCommand {
    /// Returns true if the command carries in-band authentication.
    pub fn is_ours(&self) -> bool {
        (self.secp(), self.spsp0(), self.spsp1()) == (SECP_NVME, 1, 1)
    }
}

fn command(fctype: Fabrics, length: u32) -> Sqe {
    let sqe = Sqe::new(Admin::FABRICS.0, u32::from(fctype.0));
    let mut command = AuthCommand::from_bytes(*sqe.as_bytes());
    command.set_spsp0(1).set_spsp1(1).set_secp(SECP_NVME).set_length(length);
    Sqe::from_bytes(*command.as_bytes())
}

/// Returns an Authentication Send of a message of `length` bytes.
pub fn send(length: u32) -> Sqe {
    command(Fabrics::AUTH_SEND, length)
}

/// Returns an Authentication Receive into `length` bytes.
pub fn receive(length: u32) -> Sqe {
    command(Fabrics::AUTH_RECEIVE, length)
}

layout! {
    /// Head of every message.
    pub struct Head[8] {
        /// Type: [`TYPE_COMMON`] or [`TYPE_DHCHAP`].
        auth_type / set_auth_type: u8 @ 0,
        /// Identifier, see [`Id`].
        auth_id / set_auth_id: u8 @ 1,
        /// Transaction Identifier (T_ID).
        transaction / set_transaction: u16 @ 4,
    }
}

layout! {
    /// Negotiate, with protocol descriptors after it.
    pub struct Negotiate[8] {
        /// Secure Channel Concatenation (SC_C), 0 none.
        secure_channel / set_secure_channel: u8 @ 6,
        /// Number of protocol descriptors (NAPD).
        descriptors / set_descriptors: u8 @ 7,
    }
}

layout! {
    /// Protocol descriptor of DH-HMAC-CHAP.
    pub struct Descriptor[64] {
        /// Protocol: 1.
        protocol / set_protocol: u8 @ 0,
        /// Number of hash identifiers (HALEN).
        hash_count / set_hash_count: u8 @ 2,
        /// Number of group identifiers (DHLEN).
        group_count / set_group_count: u8 @ 3,
        /// Hash identifiers.
        hashes / set_hashes: [30] @ 4,
        /// Group identifiers.
        groups / set_groups: [30] @ 34,
    }
}

layout! {
    /// Challenge, with the challenge and the controller's public value after it.
    pub struct Challenge[16] {
        /// Length of hash values in bytes (HL).
        hash_bytes / set_hash_bytes: u8 @ 6,
        /// Hash identifier.
        hash / set_hash: u8 @ 8,
        /// Group identifier.
        group / set_group: u8 @ 9,
        /// Length of the public value in bytes (DHVLEN).
        public_bytes / set_public_bytes: u16 @ 10,
        /// Sequence number (SEQNUM).
        sequence / set_sequence: u32 @ 12,
    }
}

layout! {
    /// Reply, with response, challenge and the host's public value after it.
    pub struct Reply[16] {
        /// Length of hash values in bytes (HL).
        hash_bytes / set_hash_bytes: u8 @ 6,
        /// 1 if the reply carries a challenge (CVALID).
        challenges / set_challenges: u8 @ 8,
        /// Length of the public value in bytes (DHVLEN).
        public_bytes / set_public_bytes: u16 @ 10,
        /// Sequence number (SEQNUM), 0 when there is no challenge.
        sequence / set_sequence: u32 @ 12,
    }
}

layout! {
    /// Success1, with the controller's response after it when there is one.
    pub struct Success1[16] {
        /// Length of hash values in bytes (HL).
        hash_bytes / set_hash_bytes: u8 @ 6,
        /// 1 if there is a response (RVALID).
        responds / set_responds: u8 @ 8,
    }
}

layout! {
    /// Failure1 and Failure2.
    pub struct Failure[8] {
        /// Reason code, 1: authentication failed.
        code / set_code: u8 @ 6,
        /// Explanation, see [`Reason`].
        explanation / set_explanation: u8 @ 7,
    }
}

fn head(kind: u8, id: Id, transaction: u16) -> [u8; 8] {
    let mut head = Head::zeroed();
    head.set_auth_type(kind).set_auth_id(id.0).set_transaction(transaction);
    *head.as_bytes()
}

/// Returns a message of `id`: the head, then its fixed part from byte 6 on, then `parts`.
pub(super) fn compose(id: Id, transaction: u16, fixed: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let kind = match id {
        Id::NEGOTIATE | Id::FAILURE1 | Id::FAILURE2 => TYPE_COMMON,
        _ => TYPE_DHCHAP,
    };
    let mut message = fixed.to_vec();
    message[..6].copy_from_slice(&head(kind, id, transaction)[..6]);
    parts.iter().for_each(|part| message.extend_from_slice(part));
    message
}

/// Returns Failure1 or Failure2.
pub(super) fn failure(id: Id, transaction: u16, reason: Reason) -> Vec<u8> {
    let mut failure = Failure::zeroed();
    failure.set_code(1).set_explanation(reason.0);
    compose(id, transaction, failure.as_bytes(), &[])
}

/// Returns the reason of a failure message with this identifier, if `bytes` is one.
pub(super) fn failed(bytes: &[u8], id: Id) -> Option<Reason> {
    let (head, failure) = (Head::parse(bytes)?, Failure::parse(bytes)?);
    let is_failure = (head.auth_type(), Id(head.auth_id())) == (TYPE_COMMON, id);
    is_failure.then_some(Reason(failure.explanation()))
}

/// Checks type, identifier and transaction of a DH-HMAC-CHAP message.
pub(super) fn expect(bytes: &[u8], id: Id, transaction: u16) -> Result<(), Reason> {
    let head = Head::parse(bytes).ok_or(Reason::PAYLOAD)?;
    if (head.auth_type(), Id(head.auth_id())) != (TYPE_DHCHAP, id) {
        return Err(Reason::MESSAGE);
    }
    if head.transaction() != transaction { Err(Reason::PAYLOAD) } else { Ok(()) }
}

/// Returns the `count` bytes at `offset`.
pub(super) fn part(bytes: &[u8], offset: usize, count: usize) -> Result<&[u8], Reason> {
    bytes.get(offset..offset + count).ok_or(Reason::PAYLOAD)
}

/// Identifiers that a host proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) transaction: u16,
    pub(super) hashes: Vec<Hash>,
    pub(super) groups: Vec<Group>,
}

impl Proposal {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (mut hashes, mut groups) = ([0; LIST_ENTRIES], [0; LIST_ENTRIES]);
        self.hashes.iter().zip(&mut hashes).for_each(|(hash, slot)| *slot = hash.id());
        self.groups.iter().zip(&mut groups).for_each(|(group, slot)| *slot = group.id());
        let count = |length: usize| u8::try_from(length.min(LIST_ENTRIES)).expect("30 or fewer");
        let mut descriptor = Descriptor::zeroed();
        descriptor.set_protocol(PROTOCOL_DHCHAP).set_hashes(&hashes).set_groups(&groups);
        descriptor.set_hash_count(count(self.hashes.len()));
        descriptor.set_group_count(count(self.groups.len()));
        let mut negotiate = Negotiate::zeroed();
        negotiate.set_descriptors(1);
        let fixed = negotiate.as_bytes();
        compose(Id::NEGOTIATE, self.transaction, fixed, &[descriptor.as_bytes()])
    }

    /// Parses Negotiate. Drops unknown identifiers; the lists keep the host's order.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Reason> {
        let (head, negotiate) = (Head::parse(bytes), Negotiate::parse(bytes));
        let (Some(head), Some(negotiate)) = (head, negotiate) else { return Err(Reason::PAYLOAD) };
        if (head.auth_type(), Id(head.auth_id())) != (TYPE_COMMON, Id::NEGOTIATE) {
            return Err(Reason::MESSAGE);
        }
        if negotiate.secure_channel() != 0 {
            return Err(Reason::SECURE_CHANNEL);
        }
        let length = usize::from(negotiate.descriptors()) * Descriptor::SIZE;
        let descriptors = part(bytes, Negotiate::SIZE, length)?;
        let mut descriptors = descriptors.chunks_exact(Descriptor::SIZE);
        let descriptor = descriptors
            .find_map(|chunk| {
                Descriptor::parse(chunk).filter(|found| found.protocol() == PROTOCOL_DHCHAP)
            })
            .ok_or(Reason::PROTOCOL)?;
        let counts = [descriptor.hash_count(), descriptor.group_count()].map(usize::from);
        if counts.iter().any(|count| *count > LIST_ENTRIES) {
            return Err(Reason::PAYLOAD);
        }
        let (hashes, groups) = (descriptor.hashes(), descriptor.groups());
        let hashes = hashes[..counts[0]].iter().filter_map(|id| Hash::from_id(*id)).collect();
        let groups = groups[..counts[1]].iter().filter_map(|id| Group::from_id(*id)).collect();
        Ok(Self { transaction: head.transaction(), hashes, groups })
    }
}
