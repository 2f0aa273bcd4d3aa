//! One connection's loop: flush, receive, execute; replies made in one turn leave in one send at
//! the start of the next.
//!
//! `receive` turns bytes into commands, `pair` holds the first of a fused pair, `standstill`
//! notices a host that takes no answers, `watch` enforces timeouts on the host (Keep Alive among
//! them), `ending` ends the session. A connection that carries packets of the tunnel, or that of
//! another drive, goes on in a task of another class ([`Link::yields`]), a piece at a time.
//!
//! Invariants: bytes are received only when there is memory for the commands and data that they may
//! contain; a fatal transport error is reported to the host before the connection closes, unless a
//! PDU with data has begun that cannot be sent whole any more.

mod ending;
mod pair;
mod receive;
mod share;
mod standstill;
mod watch;

use std::future::{Future, poll_fn};
use std::io;
use std::net::Shutdown;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use csd_nvme::pdu::Kind;
use csd_nvme::tcp::Fatal;
use csd_reactor::{Buffer, Class, Stream, TaskPool, now, spawn, timeout, worked};

use self::ending::Ending;
use self::share::{Share, Yielding};
use self::standstill::Standstill;
use self::watch::{PATIENCE, Watch};
use super::cause::Cause;
use super::command::{run_admin, run_io, run_pair};
use super::link::{Arrival, Link};
use super::request::Request;
use crate::drive::Core;
use crate::log::Level;

/// Why a loop ended.
enum End {
    /// The host closed the connection or vanished, or the drive ends it.
    Closed(Cause),
    /// The host broke the transport's rules: a C2HTermReq says so.
    Fatal(Fatal),
    /// The connection yields to those of hosts from here on, in this class.
    Yields(Class),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Closed(Cause::Broken)
    }
}

impl From<Cause> for End {
    fn from(cause: Cause) -> Self {
        Self::Closed(cause)
    }
}

impl End {
    fn cause(&self) -> Cause {
        match self {
            Self::Closed(cause) => *cause,
            Self::Fatal(fatal) => fatal.into(),
            Self::Yields(_) => Cause::Drained,
        }
    }
}

impl From<Fatal> for End {
    fn from(fatal: Fatal) -> Self {
        Self::Fatal(fatal)
    }
}

/// A command to start, with the first half of its fused pair.
pub(super) struct Start {
    request: Request,
    first: Option<Box<Request>>,
    is_io: bool,
}

impl Start {
    async fn run(self) {
        let link = Rc::clone(&self.request.link);
        let _charge = link.charge_capsule(self.request.capsule_bytes());
        match (self.first, self.is_io) {
            (Some(first), _) => link.host.run(run_pair(*first, self.request)).await,
            (None, true) => link.host.run(run_io(self.request)).await,
            (None, false) => link.host.run(run_admin(self.request)).await,
        }
    }
}

/// Serves a connection until it ends.
pub async fn serve(stream: Stream, core: Rc<Core>, arrival: Arrival) {
    let number = arrival.number;
    let addresses = (stream.local_addr().ok(), stream.peer_addr().ok());
    let link = Rc::new(Link::new(arrival, addresses, Rc::clone(&core.budget)));
    core.connections.insert(Rc::clone(&link));
    if core.shared.unauthenticated.must_leave(number) {
        link.end(Cause::GaveWay);
    }
    // A full queue, and the two commands that the queue before Connect may have left: the next
    // command always has a slot, so that data of granted ones is always received.
    let pool = TaskPool::new(usize::from(core.shared.subsystem.queue_entries_max) + 2);
    let connection = Connection {
        stream,
        core: Rc::clone(&core),
        link: Rc::clone(&link),
        start: Start::run,
        pool,
        capsule: None,
        first: None,
        watch: Watch::new(),
        yielding: None,
        share: Share::HOST,
        left: 0,
        unparsed: Vec::new(),
        has_more: false,
        standstill: Standstill::default(),
        sent: 0,
    };
    let ending = Ending { link: Rc::clone(&link), core, cause: Cause::Drained };
    let mut serving = Serving { ending, connection };
    let mut end = serving.run().await;
    if let End::Yields(class) = end {
        let carrying = spawn(class, async move {
            let end = serving.carry(class).await;
            (serving, end)
        });
        (serving, end) = carrying.await;
    }
    let Serving { mut ending, mut connection } = serving;
    ending.cause = end.cause();
    let commands = connection.disconnect(ending.disconnect());
    let commands = commands.map(|commands| spawn(Class::Foreground, finish(commands, ending)));
    if let End::Fatal(fatal) = end {
        log_fatal(&connection.core, &link, &fatal);
        link.push(&fatal.encode(Kind::C2H_TERM_REQ));
        let lingers = connection.core.shared.unauthenticated.may_linger(number);
        let patience = if lingers { PATIENCE } else { Duration::ZERO };
        let _ = timeout(patience, connection.send_last()).await;
    }
    // The host sees that the connection is over, even while its commands still run.
    drop(connection);
    link.forget_outgoing();
    if let Some(commands) = commands {
        commands.await;
    }
}

fn log_fatal(core: &Core, link: &Link, fatal: &Fatal) {
    let fields = [("peer", link.peer()), ("fault", format!("{fatal:?}"))];
    core.shared.log().write_rated(Level::Warn, "a host broke the transport's rules", &fields);
}

/// A connection and the end of its session. If the core ends, the end is dropped first: it closes
/// the queue, so that commands which are dropped unanswered are excused.
struct Serving<S, F: Future> {
    ending: Ending,
    connection: Connection<S, F>,
}

impl<S, F> Serving<S, F>
where
    S: Fn(Start) -> F,
    F: Future<Output = ()>,
{
    /// Runs the loop to its end.
    async fn run(&mut self) -> End {
        let (link, connection) = (&self.ending.link, &mut self.connection);
        poll_fn(|cx| {
            link.begin_turn(cx.waker());
            let polled = connection.poll(cx);
            link.end_turn();
            polled
        })
        .await
    }

    /// Goes on with the loop in another task, of the class to which the connection yields.
    async fn carry(&mut self, class: Class) -> End {
        self.connection.yielding = Some(Yielding::new(class));
        // They know the waker of the former task.
        self.connection.pool.wake_all();
        self.run().await
    }
}

/// Runs the commands of a host that is gone to their end.
async fn finish<F: Future<Output = ()>>(mut commands: TaskPool<F>, ending: Ending) {
    commands.wake_all();
    let mut logged = false;
    loop {
        let all_done = poll_fn(|cx| {
            while let Poll::Ready(done) = commands.poll_next(cx) {
                if done.is_none() {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        });
        if timeout(PATIENCE, all_done).await.is_ok() {
            return;
        }
        if !std::mem::replace(&mut logged, true) {
            ending.log_slow(commands.len());
        }
    }
}

/// A command whose in-capsule data is still being received.
struct Capsule {
    request: Request,
    // Length of the data.
    bytes: u32,
    // Allocated with the first bytes, when they are not all of it or must be checked first.
    buffer: Buffer,
}

struct Connection<S, F: Future> {
    stream: Stream,
    core: Rc<Core>,
    link: Rc<Link>,
    start: S,
    pool: TaskPool<F>,
    // Command whose in-capsule data is incomplete.
    capsule: Option<Capsule>,
    // First half of a fused pair. Its second half must be the next command.
    first: Option<Box<Request>>,
    watch: Watch,
    // There is one in a task of a class that yields to hosts.
    yielding: Option<Yielding>,
    share: Share,
    // Bytes that may still be sent in this poll.
    left: usize,
    // Bytes that were received while there was no room for answers.
    unparsed: Vec<u8>,
    // True if bytes were left for the next turn although the socket may take them.
    has_more: bool,
    standstill: Standstill,
    // Bytes that were ever sent.
    sent: u64,
}

impl<S, F> Connection<S, F>
where
    S: Fn(Start) -> F,
    F: Future<Output = ()>,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.turns(cx) {
            Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        }
    }

    /// Runs turns of the loop until nothing moves any more.
    fn turns(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let hosts = &self.core.connections.host_turns;
        if let Some(yielding) = &mut self.yielding {
            self.share = yielding.share(hosts.get(), now());
        }
        self.left = self.share.bytes;
        for _ in 0..self.share.turns {
            if let Some(cause) = self.link.ended() {
                // The last answers, as far as the socket takes them.
                self.left = usize::MAX;
                self.flush(cx)?;
                return Err(cause.into());
            }
            self.flush(cx)?;
            if self.link.is_closed_after_flush() {
                return Err(Cause::Disconnected.into());
            }
            if let Some(class) = self.link.yields().filter(|_| self.yielding.is_none()) {
                return Err(End::Yields(class));
            }
            // The socket did not take all of it: its readiness wakes this task.
            let blocked = !self.link.outgoing.borrow().is_empty();
            while let Poll::Ready(Some(())) = self.pool.poll_next(cx) {}
            let received = self.receive(cx)?;
            if received && self.yielding.is_none() {
                self.core.connections.host_turns.set(self.core.connections.host_turns.get() + 1);
            }
            if !received && self.is_drained() {
                return Err(Cause::Drained.into());
            }
            let waits = blocked || self.link.outgoing.borrow().is_empty();
            if !received && waits && !self.has_more {
                return self.watch.over(&self.link, cx).map_or(Ok(()), |cause| Err(cause.into()));
            }
            if self.left == 0 {
                break;
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Returns true when the connection drains and owes its host nothing.
    fn is_drained(&self) -> bool {
        self.link.is_draining()
            && self.pool.is_empty()
            && self.capsule.is_none()
            && self.link.outgoing.borrow().queued_bytes() == 0
    }

    /// Sends queued bytes, as far as the socket takes them.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let mut count = 0;
        let most = self.left;
        while count < most && !self.link.outgoing.borrow().is_empty() {
            let mut outgoing = self.link.outgoing.borrow_mut();
            let sent = outgoing.send(most - count, |slices| self.stream.try_send(slices));
            drop(outgoing);
            match sent? {
                Some(more) => count += more,
                None => match self.stream.poll_writable(cx) {
                    Poll::Ready(ready) => ready?,
                    Poll::Pending => break,
                },
            }
        }
        self.left -= count;
        self.has_more = self.left == 0 && !self.link.outgoing.borrow().is_empty();
        if count > 0 {
            self.sent += count as u64;
            worked(count as u64);
            self.link.sent(count);
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.left = usize::MAX;
        match self.flush(cx) {
            Ok(()) if !self.link.outgoing.borrow().is_empty() => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    /// Drops commands that have not begun, and those that have of a connection without an I/O
    /// queue. Returns the commands that are left.
    fn disconnect(&mut self, is_io: bool) -> Option<TaskPool<F>> {
        self.capsule = None;
        self.first = None;
        if !is_io {
            self.pool.clear();
        }
        let commands = std::mem::replace(&mut self.pool, TaskPool::new(0));
        (!commands.is_empty()).then_some(commands)
    }

    /// Sends the rest, then waits for the host to close. To close while the host still sends would
    /// reset the connection and lose the final PDU.
    async fn send_last(&mut self) {
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
