//! One connection's loop: flush, receive, execute; replies made in one turn leave in one send at
//! the start of the next.
//!
//! Never: meaning of a command. Invariants: bytes are received only when there is room for what
//! they may bring; a fatal transport error is told to the host before the connection closes.

use std::future::{Future, poll_fn};
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::queue::{Permit, Refusal};
use csd_nvme::nvm::Fused;
use csd_nvme::pdu::Kind;
use csd_nvme::status::Status;
use csd_nvme::tcp::Fatal;
use csd_nvme::tcp::controller::{Event, Target};
use csd_reactor::{Buffer, Sleep, Stream, TaskPool, sleep, timeout};

use super::command::{Received, fail, run_admin, run_io};
use super::link::Link;
use super::now;
use super::session::{Ending, Session, now_ms};
use crate::drive::Core;
use crate::log::Level;

/// Data of at least this many bytes is received straight into its buffer.
const DIRECT_BYTES_MIN: usize = 8 << 10;
/// Turns before the loop lets other tasks run.
const TURNS_MAX: usize = 16;
/// A host must have connected a queue within this time, and take a last word within it.
const PATIENCE: Duration = Duration::from_secs(10);
/// A host that does not move for this long what it was granted, or what waits for it, is gone: it
/// holds memory that others wait for. Hosts give up a command no later than that themselves.
const STALLED_MS_MAX: u64 = 30_000;
/// Granted data that comes slower than this in [`PATIENCE`] does not move.
const MOVING_BYTES_MIN: usize = 64 << 10;

/// Why a loop ended.
enum End {
    /// The host closed, vanished or was terminated by us.
    Closed,
    /// The host broke the transport's rules: tell it.
    Fatal(Fatal),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl From<Fatal> for End {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal)
    }
}

/// Serves a connection until it ends.
pub async fn serve(stream: Stream, core: Rc<Core>) {
    let link = Rc::new(Link::new(stream.local_addr().ok()));
    let number = core.connections.number();
    core.connections.insert(number, Rc::clone(&link));
    let start = {
        let core = Rc::clone(&core);
        move |link: Rc<Link>, received: Received, is_io: bool| {
            let core = Rc::clone(&core);
            async move {
                if is_io {
                    run_io(core, link, received).await;
                } else {
                    run_admin(core, link, received).await;
                }
            }
        }
    };
    // A full queue, and the two commands that may be left of the queue before Connect: there is
    // always room for the next command, so that data of granted ones is always received.
    let pool = TaskPool::new(usize::from(core.shared.subsystem.queue_entries_max) + 2);
    // Declared after the pool's owner and so dropped first: closes the queue, so that commands
    // which are dropped unanswered are excused.
    let mut connection = Connection {
        stream,
        core: Rc::clone(&core),
        link: Rc::clone(&link),
        number,
        start,
        pool,
        capsule: None,
        first: None,
        watch: sleep(PATIENCE),
        stalled: None,
        granted: None,
    };
    let link_log = core.shared.log().clone();
    let ending = Ending { link: Rc::clone(&link), core, number };
    let end = poll_fn(|cx| {
        link.begin_turn(cx.waker());
        let polled = connection.poll(cx);
        link.end_turn();
        polled
    })
    .await;
    drop(ending);
    connection.drop_commands();
    if let End::Fatal(fatal) = end {
        let fields = [("fault", format!("{fatal:?}"))];
        link_log.write(Level::Warn, "a host broke the transport's rules", &fields);
        link.push(&fatal.encode(Kind::C2H_TERM_REQ));
        let _ = timeout(PATIENCE, connection.last_word()).await;
    }
}

/// A command and what came of its in-capsule data.
struct Capsule {
    permit: Permit,
    sqe: Sqe,
    bytes: u32,
    // Made with the first bytes, when they are not all of it or must be checked first.
    buffer: Buffer,
}

struct Connection<S, F: Future> {
    stream: Stream,
    core: Rc<Core>,
    link: Rc<Link>,
    number: u64,
    start: S,
    pool: TaskPool<F>,
    // A command whose in-capsule data is still coming.
    capsule: Option<Capsule>,
    // The first of a fused pair, whose second is to be the next command.
    first: Option<Box<Received>>,
    watch: Sleep,
    // Since when nothing moves, in milliseconds of the drive's clock, and the grant looked at.
    stalled: Option<u64>,
    granted: Option<u64>,
}

impl<S, F> Connection<S, F>
where
    S: Fn(Rc<Link>, Received, bool) -> F,
    F: Future<Output = ()>,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.turns(cx) {
            Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        }
    }

    /// Turns the loop until nothing moves any more.
    fn turns(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        for _ in 0..TURNS_MAX {
            if self.link.ended() {
                return Err(End::Closed);
            }
            self.flush(cx)?;
            if self.link.farewell() {
                return Err(End::Closed);
            }
            // What the socket did not take: its readiness wakes us.
            let blocked = !self.link.outgoing.borrow().is_empty();
            while let Poll::Ready(Some(())) = self.pool.poll_next(cx) {}
            let received = self.receive(cx)?;
            if !received && self.is_drained() {
                return Err(End::Closed);
            }
            if !received && (blocked || self.link.outgoing.borrow().is_empty()) {
                return self.watch(cx);
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// True when the connection is to close and owes its host nothing.
    fn is_drained(&self) -> bool {
        self.link.is_draining()
            && self.pool.is_empty()
            && self.capsule.is_none()
            && self.link.outgoing.borrow().is_empty()
    }

    /// Sends what is queued, as far as the socket takes it.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let mut count = 0;
        while !self.link.outgoing.borrow().is_empty() {
            let sent = self.link.outgoing.borrow_mut().send(|slices| self.stream.try_send(slices));
            match sent? {
                Some(more) => count += more,
                None => match self.stream.poll_writable(cx) {
                    Poll::Ready(ready) => ready?,
                    Poll::Pending => break,
                },
            }
        }
        if count > 0 {
            self.link.sent(count);
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.flush(cx) {
            Ok(()) if !self.link.outgoing.borrow().is_empty() => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    /// Drops what is in flight, whose queue is closed, and with it the memory it holds.
    fn drop_commands(&mut self) {
        self.pool.clear();
        self.capsule = None;
    }

    /// Sends the rest, then waits for the host to close: closing over what it still sends would
    /// reset the connection and take our last word with it.
    async fn last_word(&mut self) {
        poll_fn(|cx| self.poll_flush(cx)).await;
        if self.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        poll_fn(|cx| self.poll_drained(cx)).await;
    }

    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let core = Rc::clone(&self.core);
            let received = self.stream.try_recv(&mut core.scratch.borrow_mut());
            match received {
                Ok(Some(0)) | Err(_) => return Poll::Ready(()),
                Ok(Some(_)) => {}
                Ok(None) => match self.stream.poll_readable(cx) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    /// Receives once; true when there was something.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.link.is_congested() || self.pool.is_full() {
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
                Event::DataEnd { target, complete, digest_matches } => match target {
                    Target::Capsule => self.capsule_end(digest_matches, cx),
                    Target::Transfer(ttag) => link.transfer_end(ttag, complete, digest_matches),
                },
                Event::Terminated(_) => return Err(End::Closed),
            }
        }
    }

    fn command(&mut self, sqe: Sqe, data: u32, cx: &mut Context<'_>) -> Result<(), End> {
        let queue = self.link.queue();
        let permit = match queue.begin(sqe.cid()) {
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

    /// True for a command of an I/O queue that stands for itself.
    fn is_plain(&self, sqe: &Sqe) -> bool {
        self.first.is_none()
            && Fused::of(sqe) == Fused::Single
            && matches!(*self.link.session.borrow(), Session::Io { .. })
    }

    /// Takes bytes of in-capsule data: all at once, if they can be used from where they are.
    fn capsule_data(&mut self, offset: u32, bytes: &[u8]) {
        let Some(Capsule { permit, sqe, bytes: whole, mut buffer }) = self.capsule.take() else {
            return;
        };
        let mut permit = permit;
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
            self.link.complete(permit, Status::TRANSIENT_TRANSPORT_ERROR, 0);
        }
    }

    fn begin(&mut self, permit: Permit, sqe: Sqe, capsule: Option<Buffer>, cx: &mut Context<'_>) {
        let is_io = matches!(*self.link.session.borrow(), Session::Io { .. });
        let mut received = Received { permit, sqe, capsule, number: self.number, first: None };
        if is_io && (self.first.is_some() || Fused::of(&received.sqe) != Fused::Single) {
            match self.pair(received) {
                Some(paired) => received = paired,
                None => return,
            }
        }
        let future = (self.start)(Rc::clone(&self.link), received, is_io);
        // Most commands on memory end here, without ever being stored.
        let _ = self.pool.push(future, cx);
    }

    /// Holds the first command of a pair, joins the second to it; what can start now. Out of a
    /// pair, each half is aborted for want of the other.
    fn pair(&mut self, mut received: Received) -> Option<Received> {
        match (Fused::of(&received.sqe), self.first.take()) {
            (Fused::Second, Some(first)) => {
                received.first = Some(first);
                Some(received)
            }
            (fused, first) => {
                self.first = first;
                self.abandon_first();
                match fused {
                    Fused::First => {
                        self.first = Some(Box::new(received));
                        None
                    }
                    Fused::Second => {
                        self.miss(received);
                        None
                    }
                    Fused::Single | Fused::Reserved => Some(received),
                }
            }
        }
    }

    /// Aborts the first of a pair whose second did not come.
    fn abandon_first(&mut self) {
        if let Some(first) = self.first.take() {
            self.miss(*first);
        }
    }

    fn miss(&self, received: Received) {
        let Received { permit, sqe, .. } = received;
        fail(&self.core, &self.link, permit, &sqe, Status::ABORTED_MISSING_FUSED);
    }

    fn heard(&self) {
        if let Some(association) = self.link.session.borrow().association() {
            association.heard(now_ms());
        }
    }

    /// Ends connections that never connect a queue, hosts that stall, and controllers whose host
    /// fell silent.
    fn watch(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        while Pin::new(&mut self.watch).poll(cx).is_ready() {
            if self.has_stalled() {
                return Err(End::Closed);
            }
            let session = self.link.session.borrow();
            let silent_ms = match (&*session, session.keep_alive_ms()) {
                (Session::Unconnected, _) => return Err(End::Closed),
                (_, 0) => {
                    // Looked at again at leisure: a host may set a timeout later.
                    self.watch = sleep(PATIENCE);
                    continue;
                }
                (session, _) => {
                    let heard = session.association().map_or(0, |association| {
                        association.heard_ms.load(std::sync::atomic::Ordering::Relaxed)
                    });
                    now_ms().saturating_sub(heard)
                }
            };
            let limit_ms = session.keep_alive_ms();
            if silent_ms >= limit_ms {
                return Err(End::Closed);
            }
            let left = Duration::from_millis((limit_ms - silent_ms).max(1));
            self.watch = sleep(left.min(PATIENCE));
        }
        Ok(())
    }

    /// True when granted data or answers have not moved for too long.
    fn has_stalled(&mut self) -> bool {
        let motion = self.link.motion();
        let same = self.granted.is_some() && self.granted == motion.granted;
        self.granted = motion.granted;
        let stalls =
            (same && motion.received < MOVING_BYTES_MIN) || (motion.sending && motion.sent == 0);
        if !stalls {
            self.stalled = None;
            return false;
        }
        let now = now_ms();
        now - *self.stalled.get_or_insert(now) >= STALLED_MS_MAX
    }
}
