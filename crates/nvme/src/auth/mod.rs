//! In-band authentication, DH-HMAC-CHAP: messages, secrets, and both sides as state machines.
//!
//! Source: NVM Express Base Specification 2.2, "In-Band Authentication". Random numbers come from
//! the caller ([`Entropy`]); hashes, HMAC, exponentiation, base64 and CRC-32 are those of other
//! crates. Invariants: a secret is never printed and is wiped when dropped; proofs are compared in
//! constant time; no bytes of a peer cause a panic.
//!
//! - [`message`]: what goes through Authentication Send and Receive
//! - [`secret`], [`secrets`]: the DHHC-1 text, and a file of such texts
//! - [`crypto`]: challenge and response; [`hash`](mod@hash): hash functions; [`group`]:
//!   Diffie-Hellman
//! - [`controller`], [`host`]: the two sides

pub mod controller;
pub mod crypto;
pub mod group;
pub mod hash;
pub mod host;
pub mod message;
mod primes;
pub mod secret;
pub mod secrets;

pub use group::Group;
pub use hash::Hash;
pub use message::Reason;
pub use secret::Secret;
pub use secrets::Secrets;

use zeroize::Zeroizing;

/// Result dword 0 of Connect: authentication is required before any other command (ATR).
pub const CONNECT_ATR: u32 = 1 << 17;
/// Security Protocol (SECP) of Authentication Send and Receive.
pub const SECP_NVME: u8 = 0xE9;
/// Maximum length of a message: a reply with two SHA-512 values and a DH value of 1,024 bytes has
/// 1,168.
pub const MESSAGE_BYTES_MAX: u32 = 4096;

/// Names and secrets of the two sides.
#[derive(Clone, Debug)]
pub struct Keys {
    /// NQN of the host.
    pub host_nqn: String,
    /// NQN of the subsystem.
    pub subsystem_nqn: String,
    /// The host's secret.
    pub host: Secret,
    /// The controller's secret; a host that has it demands the controller's proof too.
    pub controller: Option<Secret>,
}

/// Hashes and groups that one side accepts, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Hash functions.
    pub hashes: Vec<Hash>,
    /// Diffie-Hellman groups.
    pub groups: Vec<Group>,
}

impl Default for Offer {
    /// Returns all of them. Groups are ordered by strength for their cost: 3,072 bits give 128 bits
    /// of strength.
    fn default() -> Self {
        use Group::{Ffdhe2048, Ffdhe3072, Ffdhe4096, Ffdhe6144, Ffdhe8192, Null};
        Self {
            hashes: Hash::ALL.to_vec(),
            groups: vec![Ffdhe3072, Ffdhe4096, Ffdhe2048, Ffdhe6144, Ffdhe8192, Null],
        }
    }
}

/// Random bytes for one transaction of one side: challenge, private exponent, sequence number. All
/// of it must come from a cryptographic source, and is used once.
#[derive(Clone)]
pub struct Entropy(pub Zeroizing<[u8; Self::BYTES]>);

impl Entropy {
    /// Size: 64 bytes of challenge, 64 of exponent, 4 of sequence number.
    pub const BYTES: usize = 64 + group::EXPONENT_BYTES + 4;

    /// Returns entropy from `fill`.
    pub fn draw(fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = Zeroizing::new([0; Self::BYTES]);
        fill(&mut bytes[..]);
        Self(bytes)
    }

    fn challenge(&self, hash: Hash) -> Vec<u8> {
        self.0[..hash.bytes()].to_vec()
    }

    fn exponent(&self) -> &[u8] {
        &self.0[64..64 + group::EXPONENT_BYTES]
    }

    /// Returns the sequence number, which is not 0: that stands for "no challenge".
    fn sequence(&self) -> u32 {
        u32::from_le_bytes(crate::wire::take(&self.0[..], Self::BYTES - 4)).max(1)
    }
}

impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entropy(..)")
    }
}
