//! The host's side of a connection: initialisation, capsules out, data both ways.
//!
//! Queues and commands are in [`crate::host`]; this module parses every PDU that a controller may
//! send. Invariant: nothing is sent before ICResp has come.

use super::decoder::{Header, Side};
use super::encoder::{Encoder, Prefix};
use super::receiver::{Received, Receiver};
use super::{Digests, Fatal};
use crate::capsule::{Cqe, Sqe};
use crate::pdu::{self, DataHeader, FatalStatus, Flags, IcReq, IcResp, Kind, R2t, TermReq};

/// Minimum MAXH2CDATA that a host accepts.
const H2C_DATA_BYTES_MIN: u32 = 4096;

/// Event for the connection's owner.
#[derive(Debug)]
pub enum Event<'a> {
    /// The controller answered: commands may be sent.
    Connected {
        /// Maximum bytes of one H2CData PDU.
        h2c_data_bytes_max: u32,
    },
    /// A response capsule.
    Response(Cqe),
    /// Data of command `cid`.
    Data {
        /// Command identifier.
        cid: u16,
        /// Offset in bytes within the command's buffer.
        offset: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The data of one PDU is complete.
    DataEnd {
        /// Command identifier.
        cid: u16,
        /// The command completed with success; no response capsule follows.
        success: bool,
        /// False when the data digest did not match.
        digest_matches: bool,
    },
    /// The controller is ready for `length` bytes of command `cid` from `offset` on.
    ReadyToTransfer {
        /// Command identifier.
        cid: u16,
        /// Transfer tag to echo.
        ttag: u16,
        /// Offset in bytes within the command's buffer.
        offset: u32,
        /// Number of bytes.
        length: u32,
    },
    /// The controller terminated the connection.
    Terminated(TermReq),
}

/// Destination of data.
#[derive(Clone, Copy, Debug)]
struct Destination {
    cid: u16,
    // The data's end stands for the response.
    success: bool,
}

/// The host's side of one connection.
#[derive(Debug)]
pub struct Connection {
    wanted: Digests,
    receiver: Receiver<Destination>,
    encoder: Encoder,
}

impl Connection {
    /// Returns a connection that will ask for these digests, and the ICReq to send.
    pub fn new(digests: Digests) -> (Self, Prefix) {
        let mut request = IcReq::zeroed();
        request.set_dgst(digests.dgst());
        let encoder = Encoder::default();
        let prefix = encoder.prefix(Kind::IC_REQ, Flags::default(), request.as_bytes(), 0);
        (Self { wanted: digests, receiver: Receiver::new(Side::Host), encoder }, prefix)
    }

    /// Returns the next event from the front of `input`; `None` when more input is needed.
    ///
    /// # Errors
    /// [`Fatal`]: send its terminate request and close.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Fatal> {
        let Some(received) = self.receiver.next(input)? else { return Ok(None) };
        match received {
            Received::Header(header) => {
                let event = self.header(&header);
                self.receiver.judged(event)
            }
            Received::Data { destination, offset, bytes } => {
                Ok(Some(Event::Data { cid: destination.cid, offset, bytes }))
            }
            Received::End { destination: Destination { cid, success }, digest_matches } => {
                Ok(Some(Event::DataEnd { cid, success, digest_matches }))
            }
        }
    }

    /// Returns the destination of the next bytes of the stream if they are data: command, offset in
    /// its buffer, number of bytes. The caller may receive them straight into the buffer.
    pub fn data_wanted(&self) -> Option<(u16, u32, usize)> {
        let (destination, offset, left) = self.receiver.data_wanted()?;
        Some((destination.cid, offset, left))
    }

    /// Returns the bytes of the current PDU's data that have not been handed on.
    pub fn data_coming(&self) -> usize {
        self.receiver.data_coming()
    }

    /// Reports bytes that were received as [`Self::data_wanted`] asked.
    pub fn data_received(&mut self, bytes: &[u8]) {
        self.receiver.data_received(bytes);
    }

    /// Returns the bytes before the in-capsule data of a command; the whole capsule if `data` is 0.
    pub fn capsule(&self, sqe: &Sqe, data: u32) -> Prefix {
        let mut header = [0; 72];
        header[8..].copy_from_slice(sqe.as_bytes());
        self.encoder.prefix(Kind::CAPSULE_CMD, Flags::default(), &header, data)
    }

    /// Returns the bytes of a PDU before `length` bytes of data for a transfer; `last` marks its
    /// final PDU.
    pub fn data_prefix(&self, cid: u16, ttag: u16, offset: u32, length: u32, last: bool) -> Prefix {
        let mut header = DataHeader::zeroed();
        header.set_cccid(cid).set_ttag(ttag).set_datao(offset).set_datal(length);
        let flags = Flags::default().with_last(u8::from(last));
        self.encoder.prefix(Kind::H2C_DATA, flags, header.as_bytes(), length)
    }

    /// Returns this side's encoder: prefix lengths and data digests.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    fn header(&mut self, header: &Header) -> Result<Event<'static>, Fatal> {
        match header.kind {
            Kind::IC_RESP => self.initialise(header),
            Kind::CAPSULE_RESP => {
                let cqe = Cqe::parse(&header.bytes()[8..]).expect("a response is 24 bytes");
                Ok(Event::Response(cqe))
            }
            Kind::R2T => {
                let r2t = R2t::parse(header.bytes()).expect("an R2T header is 24 bytes");
                let (cid, ttag) = (r2t.cccid(), r2t.ttag());
                let (offset, length) = (r2t.r2to(), r2t.r2tl());
                Ok(Event::ReadyToTransfer { cid, ttag, offset, length })
            }
            Kind::C2H_DATA => self.c2h_data(header),
            // The decoder refuses every other PDU of a controller.
            _ => {
                self.receiver.begin(Destination { cid: 0, success: false }, 0);
                let request = TermReq::parse(header.bytes()).expect("at least 24 bytes");
                Ok(Event::Terminated(request))
            }
        }
    }

    fn initialise(&mut self, header: &Header) -> Result<Event<'static>, Fatal> {
        let response = IcResp::parse(header.bytes()).expect("an ICResp header is 128 bytes");
        if response.pfv() != 0 {
            return Err(header.fatal(FatalStatus::UNSUPPORTED_PARAMETER, 8));
        }
        if response.cpda() > pdu::ALIGNMENT_MAX {
            return Err(header.invalid(10));
        }
        let digests = Digests::of(response.dgst());
        if (digests.header && !self.wanted.header) || (digests.data && !self.wanted.data) {
            return Err(header.invalid(11));
        }
        if response.maxh2cdata() < H2C_DATA_BYTES_MIN {
            return Err(header.invalid(12));
        }
        self.receiver.set_digests(digests);
        self.encoder = Encoder { digests, alignment: response.cpda() };
        Ok(Event::Connected { h2c_data_bytes_max: response.maxh2cdata() })
    }

    fn c2h_data(&mut self, header: &Header) -> Result<Event<'static>, Fatal> {
        let data = DataHeader::parse(header.bytes()).expect("a C2HData header is 24 bytes");
        if data.datal() != header.data || header.data == 0 {
            return Err(header.invalid(16));
        }
        if data.datao().checked_add(data.datal()).is_none() {
            return Err(header.fatal(FatalStatus::DATA_OUT_OF_RANGE, 0));
        }
        if header.flags.success() == 1 && header.flags.last() == 0 {
            return Err(header.invalid(1));
        }
        let (cid, offset) = (data.cccid(), data.datao());
        self.receiver.begin(Destination { cid, success: header.flags.success() == 1 }, offset);
        Ok(Event::Data { cid, offset, bytes: &[] })
    }
}
