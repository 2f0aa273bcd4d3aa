//! One queue of a host: its connection, its commands in flight.
//!
//! Invariant: a slot is free, or one command is in flight in it; identifiers are slot numbers.

use crate::capsule::{Cqe, Sgl, Sqe};
use crate::pdu::{FatalStatus, TermReq};
use crate::tcp::encoder::Prefix;
use crate::tcp::host::{Connection, Event as Wire};
use crate::tcp::{Digests, Fatal};

/// Data that a command moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Size of the host's receive buffer in bytes.
    pub to_host: u32,
    /// Bytes to send.
    pub to_controller: u32,
    /// True to send them in the capsule, false to wait for a transfer request.
    pub in_capsule: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    busy: bool,
    transfer: Transfer,
    received: u32,
    requested: u32,
    damaged: bool,
}

/// A command's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Command identifier.
    pub cid: u16,
    /// The completion queue entry; made here if the SUCCESS flag stood for it.
    pub cqe: Cqe,
    /// Bytes received into the command's buffer.
    pub received: u32,
    /// A data digest did not match: the data must not be used.
    pub damaged: bool,
}

/// Event for the queue's owner.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection is initialised: Connect may be sent.
    Connected {
        /// Maximum bytes of one H2CData PDU.
        h2c_data_bytes_max: u32,
    },
    /// Data for a command's buffer.
    Data {
        /// Command identifier.
        cid: u16,
        /// Offset in the buffer.
        offset: u32,
        /// The bytes; may be empty at the start of a PDU.
        bytes: &'a [u8],
    },
    /// Send these bytes of the command's data, in PDUs that echo the tag.
    Send {
        /// Command identifier.
        cid: u16,
        /// Transfer tag.
        ttag: u16,
        /// Offset in the command's data.
        offset: u32,
        /// Number of bytes.
        length: u32,
    },
    /// A command is complete.
    Completed(Completion),
    /// The controller terminated the connection.
    Terminated(TermReq),
}

/// One queue.
#[derive(Debug)]
pub struct Queue {
    connection: Connection,
    slots: Vec<Slot>,
    free: Vec<u16>,
}

impl Queue {
    /// Returns a queue of `entries` (at least 2) commands, and the ICReq to send.
    ///
    /// One entry stays unused, as a ring of the standard has it.
    pub fn new(entries: u16, digests: Digests) -> (Self, Prefix) {
        assert!(entries >= 2, "a queue has at least two entries");
        let (connection, request) = Connection::new(digests);
        let slots = vec![Slot::default(); usize::from(entries) - 1];
        let free = (0..entries - 1).rev().collect();
        (Self { connection, slots, free }, request)
    }

    /// Returns the transport's side of the queue: prefixes and digests.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the number of commands that may still be begun.
    pub fn room(&self) -> usize {
        self.free.len()
    }

    /// Returns the number of commands in flight.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Begins a command: sets its identifier and data descriptor, and returns what to send before
    /// its in-capsule data. `None` when the queue is full.
    pub fn begin(&mut self, sqe: &mut Sqe, transfer: Transfer) -> Option<Prefix> {
        let cid = self.free.pop()?;
        self.slots[usize::from(cid)] = Slot { busy: true, transfer, ..Slot::default() };
        let in_capsule = if transfer.in_capsule { transfer.to_controller } else { 0 };
        let length = transfer.to_controller.max(transfer.to_host);
        let sgl = match in_capsule {
            0 => Sgl::transport(length),
            bytes => Sgl::in_capsule(bytes),
        };
        sqe.set_cid(cid).set_sgl(sgl);
        Some(self.connection.capsule(sqe, in_capsule))
    }

    /// Returns the place of the next bytes of the stream, if they are data of a command.
    pub fn data_wanted(&self) -> Option<(u16, u32, usize)> {
        self.connection.data_wanted()
    }

    /// Reports bytes that were received as [`Self::data_wanted`] asked.
    pub fn data_received(&mut self, bytes: &[u8]) {
        if let Some((cid, _, _)) = self.connection.data_wanted() {
            self.slots[usize::from(cid)].received += u32::try_from(bytes.len()).unwrap_or(0);
        }
        self.connection.data_received(bytes);
    }

    /// Returns the next event from the front of `input`; `None` when more input is needed.
    ///
    /// # Errors
    /// [`Fatal`] when the controller broke the rules: send its terminate request and close.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Fatal> {
        loop {
            let Some(event) = self.connection.next(input)? else { return Ok(None) };
            return Ok(Some(match event {
                Wire::Connected { h2c_data_bytes_max } => Event::Connected { h2c_data_bytes_max },
                Wire::Response(cqe) => Event::Completed(self.complete(cqe)?),
                Wire::Data { cid, offset, bytes } => {
                    self.data(cid, offset, bytes)?;
                    Event::Data { cid, offset, bytes }
                }
                Wire::DataEnd { cid, success, digest_matches } => {
                    let slot = self.slot(cid)?;
                    slot.damaged |= !digest_matches;
                    if !success {
                        continue;
                    }
                    let mut cqe = Cqe::zeroed();
                    cqe.set_cid(cid);
                    Event::Completed(self.complete(cqe)?)
                }
                Wire::ReadyToTransfer { cid, ttag, offset, length } => {
                    self.requested(cid, offset, length)?;
                    Event::Send { cid, ttag, offset, length }
                }
                Wire::Terminated(request) => Event::Terminated(request),
            }));
        }
    }

    fn slot(&mut self, cid: u16) -> Result<&mut Slot, Fatal> {
        let slot = self.slots.get_mut(usize::from(cid)).filter(|slot| slot.busy);
        slot.ok_or(fatal(FatalStatus::INVALID_HEADER_FIELD, 8))
    }

    fn data(&mut self, cid: u16, offset: u32, bytes: &[u8]) -> Result<(), Fatal> {
        // A data PDU announces itself with no bytes: its whole extent is checked here.
        let coming = u32::try_from(self.connection.data_coming()).unwrap_or(u32::MAX);
        let count = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let slot = self.slot(cid)?;
        let end = offset.checked_add(count.max(coming));
        if offset != slot.received || end.is_none_or(|end| end > slot.transfer.to_host) {
            return Err(fatal(FatalStatus::DATA_OUT_OF_RANGE, 0));
        }
        slot.received += count;
        Ok(())
    }

    fn requested(&mut self, cid: u16, offset: u32, length: u32) -> Result<(), Fatal> {
        let slot = self.slot(cid)?;
        let end = offset.checked_add(length).filter(|end| *end <= slot.transfer.to_controller);
        match end {
            Some(end) if offset == slot.requested && length > 0 && !slot.transfer.in_capsule => {
                slot.requested = end;
                Ok(())
            }
            _ => Err(fatal(FatalStatus::DATA_OUT_OF_RANGE, 0)),
        }
    }

    fn complete(&mut self, cqe: Cqe) -> Result<Completion, Fatal> {
        let cid = cqe.cid();
        let slot = self.slot(cid)?;
        let (received, damaged) = (slot.received, slot.damaged);
        slot.busy = false;
        self.free.push(cid);
        Ok(Completion { cid, cqe, received, damaged })
    }
}

fn fatal(status: FatalStatus, information: u32) -> Fatal {
    Fatal { status, information, header: Vec::new() }
}
