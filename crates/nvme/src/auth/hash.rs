//! Hash functions of authentication, by the `sha2` and `hmac` crates, and comparison in constant
//! time.
//!
//! Source: NVMe Base Specification, "DH-HMAC-CHAP Protocol", hash identifiers. Invariant: [`same`]
//! examines every byte.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

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

    /// Returns the identifier on the wire and in a secret's text.
    pub const fn id(self) -> u8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha384 => 2,
            Self::Sha512 => 3,
        }
    }

    /// Returns the function with this identifier.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|hash| hash.id() == id)
    }

    /// Returns the size of its values in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Returns the hash of `data`.
    pub fn digest(self, data: &[u8]) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match self {
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha384 => Sha384::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        })
    }

    /// Returns the HMAC of the parts, one after the other.
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

/// Returns true if two values are equal, in time that does not depend on the position of a
/// difference.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}
