//! Receiving: bytes to protocol data units to commands that are begun.
//!
//! Never: meaning of a command. Invariants: bytes are received only when there is room for what
//! they may bring; long data goes from the socket straight to its place.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::queue::{Permit, Refusal};
use csd_nvme::nvm::Fused;
use csd_nvme::status::Status;
use csd_nvme::tcp::controller::{Event, Target};
use csd_reactor::Buffer;

use super::super::command::{Received, fail};
use super::super::link::Link;
use super::super::now;
use super::super::session::{Session, now_ms};
use super::{Capsule, Connection, End};
use crate::log::Level;

/// Data of at least this many bytes is received straight into its buffer.
const DIRECT_BYTES_MIN: usize = 8 << 10;

impl<S, F> Connection<S, F>
where
    S: Fn(Rc<Link>, Received, bool) -> F,
    F: Future<Output = ()>,
{
    /// Receives once; true when there was something.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.link.is_congested() || self.link.is_laden() || self.pool.is_full() {
            return Ok(false);
        }
        loop {
            let count = match self.wanted_directly() {
                Some((ttag, offset, most)) => self.receive_direct(ttag, offset, most, cx)?,
                None => self.receive_parsed(cx)?,
            };
            match count {
                Some(0) => return Err(End::Closed),
                Some(_) => {
                    self.heard();
                    return Ok(true);
                }
                None => match self.stream.poll_readable(cx) {
                    Poll::Ready(ready) => ready?,
                    Poll::Pending => return Ok(false),
                },
            }
        }
    }

    fn wanted_directly(&self) -> Option<(u16, u32, usize)> {
        match self.link.wire.borrow().data_wanted()? {
            (Target::Transfer(ttag), offset, most) if most >= DIRECT_BYTES_MIN => {
                Some((ttag, offset, most))
            }
            _ => None,
        }
    }

    fn receive_direct(
        &mut self,
        ttag: u16,
        offset: u32,
        most: usize,
        cx: &mut Context<'_>,
    ) -> Result<Option<usize>, End> {
        let (stream, link) = (&self.stream, &self.link);
        let count = link.with_slice(ttag, offset, most, |slice| {
            let count = stream.try_recv(slice)?;
            if let Some(count) = count {
                link.wire.borrow_mut().data_received(&slice[..count]);
            }
            io::Result::Ok(count)
        })?;
        self.link.note_received(count.unwrap_or(0));
        // The end of the PDU may need no further byte.
        self.parse(&[], cx)?;
        Ok(count)
    }

    fn receive_parsed(&mut self, cx: &mut Context<'_>) -> Result<Option<usize>, End> {
        let core = Rc::clone(&self.core);
        let mut scratch = core.scratch.borrow_mut();
        let Some(count) = self.stream.try_recv(&mut scratch)? else { return Ok(None) };
        self.parse(&scratch[..count], cx)?;
        Ok(Some(count))
    }

    fn parse(&mut self, mut input: &[u8], cx: &mut Context<'_>) -> Result<(), End> {
        let link = Rc::clone(&self.link);
        loop {
            let event = link.wire.borrow_mut().next(&mut input)?;
            let Some(event) = event else { return Ok(()) };
            match event {
                Event::Connected(reply) => link.push(&reply),
                Event::Command { sqe, data } => self.command(sqe, data, cx)?,
                Event::Data { target: Target::Capsule, offset, bytes } => {
                    self.capsule_data(offset, bytes);
                }
                Event::Data { target: Target::Transfer(ttag), offset, bytes } => {
                    link.fill(ttag, offset, bytes);
                }
                Event::DataEnd { target, complete, digest_matches } => {
                    if !digest_matches {
                        self.tell_digest_error();
                    }
                    match target {
                        Target::Capsule => self.capsule_end(digest_matches, cx),
                        Target::Transfer(ttag) => link.transfer_end(ttag, complete, digest_matches),
                    }
                }
                Event::Terminated(_) => return Err(End::Closed),
            }
        }
    }

    fn command(&mut self, sqe: Sqe, data: u32, cx: &mut Context<'_>) -> Result<(), End> {
        let queue = self.link.queue();
        let begun = match queue.begin(sqe.cid()) {
            Err(Refusal::Conflict) if self.link.session.borrow_mut().forget(sqe.cid()) => {
                queue.admit(sqe.cid())
            }
            begun => begun,
        };
        let permit = match begun {
            Ok(permit) => permit,
            Err(Refusal::Conflict) => {
                self.link.respond(&queue.conflict(sqe.cid()));
                // Data of a refused command is received and dropped.
                return Ok(());
            }
            Err(Refusal::Overflow) => return Err(End::Closed),
        };
        if self.link.is_draining() {
            // The host may try again elsewhere or later; its data is dropped as it comes.
            self.link.complete(permit, Status::NAMESPACE_NOT_READY, 0);
            return Ok(());
        }
        if data > 0 {
            self.capsule = Some(Capsule { permit, sqe, bytes: data, buffer: Buffer::default() });
            return Ok(());
        }
        let permit = match self.is_plain(&sqe) {
            true => now::read(&self.core, &self.link, permit, &sqe),
            false => Err(permit),
        };
        if let Err(permit) = permit {
            self.begin(permit, sqe, None, cx);
        }
        Ok(())
    }

    /// True for a command of an I/O queue that stands for itself and that no gate stops.
    fn is_plain(&self, sqe: &Sqe) -> bool {
        self.first.is_none()
            && Fused::of(sqe) == Fused::Single
            && self.core.shared.serves(sqe.nsid())
            && matches!(*self.link.session.borrow(), Session::Io { .. })
            && !self.link.gate.concerns(sqe)
    }

    /// Takes bytes of in-capsule data: all at once, if they can be used from where they are.
    fn capsule_data(&mut self, offset: u32, bytes: &[u8]) {
        let Some(Capsule { mut permit, sqe, bytes: whole, mut buffer }) = self.capsule.take()
        else {
            return;
        };
        let checked = self.link.wire.borrow().encoder().digests.data;
        if !checked && bytes.len() == whole as usize && self.is_plain(&sqe) {
            match now::write(&self.core, &self.link, permit, &sqe, bytes) {
                Ok(()) => return,
                Err(back) => permit = back,
            }
        }
        if offset == 0 {
            buffer = Buffer::with_room(0, whole as usize, 0);
        }
        let start = offset as usize;
        buffer[start..start + bytes.len()].copy_from_slice(bytes);
        self.capsule = Some(Capsule { permit, sqe, bytes: whole, buffer });
    }

    fn capsule_end(&mut self, digest_matches: bool, cx: &mut Context<'_>) {
        let Some(Capsule { permit, sqe, buffer, .. }) = self.capsule.take() else { return };
        if digest_matches {
            self.begin(permit, sqe, Some(buffer), cx);
        } else {
            self.abandon_first();
            let status = Status::TRANSIENT_TRANSPORT_ERROR;
            if matches!(*self.link.session.borrow(), Session::Io { .. }) {
                self.core.metrics.fail(self.core.metrics.begin(&sqe), status);
            }
            fail(&self.core, &self.link, permit, &sqe, status);
        }
    }

    /// Tells that data did not arrive as it was sent: a network that corrupts, or a host that
    /// computes digests wrongly.
    fn tell_digest_error(&self) {
        let association = self.link.association();
        let host = association.as_ref().map_or("?", |association| association.host_nqn());
        let fields = [("host", host.to_owned()), ("peer", self.link.peer())];
        self.core.shared.log().write_rated(Level::Warn, "data digest error", &fields);
    }

    fn begin(&mut self, permit: Permit, sqe: Sqe, capsule: Option<Buffer>, cx: &mut Context<'_>) {
        let is_io = matches!(*self.link.session.borrow(), Session::Io { .. })
            && !self.link.gate.concerns(&sqe);
        let fused = if is_io { Fused::of(&sqe) } else { Fused::Single };
        let mut received = Received { permit, sqe, capsule, number: self.number, first: None };
        if self.first.is_some() || fused != Fused::Single {
            match self.pair(received, fused) {
                Some(paired) => received = paired,
                None => return,
            }
        }
        let future = (self.start)(Rc::clone(&self.link), received, is_io);
        // Most commands on memory end here, without ever being stored.
        let _ = self.pool.push(future, cx);
    }

    /// The host is there: its controller lives on.
    fn heard(&self) {
        if let Some(association) = self.link.session.borrow().association() {
            association.heard(now_ms());
        }
    }
}
