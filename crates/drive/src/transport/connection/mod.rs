//! One connection's loop: flush, receive, execute; replies made in one turn leave in one send at
//! the start of the next.
//!
//! Modules: `receive` turns bytes into commands, `pair` holds the first of a fused pair, `watch`
//! says when a host was waited for long enough.
//!
//! Never: meaning of a command. Invariants: bytes are received only when there is room for what
//! they may bring; a fatal transport error is told to the host before the connection closes.

mod pair;
mod receive;
mod watch;

use std::future::{Future, poll_fn};
use std::io;
use std::net::Shutdown;
use std::rc::Rc;
use std::task::{Context, Poll};

use csd_nvme::capsule::Sqe;
use csd_nvme::controller::queue::Permit;
use csd_nvme::pdu::Kind;
use csd_nvme::tcp::Fatal;
use csd_reactor::{Buffer, Stream, TaskPool, timeout};

use self::watch::{PATIENCE, Watch};
use super::command::{Received, run_admin, run_io};
use super::link::Link;
use super::session::Ending;
use crate::drive::Core;
use crate::log::Level;

/// Turns before the loop lets other tasks run.
const TURNS_MAX: usize = 16;

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

/// Serves a connection until it ends; one in surplus is only told that it is.
pub async fn serve(stream: Stream, core: Rc<Core>, surplus: bool) {
    let link = Rc::new(Link::new(&stream, Rc::clone(&core.budget), surplus));
    let number = core.connections.number();
    core.connections.insert(number, Rc::clone(&link));
    let start = {
        let core = Rc::clone(&core);
        move |link: Rc<Link>, received: Received, is_io: bool| {
            let core = Rc::clone(&core);
            async move {
                let _laden = link.laden(received.capsule.as_ref().map_or(0, |data| data.len()));
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
        watch: Watch::new(),
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
    watch: Watch,
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
                let over = self.watch.is_over(&self.link, cx);
                return if over { Err(End::Closed) } else { Ok(()) };
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
}
