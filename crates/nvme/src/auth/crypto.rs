//! Challenge and response: the formulas, over the hash functions of the `sha2` and `hmac` crates.
//!
//! Source: facts page (a.6). Never: messages. Invariant: [`same`] looks at every byte, whatever the
//! first difference.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::Secret;

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// Identifier on the wire and in a secret's text.
    pub const fn id(self) -> u8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha384 => 2,
            Self::Sha512 => 3,
        }
    }

    /// The function with this identifier.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| hash.id() == id)
    }

    /// Size of its values in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// The hash of `data`.
    pub fn digest(self, data: &[u8]) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match self {
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha384 => Sha384::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        })
    }

    /// HMAC of the parts, one after the other.
    pub fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
        fn run<M: Mac + hmac::digest::KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
            let mut mac = <M as Mac>::new_from_slice(key).expect("HMAC takes keys of any length");
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().to_vec()
        }
        Zeroizing::new(match self {
            Self::Sha256 => run::<Hmac<Sha256>>(key, parts),
            Self::Sha384 => run::<Hmac<Sha384>>(key, parts),
            Self::Sha512 => run::<Hmac<Sha512>>(key, parts),
        })
    }
}

/// True when two values are the same, in time that does not depend on where they differ.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// Who answers a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prover {
    /// The host.
    Host,
    /// The controller.
    Controller,
}

/// What is to be proven, in one direction of one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// Hash function agreed on.
    pub hash: Hash,
    /// Challenge value (C).
    pub value: &'a [u8],
    /// Sequence number (SEQNUM).
    pub sequence: u32,
    /// Transaction identifier (T_ID).
    pub transaction: u16,
    /// Secure channel concatenation (SC_C), as negotiated.
    pub secure_channel: u8,
    /// Diffie-Hellman shared secret; `None` with the null group.
    pub shared: Option<&'a [u8]>,
}

impl Challenge<'_> {
    /// The response of `prover`, whose NQN and secret these are, to `peer`.
    pub fn response(
        &self,
        prover: Prover,
        secret: &Secret,
        nqn: &str,
        peer: &str,
    ) -> Zeroizing<Vec<u8>> {
        let augmented = match self.shared {
            Some(shared) => self.hash.hmac(&self.hash.digest(shared), &[self.value]),
            None => Zeroizing::new(self.value.to_vec()),
        };
        let label: &[u8] = match prover {
            Prover::Host => b"HostHost",
            Prover::Controller => b"Controller",
        };
        let parts: [&[u8]; 8] = [
            &augmented,
            &self.sequence.to_le_bytes(),
            &self.transaction.to_le_bytes(),
            &[self.secure_channel],
            label,
            nqn.as_bytes(),
            &[0],
            peer.as_bytes(),
        ];
        self.hash.hmac(&secret.transformed(nqn), &parts)
    }
}
