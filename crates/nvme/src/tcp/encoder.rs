//! PDUs to bytes: the part of a PDU before its data, in one small array.
//!
//! The data itself is sent from the command's own buffer. Encoding does not allocate.

use super::{DIGEST_BYTES, Digests};
use crate::pdu::{CommonHeader, Flags, Kind};

/// Maximum prefix length: alignment is at most 128 bytes, and no header with its digest is longer.
pub const PREFIX_BYTES_MAX: usize = 128;

/// The part of a PDU before its data: header, header digest, padding.
#[derive(Clone, Copy)]
pub struct Prefix {
    bytes: [u8; PREFIX_BYTES_MAX],
    length: usize,
}

impl core::ops::Deref for Prefix {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl core::fmt::Debug for Prefix {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Prefix({:02x?})", &self[..])
    }
}

/// Encoding parameters of one direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoder {
    /// Digests in use.
    pub digests: Digests,
    /// Alignment of data, 0's based dwords (CPDA or HPDA of the peer).
    pub alignment: u8,
}

impl Encoder {
    /// Returns the length of the prefix of a PDU of this kind that carries `data` bytes.
    pub fn prefix_length(&self, kind: Kind, data: u32) -> usize {
        let shape = kind.shape().expect("a kind of ours");
        let digest = if shape.header_digest && self.digests.header { DIGEST_BYTES } else { 0 };
        let head = shape.header + digest;
        match data {
            0 => head,
            _ => head.next_multiple_of((usize::from(self.alignment) + 1) * 4),
        }
    }

    /// Returns the prefix of a PDU: `header` with its common header, digest and padding filled in.
    ///
    /// # Panics
    /// If `header` does not have the kind's length: a bug of ours.
    pub fn prefix(&self, kind: Kind, flags: Flags, header: &[u8], data: u32) -> Prefix {
        let shape = kind.shape().expect("a kind of ours");
        assert_eq!(header.len(), shape.header, "header of another kind");
        let length = self.prefix_length(kind, data);
        let header_digest = shape.header_digest && self.digests.header;
        let data_digest = shape.data && self.digests.data && data > 0;
        let flags = flags
            .with_header_digest(u8::from(header_digest))
            .with_data_digest(u8::from(data_digest));
        let digest = if data_digest { 4 } else { 0 };
        let mut common = CommonHeader::zeroed();
        #[allow(clippy::cast_possible_truncation)] // lengths are at most 128
        common.set_kind(kind.0).set_flags(flags.0).set_hlen(header.len() as u8);
        #[allow(clippy::cast_possible_truncation)]
        common.set_pdo(if data > 0 { length as u8 } else { 0 });
        #[allow(clippy::cast_possible_truncation)]
        common.set_plen(length as u32 + data + digest);
        let mut bytes = [0; PREFIX_BYTES_MAX];
        bytes[..header.len()].copy_from_slice(header);
        bytes[..CommonHeader::SIZE].copy_from_slice(common.as_bytes());
        if header_digest {
            let crc = crc32c::crc32c(&bytes[..header.len()]).to_le_bytes();
            bytes[header.len()..header.len() + DIGEST_BYTES].copy_from_slice(&crc);
        }
        Prefix { bytes, length }
    }

    /// Returns the digest that follows the data, if the connection uses data digests.
    pub fn data_digest<'a>(&self, data: impl IntoIterator<Item = &'a [u8]>) -> Option<[u8; 4]> {
        self.digests.data.then(|| data.into_iter().fold(0, crc32c::crc32c_append).to_le_bytes())
    }
}
