//! The PDUs of NVMe/TCP: headers, flags and what may stand in them.
//!
//! Source: NVM Express TCP Transport Specification 1.1, "PDU Formats". Streams are parsed in
//! [`crate::tcp`]. Invariant: a header's length is a function of its type.

use crate::wire::{bits, codes, layout};

codes! {
    /// PDU type, byte 0 of the common header.
    pub struct Kind: u8 {
        IC_REQ = 0x00: "Initialize Connection Request",
        IC_RESP = 0x01: "Initialize Connection Response",
        H2C_TERM_REQ = 0x02: "Host to Controller Terminate Connection Request",
        C2H_TERM_REQ = 0x03: "Controller to Host Terminate Connection Request",
        CAPSULE_CMD = 0x04: "Command Capsule",
        CAPSULE_RESP = 0x05: "Response Capsule",
        H2C_DATA = 0x06: "Host to Controller Data",
        C2H_DATA = 0x07: "Controller to Host Data",
        R2T = 0x09: "Ready to Transfer",
    }
}

/// Properties that the type of a PDU fixes: header length, and permitted digests and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// PDU Header Length (HLEN) in bytes.
    pub header: usize,
    /// A header digest is there when the connection uses header digests.
    pub header_digest: bool,
    /// The PDU may carry data, with a data digest when the connection uses those.
    pub data: bool,
}

impl Shape {
    /// Returns true if a data digest is there when the PDU carries data and the connection uses
    /// data digests: of all PDUs with data but terminate requests.
    pub const fn data_digest(self) -> bool {
        self.data && self.header_digest
    }
}

impl Kind {
    /// Returns the shape of a known type; `None` for a reserved one.
    pub const fn shape(self) -> Option<Shape> {
        let (header, header_digest, data) = match self {
            Self::IC_REQ | Self::IC_RESP => (128, false, false),
            Self::H2C_TERM_REQ | Self::C2H_TERM_REQ => (24, false, true),
            Self::CAPSULE_CMD => (72, true, true),
            Self::H2C_DATA | Self::C2H_DATA => (24, true, true),
            Self::CAPSULE_RESP | Self::R2T => (24, true, false),
            _ => return None,
        };
        Some(Shape { header, header_digest, data })
    }
}

bits! {
    /// Flags, byte 1 of the common header.
    pub struct Flags: u8 {
        /// Header Digest is present (HDGSTF).
        header_digest / with_header_digest: 0..=0,
        /// Data Digest is present (DDGSTF).
        data_digest / with_data_digest: 1..=1,
        /// Last Data PDU of the command's data (LAST_PDU).
        last / with_last: 2..=2,
        /// Command completed with success, no response capsule follows (SUCCESS).
        success / with_success: 3..=3,
    }
}

layout! {
    /// Common Header (CH) of every PDU.
    pub struct CommonHeader[8] {
        /// PDU type.
        kind / set_kind: u8 @ 0,
        /// Flags.
        flags / set_flags: u8 @ 1,
        /// PDU Header Length (HLEN), without digest.
        hlen / set_hlen: u8 @ 2,
        /// PDU Data Offset (PDO), 0 without data.
        pdo / set_pdo: u8 @ 3,
        /// PDU Length (PLEN): header, digests, padding and data.
        plen / set_plen: u32 @ 4,
    }
}

layout! {
    /// Initialize Connection Request (ICReq).
    pub struct IcReq[128] {
        /// PDU Format Version (PFV), 0.
        pfv / set_pfv: u16 @ 8,
        /// Host PDU Data Alignment (HPDA), 0's based, in dwords.
        hpda / set_hpda: u8 @ 10,
        /// Digests wanted: bit 0 header, bit 1 data.
        dgst / set_dgst: u8 @ 11,
        /// Maximum outstanding R2Ts per command (MAXR2T), 0's based.
        maxr2t / set_maxr2t: u32 @ 12,
    }
}

layout! {
    /// Initialize Connection Response (ICResp).
    pub struct IcResp[128] {
        /// PDU Format Version (PFV), 0.
        pfv / set_pfv: u16 @ 8,
        /// Controller PDU Data Alignment (CPDA), 0's based, in dwords.
        cpda / set_cpda: u8 @ 10,
        /// Digests in use: bit 0 header, bit 1 data.
        dgst / set_dgst: u8 @ 11,
        /// Maximum Host to Controller data per PDU (MAXH2CDATA) in bytes.
        maxh2cdata / set_maxh2cdata: u32 @ 12,
    }
}

layout! {
    /// Terminate Connection Request of either side; a copy of the offending header follows.
    pub struct TermReq[24] {
        /// Fatal Error Status (FES).
        fes / set_fes: u16 @ 8,
        /// Fatal Error Information (FEI).
        fei / set_fei: u32 @ 10,
    }
}

layout! {
    /// Data transfer header: H2CData and C2HData share it (TTAG is reserved in C2HData).
    pub struct DataHeader[24] {
        /// Command Capsule Command Identifier (CCCID).
        cccid / set_cccid: u16 @ 8,
        /// Transfer Tag (TTAG), echoed from the R2T.
        ttag / set_ttag: u16 @ 10,
        /// Data Offset (DATAO) in bytes from the start of the command's buffer.
        datao / set_datao: u32 @ 12,
        /// Data Length (DATAL) in bytes.
        datal / set_datal: u32 @ 16,
    }
}

layout! {
    /// Ready to Transfer (R2T).
    pub struct R2t[24] {
        /// Command Capsule Command Identifier (CCCID).
        cccid / set_cccid: u16 @ 8,
        /// Transfer Tag (TTAG) to be echoed.
        ttag / set_ttag: u16 @ 10,
        /// Requested Data Offset (R2TO) in bytes.
        r2to / set_r2to: u32 @ 12,
        /// Requested Data Length (R2TL) in bytes.
        r2tl / set_r2tl: u32 @ 16,
    }
}

/// Maximum header length, that of ICReq and ICResp.
pub const HEADER_BYTES_MAX: usize = 128;
/// Maximum bytes of the offending header that a terminate request carries.
pub const TERM_DATA_BYTES_MAX: usize = 128;
/// Largest PDU Data Alignment value (HPDA, CPDA), 0's based dwords.
pub const ALIGNMENT_MAX: u8 = 31;
/// Bit of `dgst` that asks for header digests.
pub const DGST_HEADER: u8 = 1;
/// Bit of `dgst` that asks for data digests.
pub const DGST_DATA: u8 = 2;

codes! {
    /// Fatal Error Status (FES) of a terminate request.
    pub struct FatalStatus: u16 {
        INVALID_HEADER_FIELD = 0x01: "Invalid PDU Header Field",
        SEQUENCE_ERROR = 0x02: "PDU Sequence Error",
        HEADER_DIGEST_ERROR = 0x03: "Header Digest Error",
        DATA_OUT_OF_RANGE = 0x04: "Data Transfer Out of Range",
        LIMIT_EXCEEDED = 0x05: "Data Transfer Limit Exceeded or R2T Limit Exceeded",
        UNSUPPORTED_PARAMETER = 0x06: "Unsupported Parameter",
    }
}
