//! The controller's side of a connection: initialisation, capsules in, grants of data transfer.
//!
//! Queues and commands are in [`crate::controller`]. Invariants: H2CData is accepted only against a
//! grant, in order and within it; only the caller, who owns the buffer, makes grants.

use super::decoder::{Header, Side};
use super::encoder::{Encoder, Prefix};
use super::receiver::{Received, Receiver};
use super::{Digests, Fatal};
use crate::capsule::{Cqe, Sqe};
use crate::pdu::{self, DataHeader, FatalStatus, Flags, IcReq, IcResp, Kind, R2t, TermReq};

/// Limits that a controller announces and enforces.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes of one H2CData PDU (MAXH2CDATA), a multiple of 4, at least 4,096.
    pub h2c_data_bytes_max: u32,
    /// Maximum bytes of in-capsule data.
    pub in_capsule_bytes_max: u32,
    /// Digests that the controller is willing to use.
    pub digests: Digests,
}

/// Destination of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The command that came in this very capsule.
    Capsule,
    /// The transfer granted under this tag.
    Transfer(u16),
}

/// Event for the connection's owner.
#[derive(Debug)]
pub enum Event<'a> {
    /// The host asked to initialise: send this reply first.
    Connected(Prefix),
    /// A command; when `data` is not 0, data for [`Target::Capsule`] follows before it may start.
    Command {
        /// The submission queue entry.
        sqe: Sqe,
        /// Bytes of in-capsule data.
        data: u32,
    },
    /// Data of a command.
    Data {
        /// Destination of the data.
        target: Target,
        /// Offset in bytes within the command's buffer.
        offset: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The data of one PDU is complete.
    DataEnd {
        /// Destination of the data.
        target: Target,
        /// The whole capsule or grant is complete.
        complete: bool,
        /// False when the data digest did not match: fail the command, keep the connection.
        digest_matches: bool,
    },
    /// The host terminated the connection.
    Terminated(TermReq),
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    cid: u16,
    next: u32,
    end: u32,
}

/// The controller's side of one connection.
#[derive(Debug)]
pub struct Connection {
    limits: Limits,
    receiver: Receiver<Target>,
    encoder: Encoder,
    transfers: Vec<Option<Transfer>>,
}

impl Connection {
    /// Returns a connection on which nothing has been received.
    pub fn new(limits: Limits) -> Self {
        let receiver = Receiver::new(Side::Controller);
        Self { limits, receiver, encoder: Encoder::default(), transfers: Vec::new() }
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
            Received::Data { destination: target, offset, bytes } => {
                Ok(Some(Event::Data { target, offset, bytes }))
            }
            Received::End { destination: target, digest_matches } => {
                let complete = self.finish(target);
                Ok(Some(Event::DataEnd { target, complete, digest_matches }))
            }
        }
    }

    /// Returns the destination of the next bytes of the stream if they are data: target, offset in
    /// the command's buffer, and number of bytes. The caller may receive them straight into the
    /// buffer.
    pub fn data_wanted(&self) -> Option<(Target, u32, usize)> {
        self.receiver.data_wanted()
    }

    /// Reports bytes that were received as [`Self::data_wanted`] asked.
    pub fn data_received(&mut self, bytes: &[u8]) {
        self.receiver.data_received(bytes);
    }

    /// Grants the host to send `length` bytes of command `cid` from `offset` of its buffer on:
    /// the tag of the transfer, and the R2T to send. The caller must own a buffer for them.
    pub fn grant(&mut self, cid: u16, offset: u32, length: u32) -> (u16, Prefix) {
        let free = self.transfers.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.transfers.push(None);
            self.transfers.len() - 1
        });
        let ttag = u16::try_from(index).expect("transfers are bounded by the queue's depth");
        self.transfers[index] = Some(Transfer { cid, next: offset, end: offset + length });
        let mut r2t = R2t::zeroed();
        r2t.set_cccid(cid).set_ttag(ttag).set_r2to(offset).set_r2tl(length);
        (ttag, self.encoder.prefix(Kind::R2T, Flags::default(), r2t.as_bytes(), 0))
    }

    /// Returns the response capsule of a completion.
    pub fn response(&self, cqe: &Cqe) -> Prefix {
        let mut header = [0; 24];
        header[8..].copy_from_slice(cqe.as_bytes());
        self.encoder.prefix(Kind::CAPSULE_RESP, Flags::default(), &header, 0)
    }

    /// Returns the bytes of a PDU before `length` bytes of data for command `cid`. `last` marks the
    /// command's final data; `success` replaces the response capsule.
    pub fn data_prefix(
        &self,
        cid: u16,
        offset: u32,
        length: u32,
        last: bool,
        success: bool,
    ) -> Prefix {
        let mut header = DataHeader::zeroed();
        header.set_cccid(cid).set_datao(offset).set_datal(length);
        let flags = Flags::default().with_last(u8::from(last)).with_success(u8::from(success));
        self.encoder.prefix(Kind::C2H_DATA, flags, header.as_bytes(), length)
    }

    /// Returns this side's encoder: prefix lengths and data digests.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Ends the PDU; returns true if the capsule or the whole grant is complete.
    fn finish(&mut self, target: Target) -> bool {
        let Target::Transfer(ttag) = target else { return true };
        let slot = &mut self.transfers[usize::from(ttag)];
        let complete = slot.is_some_and(|transfer| transfer.next == transfer.end);
        if complete {
            *slot = None;
        }
        complete
    }

    fn header(&mut self, header: &Header) -> Result<Event<'static>, Fatal> {
        match header.kind {
            Kind::IC_REQ => self.initialise(header),
            Kind::CAPSULE_CMD => {
                if header.data > self.limits.in_capsule_bytes_max {
                    return Err(header.fatal(FatalStatus::LIMIT_EXCEEDED, 0));
                }
                if header.data > 0 {
                    self.receiver.begin(Target::Capsule, 0);
                }
                let sqe = Sqe::parse(&header.bytes()[8..]).expect("a capsule header is 72 bytes");
                Ok(Event::Command { sqe, data: header.data })
            }
            Kind::H2C_DATA => {
                let (target, offset) = self.h2c_data(header)?;
                self.receiver.begin(target, offset);
                Ok(Event::Data { target, offset, bytes: &[] })
            }
            // The decoder lets nothing else of a host's through; its data is a header's copy.
            _ => {
                self.receiver.begin(Target::Capsule, 0);
                let request = TermReq::parse(header.bytes()).expect("at least 24 bytes");
                Ok(Event::Terminated(request))
            }
        }
    }

    fn initialise(&mut self, header: &Header) -> Result<Event<'static>, Fatal> {
        let request = IcReq::parse(header.bytes()).expect("an ICReq header is 128 bytes");
        if request.pfv() != 0 {
            return Err(header.fatal(FatalStatus::UNSUPPORTED_PARAMETER, 8));
        }
        if request.hpda() > pdu::ALIGNMENT_MAX {
            return Err(header.invalid(10));
        }
        let wanted = Digests::of(request.dgst());
        let willing = self.limits.digests;
        let digests =
            Digests { header: wanted.header && willing.header, data: wanted.data && willing.data };
        let mut response = IcResp::zeroed();
        response.set_dgst(digests.dgst()).set_maxh2cdata(self.limits.h2c_data_bytes_max);
        let reply = self.encoder.prefix(Kind::IC_RESP, Flags::default(), response.as_bytes(), 0);
        self.receiver.set_digests(digests);
        self.encoder = Encoder { digests, alignment: request.hpda() };
        Ok(Event::Connected(reply))
    }

    /// Returns the destination of the data of an H2CData PDU.
    fn h2c_data(&mut self, header: &Header) -> Result<(Target, u32), Fatal> {
        let data = DataHeader::parse(header.bytes()).expect("an H2CData header is 24 bytes");
        let slot = self.transfers.get_mut(usize::from(data.ttag()));
        let Some(transfer) = slot.and_then(Option::as_mut) else { return Err(header.invalid(10)) };
        if transfer.cid != data.cccid() {
            return Err(header.invalid(8));
        }
        if data.datal() != header.data || header.data == 0 {
            return Err(header.invalid(16));
        }
        if data.datal() > self.limits.h2c_data_bytes_max {
            return Err(header.fatal(FatalStatus::LIMIT_EXCEEDED, 0));
        }
        let end = transfer.next.checked_add(data.datal()).filter(|end| *end <= transfer.end);
        let (Some(end), true) = (end, data.datao() == transfer.next) else {
            return Err(header.fatal(FatalStatus::DATA_OUT_OF_RANGE, 0));
        };
        if (header.flags.last() == 1) != (end == transfer.end) {
            return Err(header.invalid(1));
        }
        transfer.next = end;
        Ok((Target::Transfer(data.ttag()), data.datao()))
    }
}
