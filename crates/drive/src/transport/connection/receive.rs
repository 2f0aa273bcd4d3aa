//! Receiving: turns bytes into PDUs, and PDUs into commands that are begun.
//!
//! Invariants: bytes are received only when there is memory for the commands and data that they may
//! contain; commands are not begun while as much waits to be sent as may, so that a long queue of
//! them takes no more of the core's time at once than a short one; long data goes from the socket
//! straight to its place.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::queue::Refusal;
use csd_nvme::nvm::Fused;
use csd_nvme::status::Status;
use csd_nvme::tcp::controller::{Event, Target};
use csd_reactor::Buffer;

use super::super::cause::Cause;
use super::super::command::fast_path;
use super::super::request::Request;
use super::{Capsule, Connection, End, Start};
use crate::controller::now_ms;
use crate::log::Level;

/// Data of at least this many bytes is received straight into its buffer.
const DIRECT_BYTES_MIN: usize = 8 << 10;
/// Most bytes that a connection keeps unparsed: a full queue of commands without data. With more
/// left, commands are begun and wait.
const UNPARSED_BYTES_MAX: usize = 16 << 10;

impl<S, F> Connection<S, F>
where
    S: Fn(Start) -> F,
    F: Future<Output = ()>,
{
    /// Receives once. Returns true when there were bytes.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.link.is_full_of_capsules() || self.pool.is_full() || !self.may_hear(cx) {
            return Ok(false);
        }
        loop {
            let count = match self.wanted_directly() {
                Some((ttag, offset, most)) => self.receive_direct(ttag, offset, most, cx)?,
                None => self.receive_parsed(cx)?,
            };
            match count {
                Some(0) => return Err(Cause::HungUp.into()),
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

    /// Returns true if the host may be heard although answers wait for it.
    fn may_hear(&mut self, cx: &mut Context<'_>) -> bool {
        !self.link.is_congested()
            || (self.link.has_few_capsules() && self.standstill.lasts(self.sent, cx))
    }

    fn wanted_directly(&self) -> Option<(u16, u32, usize)> {
        if !self.unparsed.is_empty() {
            return None;
        }
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
        let most = most.min(self.share.bytes);
        let count = link.grants.with_slice(ttag, offset, most, |slice| {
            let count = stream.try_recv(slice)?;
            if let Some(count) = count {
                link.wire.borrow_mut().data_received(&slice[..count]);
            }
            io::Result::Ok(count)
        })?;
        self.link.grants.note_received(count.unwrap_or(0));
        // The end of the PDU may need no further byte.
        self.parse(&[], cx)?;
        Ok(count)
    }

    fn receive_parsed(&mut self, cx: &mut Context<'_>) -> Result<Option<usize>, End> {
        if !self.unparsed.is_empty() {
            let mut unparsed = std::mem::take(&mut self.unparsed);
            let count = unparsed.len() - self.parse(&unparsed, cx)?;
            unparsed.drain(..count);
            self.unparsed = unparsed;
            return Ok(Some(count));
        }
        let core = Rc::clone(&self.core);
        let mut scratch = core.scratch.borrow_mut();
        let most = scratch.len().min(self.share.bytes);
        let Some(count) = self.stream.try_recv(&mut scratch[..most])? else { return Ok(None) };
        let left = self.parse(&scratch[..count], cx)?;
        self.unparsed.extend_from_slice(&scratch[count - left..count]);
        Ok(Some(count))
    }

    /// Parses bytes, up to the command after which no further one should begin because enough waits
    /// to be sent. Returns the number of bytes that are left; they begin with a PDU.
    fn parse(&mut self, mut input: &[u8], cx: &mut Context<'_>) -> Result<usize, End> {
        let link = Rc::clone(&self.link);
        // A host that takes nothing is heard to the end of what it sent.
        let heard_anyway = link.is_congested();
        loop {
            let event = link.wire.borrow_mut().next(&mut input)?;
            let Some(event) = event else { return Ok(0) };
            let begins = matches!(event, Event::Command { data: 0, .. } | Event::DataEnd { .. });
            match event {
                Event::Connected(reply) => link.push(&reply),
                Event::Command { sqe, data } => self.command(sqe, data, cx)?,
                Event::Data { target: Target::Capsule, offset, bytes } => {
                    self.capsule_data(offset, bytes);
                }
                Event::Data { target: Target::Transfer(ttag), offset, bytes } => {
                    link.grants.fill(ttag, offset, bytes);
                }
                Event::DataEnd { target, complete, digest_matches } => {
                    if !digest_matches {
                        self.log_digest_error();
                    }
                    match target {
                        Target::Capsule => self.capsule_end(digest_matches, cx),
                        Target::Transfer(ttag) => link.grants.end(ttag, complete, digest_matches),
                    }
                }
                Event::Terminated(request) => return Err(Cause::from(request).into()),
            }
            let may_stop = begins && !heard_anyway && input.len() <= UNPARSED_BYTES_MAX;
            if may_stop && link.is_congested() {
                return Ok(input.len());
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
            Err(Refusal::Overflow) => return Err(Cause::Overflow.into()),
        };
        let request = Request::new(&self.core, &self.link, permit, sqe);
        if self.link.is_draining() {
            // The host may try again elsewhere or later; its data is dropped as it arrives.
            request.refuse(Status::NAMESPACE_NOT_READY, 0);
            return Ok(());
        }
        if data > 0 {
            self.capsule = Some(Capsule { request, bytes: data, buffer: Buffer::default() });
            return Ok(());
        }
        let left = if self.is_plain(&sqe) { fast_path::read(request) } else { Some(request) };
        if let Some(request) = left {
            self.begin(request, cx);
        }
        Ok(())
    }

    /// Returns true for a single command of an I/O queue that authentication does not stop.
    fn is_plain(&self, sqe: &Sqe) -> bool {
        self.first.is_none()
            && Fused::of(sqe) == Fused::Single
            && self.core.shared.serves(sqe.nsid())
            && self.link.session.borrow().is_io()
            && !self.link.auth.concerns(sqe)
    }

    /// Takes bytes of in-capsule data: without a copy, if they can be used from where they are.
    fn capsule_data(&mut self, offset: u32, bytes: &[u8]) {
        let Some(Capsule { mut request, bytes: whole, mut buffer }) = self.capsule.take() else {
            return;
        };
        let checked = self.link.wire.borrow().encoder().digests.data;
        if !checked && bytes.len() == whole as usize && self.is_plain(&request.sqe) {
            match fast_path::write(request, bytes) {
                None => return,
                Some(left) => request = left,
            }
        }
        if offset == 0 {
            buffer = Buffer::with_room(0, whole as usize, 0);
        }
        let start = offset as usize;
        buffer[start..start + bytes.len()].copy_from_slice(bytes);
        self.capsule = Some(Capsule { request, bytes: whole, buffer });
    }

    fn capsule_end(&mut self, digest_matches: bool, cx: &mut Context<'_>) {
        let Some(Capsule { mut request, buffer, .. }) = self.capsule.take() else { return };
        if digest_matches {
            request.set_capsule(buffer);
            self.begin(request, cx);
        } else {
            self.abandon_first();
            request.fail(Status::TRANSIENT_TRANSPORT_ERROR);
        }
    }

    /// Logs that data did not arrive as it was sent: the network corrupts it, or the host computes
    /// digests wrongly.
    fn log_digest_error(&self) {
        let association = self.link.association();
        let host = association.as_ref().map_or("?", |association| association.host_nqn());
        let fields = [("host", host.to_owned()), ("peer", self.link.peer())];
        self.core.shared.log().write_rated(Level::Warn, "data digest error", &fields);
    }

    fn begin(&mut self, request: Request, cx: &mut Context<'_>) {
        let is_io = self.link.session.borrow().is_io() && !self.link.auth.concerns(&request.sqe);
        let fused = if is_io { Fused::of(&request.sqe) } else { Fused::Single };
        let mut start = Start { request, first: None, is_io };
        if self.first.is_some() || fused != Fused::Single {
            match self.pair(start.request, fused) {
                Some((request, first)) => start = Start { request, first, is_io },
                None => return,
            }
        }
        let future = (self.start)(start);
        // Most commands on memory end here, without ever being stored.
        let _ = self.pool.push(future, cx);
    }

    /// Notes that the host was heard: its controller's keep-alive timer starts again.
    fn heard(&self) {
        if let Some(association) = self.link.session.borrow().association() {
            association.heard(now_ms());
        }
    }
}
