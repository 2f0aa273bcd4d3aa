//! [`ObjectId`]: names the stored bytes of an object.

/// Identifier of the stored bytes of one put; the first 12 bytes of its chunks' keys. The top bit
/// of its first byte is set, which keeps chunk keys apart from catalogue keys and claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    /// Returns an identifier made of 12 random bytes.
    #[must_use]
    pub fn from_random(mut random: [u8; 12]) -> Self {
        random[0] |= 0x80;
        Self(random)
    }
}
