//! Bytes of a connection: PDUs out of a stream and into it, for the controller's and the host's
//! side.
//!
//! Sockets, commands and their buffers belong to the callers. Invariants: a decoder consumes input
//! at any split with the same result; after a [`Fatal`] it accepts nothing more; data of a peer is
//! handed on before its digest is known, and [`decoder::Item::End`] reports the result of the
//! check.

pub mod controller;
pub mod decoder;
pub mod encoder;
pub mod host;
mod receiver;

use crate::pdu::{self, FatalStatus, Kind, TermReq};

/// Digests that a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// CRC-32C over every header.
    pub header: bool,
    /// CRC-32C over every PDU's data.
    pub data: bool,
}

impl Digests {
    /// Makes digests from the DGST field of ICReq and ICResp.
    pub const fn of(dgst: u8) -> Self {
        Self { header: dgst & pdu::DGST_HEADER != 0, data: dgst & pdu::DGST_DATA != 0 }
    }

    /// Returns the DGST field.
    pub const fn dgst(self) -> u8 {
        self.header as u8 * pdu::DGST_HEADER + self.data as u8 * pdu::DGST_DATA
    }
}

/// Size of a digest in bytes.
pub const DIGEST_BYTES: usize = 4;

/// A fatal transport error: the connection ends with a terminate request that carries it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transport error: {status}, information {information:#x}")]
pub struct Fatal {
    /// Fatal Error Status (FES).
    pub status: FatalStatus,
    /// Fatal Error Information (FEI): offset of the wrong field, or the received digest.
    pub information: u32,
    /// The offending header as far as it was received.
    pub header: Vec<u8>,
}

impl Fatal {
    /// Returns the terminate request; `kind` is that of the sending side.
    pub fn encode(&self, kind: Kind) -> Vec<u8> {
        let copied = self.header.len().min(pdu::TERM_DATA_BYTES_MAX);
        let mut request = TermReq::zeroed();
        request.set_fes(self.status.0).set_fei(self.information);
        let mut data = request.as_bytes().to_vec();
        data.extend_from_slice(&self.header[..copied]);
        let length = u32::try_from(data.len()).expect("at most 152 bytes");
        let mut common = pdu::CommonHeader::zeroed();
        common.set_kind(kind.0).set_hlen(24).set_plen(length);
        data[..8].copy_from_slice(common.as_bytes());
        data
    }
}
