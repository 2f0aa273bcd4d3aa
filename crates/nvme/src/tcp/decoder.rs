//! Stream to PDUs: finds headers, checks them as far as a header alone allows, and hands data on in
//! place.
//!
//! The owner assigns PDUs to commands. Invariant: bytes of a data-bearing PDU are borrowed from the
//! input, never copied; a caller may also receive them straight into a command's buffer
//! ([`Decoder::data_left`], [`Decoder::data_received`]).

use super::{DIGEST_BYTES, Digests, Fatal};
use crate::pdu::{CommonHeader, FatalStatus, Flags, HEADER_BYTES_MAX, Kind, Shape};

/// The end of the connection that decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The host: receives what controllers send.
    Host,
    /// The controller: receives what hosts send.
    Controller,
}

impl Side {
    /// Returns true if this side may receive a PDU of this kind.
    fn receives(self, kind: Kind) -> bool {
        match kind {
            Kind::IC_REQ | Kind::H2C_TERM_REQ | Kind::CAPSULE_CMD | Kind::H2C_DATA => {
                self == Self::Controller
            }
            Kind::IC_RESP
            | Kind::C2H_TERM_REQ
            | Kind::CAPSULE_RESP
            | Kind::C2H_DATA
            | Kind::R2T => self == Self::Host,
            _ => false,
        }
    }

    /// Returns the PDU that must come first.
    fn first(self) -> Kind {
        match self {
            Self::Host => Kind::IC_RESP,
            Self::Controller => Kind::IC_REQ,
        }
    }
}

/// A whole header, checked for shape; `bytes` are HLEN bytes, digest not included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the PDU.
    pub kind: Kind,
    /// Flags of the common header.
    pub flags: Flags,
    /// Number of data bytes that follow.
    pub data: u32,
    bytes: [u8; HEADER_BYTES_MAX],
}

impl Header {
    /// Returns the header's bytes from offset 0; those past HLEN are zero.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns a fatal error in the field at this offset.
    pub fn invalid(&self, offset: u32) -> Fatal {
        self.fatal(FatalStatus::INVALID_HEADER_FIELD, offset)
    }

    /// Returns a fatal error in this PDU.
    pub fn fatal(&self, status: FatalStatus, information: u32) -> Fatal {
        let length = self.kind.shape().map_or(8, |shape| shape.header);
        Fatal { status, information, header: self.bytes[..length].to_vec() }
    }
}

/// Item found by the decoder.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A header; when its `data` is not 0, `Data` items and one `End` follow.
    Header(Header),
    /// The next bytes of the current PDU's data.
    Data(&'a [u8]),
    /// The current PDU's data is complete.
    End {
        /// False when the data digest did not match.
        digest_matches: bool,
    },
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Header,
    Padding { left: usize, data: u32 },
    Data { left: usize, odd: usize, crc: u32 },
    Digest { odd: usize, crc: u32 },
    Failed,
}

impl Phase {
    /// Returns the state at the start of `bytes` bytes of data; `odd` is the number of bytes in
    /// their last dword.
    fn data(bytes: u32) -> Self {
        Self::Data { left: bytes as usize, odd: bytes as usize % 4, crc: 0 }
    }
}

/// The decoder of one direction of one connection.
#[derive(Debug)]
pub struct Decoder {
    side: Side,
    digests: Digests,
    first: bool,
    phase: Phase,
    // A header with its digest, or a data digest, as far as received.
    stash: [u8; HEADER_BYTES_MAX + DIGEST_BYTES],
    have: usize,
}

impl Decoder {
    /// Returns a decoder at the start of a connection.
    pub fn new(side: Side) -> Self {
        let stash = [0; HEADER_BYTES_MAX + DIGEST_BYTES];
        let digests = Digests::default();
        Self { side, digests, first: true, phase: Phase::Header, stash, have: 0 }
    }

    /// Sets the digests agreed on; called once, right after ICReq or ICResp.
    pub fn set_digests(&mut self, digests: Digests) {
        self.digests = digests;
    }

    /// Ends decoding after the connection's owner found a violation.
    pub fn fail(&mut self) {
        self.phase = Phase::Failed;
    }

    /// Returns the next item, taken from the front of `input`; `None` when more input is needed.
    ///
    /// # Errors
    /// [`Fatal`] when a header breaks the rules; nothing is decoded after it.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Item<'a>>, Fatal> {
        loop {
            match self.phase {
                Phase::Failed => return Ok(None),
                Phase::Header => match self.header(input) {
                    Ok(None) => return Ok(None),
                    Ok(Some(header)) => return Ok(Some(Item::Header(header))),
                    Err(fatal) => {
                        self.phase = Phase::Failed;
                        return Err(fatal);
                    }
                },
                Phase::Padding { left, data } => {
                    let count = left.min(input.len());
                    *input = &input[count..];
                    if count < left {
                        self.phase = Phase::Padding { left: left - count, data };
                        return Ok(None);
                    }
                    self.phase = Phase::data(data);
                }
                Phase::Data { left, .. } => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let (data, rest) = input.split_at(left.min(input.len()));
                    *input = rest;
                    self.data_received(data);
                    return Ok(Some(Item::Data(data)));
                }
                Phase::Digest { odd, crc } => return Ok(self.data_digest(odd, crc, input)),
            }
        }
    }

    /// Returns the number of data bytes of the current PDU that are still to come; 0 outside data.
    /// A caller may receive up to that many bytes elsewhere and report them.
    pub fn data_left(&self) -> usize {
        match self.phase {
            Phase::Data { left, .. } => left,
            _ => 0,
        }
    }

    /// Returns the number of data bytes of the current PDU that are still to come, also while its
    /// padding is.
    pub fn data_coming(&self) -> usize {
        match self.phase {
            Phase::Padding { data, .. } => data as usize,
            _ => self.data_left(),
        }
    }

    /// Reports data that was received straight into a command's buffer.
    ///
    /// # Panics
    /// When `data` is longer than [`Self::data_left`].
    pub fn data_received(&mut self, data: &[u8]) {
        let Phase::Data { left, odd, crc } = self.phase else {
            panic!("data reported outside of data")
        };
        assert!(data.len() <= left, "more data reported than the PDU has");
        let crc = if self.digests.data { crc32c::crc32c_append(crc, data) } else { 0 };
        let left = left - data.len();
        self.phase = match left {
            0 => Phase::Digest { odd, crc },
            left => Phase::Data { left, odd, crc },
        };
    }

    /// Fills the stash up to `target` bytes; returns true if it is full.
    fn fill(&mut self, target: usize, input: &mut &[u8]) -> bool {
        let count = target.saturating_sub(self.have).min(input.len());
        self.stash[self.have..self.have + count].copy_from_slice(&input[..count]);
        self.have += count;
        *input = &input[count..];
        self.have >= target
    }

    /// Returns the data digest of the data, or of the data with zeros up to a multiple of 4 bytes:
    /// the standard can be read both ways, Linux sends the one and SPDK the other.
    fn data_digest<'a>(&mut self, odd: usize, crc: u32, input: &mut &'a [u8]) -> Option<Item<'a>> {
        let mut digest_matches = true;
        if self.digests.data {
            if !self.fill(DIGEST_BYTES, input) {
                return None;
            }
            let padded = crc32c::crc32c_append(crc, &[0; 3][..(4 - odd) % 4]);
            let received = &self.stash[..DIGEST_BYTES];
            digest_matches = received == crc.to_le_bytes() || received == padded.to_le_bytes();
        }
        self.have = 0;
        self.phase = Phase::Header;
        Some(Item::End { digest_matches })
    }

    /// Returns a header that lies whole in `input`, if none of it was received before; `None`
    /// otherwise, or if anything is wrong with it: [`Self::header`] then finds the error.
    fn whole_header(&mut self, input: &mut &[u8]) -> Option<Header> {
        if self.have > 0 || self.first || self.digests.header {
            return None;
        }
        let common = CommonHeader::parse(input)?;
        let shape = self.check_common(&common).ok()?;
        let (padding, data) = self.check_lengths(&common, shape, shape.header).ok()?;
        let (header, rest) = input.split_at_checked(shape.header)?;
        *input = rest;
        Some(self.accept(&common, header, padding, data))
    }

    fn header(&mut self, input: &mut &[u8]) -> Result<Option<Header>, Fatal> {
        if let Some(header) = self.whole_header(input) {
            return Ok(Some(header));
        }
        if !self.fill(CommonHeader::SIZE, input) {
            return Ok(None);
        }
        let common = CommonHeader::parse(&self.stash).expect("the stash is larger");
        let shape = self.check_common(&common)?;
        let digest = if shape.header_digest && self.digests.header { DIGEST_BYTES } else { 0 };
        let (padding, data) = self.check_lengths(&common, shape, shape.header + digest)?;
        if !self.fill(shape.header + digest, input) {
            return Ok(None);
        }
        if digest > 0 {
            self.check_digest(shape.header)?;
        }
        let stash = self.stash;
        Ok(Some(self.accept(&common, &stash[..shape.header], padding, data)))
    }

    /// Moves to the state that follows a valid header.
    fn accept(
        &mut self,
        common: &CommonHeader,
        header: &[u8],
        padding: usize,
        data: u32,
    ) -> Header {
        let mut bytes = [0; HEADER_BYTES_MAX];
        bytes[..header.len()].copy_from_slice(header);
        self.first = false;
        self.have = 0;
        if data > 0 {
            self.phase = match padding {
                0 => Phase::data(data),
                left => Phase::Padding { left, data },
            };
        }
        Header { kind: Kind(common.kind()), flags: Flags(common.flags()), data, bytes }
    }

    fn fatal(&self, status: FatalStatus, information: u32) -> Fatal {
        Fatal { status, information, header: self.stash[..self.have].to_vec() }
    }

    fn check_common(&self, common: &CommonHeader) -> Result<Shape, Fatal> {
        let kind = Kind(common.kind());
        let invalid = |offset| self.fatal(FatalStatus::INVALID_HEADER_FIELD, offset);
        let shape = kind.shape().ok_or_else(|| invalid(0))?;
        if !self.side.receives(kind) {
            return Err(invalid(0));
        }
        let terminate = matches!(kind, Kind::H2C_TERM_REQ | Kind::C2H_TERM_REQ);
        if self.first != (kind == self.side.first()) && !terminate {
            return Err(self.fatal(FatalStatus::SEQUENCE_ERROR, 0));
        }
        if usize::from(common.hlen()) != shape.header {
            return Err(invalid(2));
        }
        // The flags of PDUs that have no such digest are reserved.
        let flags = Flags(common.flags());
        if shape.header_digest && (flags.header_digest() == 1) != self.digests.header {
            return Err(invalid(1));
        }
        if shape.data_digest() && flags.data_digest() == 1 && !self.digests.data {
            return Err(invalid(1));
        }
        Ok(shape)
    }

    /// Checks the lengths of a PDU whose header with digest has `head` bytes; returns padding and
    /// data length.
    fn check_lengths(
        &self,
        common: &CommonHeader,
        shape: Shape,
        head: usize,
    ) -> Result<(usize, u32), Fatal> {
        let invalid = |offset| self.fatal(FatalStatus::INVALID_HEADER_FIELD, offset);
        let plen = common.plen() as usize;
        // PDO is reserved in terminate requests: their data follows the header.
        let pdo = if shape.data_digest() { usize::from(common.pdo()) } else { head };
        if plen == head {
            return Ok((0, 0)); // no data; PDO says nothing
        }
        if !shape.data || plen < head {
            return Err(invalid(4));
        }
        if pdo < head || pdo > plen {
            return Err(invalid(3));
        }
        let digest = if shape.data_digest() && self.digests.data { DIGEST_BYTES } else { 0 };
        if digest > 0 && Flags(common.flags()).data_digest() == 0 {
            return Err(invalid(1));
        }
        match (plen - pdo).checked_sub(digest) {
            Some(data) if data > 0 => Ok((pdo - head, u32::try_from(data).expect("PLEN is u32"))),
            _ => Err(invalid(4)),
        }
    }

    fn check_digest(&self, header: usize) -> Result<(), Fatal> {
        let received = &self.stash[header..header + DIGEST_BYTES];
        if received == crc32c::crc32c(&self.stash[..header]).to_le_bytes() {
            return Ok(());
        }
        let received = u32::from_le_bytes(crate::wire::take(received, 0));
        Err(self.fatal(FatalStatus::HEADER_DIGEST_ERROR, received))
    }
}
