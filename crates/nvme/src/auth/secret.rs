//! A secret and its text: `DHHC-1:<hash>:<base64 of key and CRC-32>:`.
//!
//! Source: NVM Express Base Specification 2.2, "DH-HMAC-CHAP Secret". Only [`Secret::to_text`]
//! prints a key. Invariants: a key has 32, 48 or 64 bytes, and the length of its hash if it names
//! one; it is wiped when dropped.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::Hash;
use super::hash::same;

/// First characters of the text of every secret.
pub const PREFIX: &str = "DHHC-1:";
const CRC_BYTES: usize = 4;

/// A secret of a host or of a controller.
#[derive(Clone)]
pub struct Secret {
    hash: Option<Hash>,
    key: Zeroizing<Vec<u8>>,
}

/// Error in the text of a secret. Contains no part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The text does not have the form of a secret.
    #[error("a secret is DHHC-1:<hash>:<base64>:")]
    Form,
    /// The hash is not one of 00 to 03.
    #[error("a secret's hash is 00, 01, 02 or 03")]
    Hash,
    /// The key is not base64.
    #[error("the secret's key is not base64")]
    Base64,
    /// The key does not have 32, 48 or 64 bytes, or not the length of its hash.
    #[error("a secret's key has 32, 48 or 64 bytes, as many as its hash")]
    Length,
    /// The checksum does not match: a character was mistyped.
    #[error("the secret's checksum does not hold: a character is wrong")]
    Checksum,
}

impl Secret {
    /// Makes a secret from a key and the hash that transforms it (`None`: the key is used
    /// unchanged).
    ///
    /// # Errors
    /// [`Invalid::Length`].
    pub fn new(hash: Option<Hash>, key: &[u8]) -> Result<Self, Invalid> {
        let fits = hash.map_or(matches!(key.len(), 32 | 48 | 64), |h| h.bytes() == key.len());
        if !fits {
            return Err(Invalid::Length);
        }
        Ok(Self { hash, key: Zeroizing::new(key.to_vec()) })
    }

    /// Parses a secret's text.
    ///
    /// # Errors
    /// [`Invalid`].
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let rest = text.strip_prefix(PREFIX).ok_or(Invalid::Form)?;
        let (hash, rest) = rest.split_once(':').ok_or(Invalid::Form)?;
        let key = rest.strip_suffix(':').ok_or(Invalid::Form)?;
        let hash = match hash {
            "00" => None,
            "01" => Some(Hash::Sha256),
            "02" => Some(Hash::Sha384),
            "03" => Some(Hash::Sha512),
            _ => return Err(Invalid::Hash),
        };
        let data = Zeroizing::new(STANDARD.decode(key).map_err(|_| Invalid::Base64)?);
        let (key, crc) = data.split_last_chunk::<CRC_BYTES>().ok_or(Invalid::Length)?;
        let secret = Self::new(hash, key)?;
        if crc32fast::hash(key).to_le_bytes() != *crc {
            return Err(Invalid::Checksum);
        }
        Ok(secret)
    }

    /// Returns the text. It contains the secret itself, for its owner only.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut data = Zeroizing::new(Vec::with_capacity(self.key.len() + CRC_BYTES));
        data.extend_from_slice(&self.key);
        data.extend_from_slice(&crc32fast::hash(&self.key).to_le_bytes());
        let key = Zeroizing::new(STANDARD.encode(&*data));
        let id = self.hash.map_or(0, Hash::id);
        Zeroizing::new(format!("{PREFIX}{id:02}:{}:", *key))
    }

    /// Returns the key transformed for its owner's NQN.
    pub fn transformed(&self, nqn: &str) -> Zeroizing<Vec<u8>> {
        match self.hash {
            Some(hash) => hash.hmac(&self.key, &[nqn.as_bytes(), b"NVMe-over-Fabrics"]),
            None => self.key.clone(),
        }
    }

    /// Returns the hash that transforms it.
    pub fn hash(&self) -> Option<Hash> {
        self.hash
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && same(&self.key, &other.key)
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_and_mistakes_named() {
        for (hash, bytes) in [(None, 48), (Some(Hash::Sha256), 32), (Some(Hash::Sha512), 64)] {
            let secret = Secret::new(hash, &vec![0x5A; bytes]).unwrap();
            assert_eq!(Secret::parse(&secret.to_text()).unwrap(), secret);
            assert_eq!(format!("{secret:?}"), "Secret(..)");
        }
        let text = Secret::new(Some(Hash::Sha256), &[7; 32]).unwrap().to_text();
        let wrong = |text: &str| Secret::parse(text).unwrap_err();
        assert_eq!(wrong(&text[..text.len() - 1]), Invalid::Form);
        assert_eq!(wrong(&text.replace("DHHC-1", "DHHC-2")), Invalid::Form);
        assert_eq!(wrong(&text.replace(":01:", ":04:")), Invalid::Hash);
        assert_eq!(wrong(&text.replace(":01:", ":1:")), Invalid::Hash);
        assert_eq!(wrong(&text.replace(":01:", ":02:")), Invalid::Length);
        assert_eq!(wrong("DHHC-1:01:AAAA:"), Invalid::Length);
        assert_eq!(wrong("DHHC-1:01:!:"), Invalid::Base64);
        assert_eq!(wrong(&text.replacen("Bw", "Cw", 1)), Invalid::Checksum);
        assert_eq!(Secret::new(Some(Hash::Sha384), &[0; 32]), Err(Invalid::Length));
    }
}
