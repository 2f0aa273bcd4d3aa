//! One connection's loop: flush, receive, execute; replies made in one turn leave in one send at
//! the start of the next.
//!
//! Never: meaning of a command. Invariants: bytes are received only when there is room for what
//! they may bring; a fatal transport error is told to the host before the connection closes.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::queue::{Permit, Refusal};
use csd_nvme::pdu::Kind;
use csd_nvme::status::Status;
use csd_nvme::tcp::Fatal;
use csd_nvme::tcp::controller::{Event, Target};
use csd_reactor::{Buffer, Sleep, Stream, TaskPool, sleep, timeout};

use super::command::{Received, run_admin, run_io};
use super::link::Link;
use super::session::{Ending, Session, now_ms};
use crate::drive::Core;

/// Data of at least this many bytes is received straight into its buffer.
const DIRECT_BYTES_MIN: usize = 8 << 10;
/// Turns before the loop lets other tasks run.
const TURNS_MAX: usize = 16;
/// A host must have connected a queue, and authenticated itself if it must, within this time, and
/// take a last word within it.
const PATIENCE: Duration = Duration::from_secs(10);

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
    let link = Rc::new(Link::new());
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
    let pool = TaskPool::new(usize::from(core.shared.subsystem.queue_entries_max));
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
        watch: sleep(PATIENCE),
    };
    let ending = Ending { link: Rc::clone(&link), core, number };
    let end = poll_fn(|cx| {
        link.begin_turn(cx.waker());
        let polled = connection.poll(cx);
        link.end_turn();
        polled
    })
    .await;
    if let End::Fatal(fatal) = end {
        link.push(&fatal.encode(Kind::C2H_TERM_REQ));
        let _ = timeout(PATIENCE, poll_fn(|cx| connection.poll_flush(cx))).await;
    }
    drop(ending);
}

struct Connection<S, F: Future> {
    stream: Stream,
    core: Rc<Core>,
    link: Rc<Link>,
    number: u64,
    start: S,
    pool: TaskPool<F>,
    // A command whose in-capsule data is still coming, and how much of it has come.
    capsule: Option<(Permit, Sqe, Buffer)>,
    watch: Sleep,
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
                // A last word, as far as the socket takes it.
                self.flush(cx)?;
                return Err(End::Closed);
            }
            self.flush(cx)?;
            // What the socket did not take: its readiness wakes us.
            let blocked = !self.link.outgoing.borrow().is_empty();
            while let Poll::Ready(Some(())) = self.pool.poll_next(cx) {}
            let received = self.receive(cx)?;
            if !received && (blocked || self.link.outgoing.borrow().is_empty()) {
                return self.watch(cx);
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Sends what is queued, as far as the socket takes it.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let mut any = false;
        while !self.link.outgoing.borrow().is_empty() {
            let sent = self.link.outgoing.borrow_mut().send(|slices| self.stream.try_send(slices));
            match sent? {
                Some(_) => any = true,
                None => match self.stream.poll_writable(cx) {
                    Poll::Ready(ready) => ready?,
                    Poll::Pending => break,
                },
            }
        }
        if any {
            self.link.sent();
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.flush(cx) {
            Ok(()) if !self.link.outgoing.borrow().is_empty() => Poll::Pending,
            _ => Poll::Ready(()),
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
                    if let Some((_, _, buffer)) = &mut self.capsule {
                        let start = offset as usize;
                        buffer[start..start + bytes.len()].copy_from_slice(bytes);
                    }
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
        if data > 0 {
            let buffer = Buffer::with_room(0, data as usize, 0);
            self.capsule = Some((permit, sqe, buffer));
        } else {
            self.begin(permit, sqe, None, cx);
        }
        Ok(())
    }

    fn capsule_end(&mut self, digest_matches: bool, cx: &mut Context<'_>) {
        let Some((permit, sqe, buffer)) = self.capsule.take() else { return };
        if digest_matches {
            self.begin(permit, sqe, Some(buffer), cx);
        } else {
            self.link.complete(permit, Status::TRANSIENT_TRANSPORT_ERROR, 0);
        }
    }

    fn begin(&mut self, permit: Permit, sqe: Sqe, capsule: Option<Buffer>, cx: &mut Context<'_>) {
        let is_io = matches!(*self.link.session.borrow(), Session::Io { .. })
            && !self.link.gate.concerns(&sqe);
        let received = Received { permit, sqe, capsule, number: self.number };
        let future = (self.start)(Rc::clone(&self.link), received, is_io);
        // Most commands on memory end here, without ever being stored.
        let _ = self.pool.push(future, cx);
    }

    fn heard(&self) {
        if let Some(association) = self.link.session.borrow().association() {
            association.heard(now_ms());
        }
    }

    /// Ends connections that never connect a queue, and controllers whose host fell silent.
    fn watch(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        while Pin::new(&mut self.watch).poll(cx).is_ready() {
            if self.link.gate.is_shut() {
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
            self.watch = sleep(Duration::from_millis((limit_ms - silent_ms).max(1)));
        }
        Ok(())
    }
}
