//! [`Backend`], the interface between a core and the system below it: a clock, randomness, sockets,
//! files, compute threads, and a place to wait. `real` implements it over `epoll` or `uring`, `sim`
//! over a simulated world.
//!
//! Private to this crate. Invariant: an implementation holds no borrow of its own state while it
//! wakes a waker.

pub(crate) mod epoll;
mod notifier;
pub(crate) mod os;
pub(crate) mod poller;
pub(crate) mod real;
pub(crate) mod socket;
pub(crate) mod thread;
pub(crate) mod uring;

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::str::FromStr;
use std::task::{Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::class::Class;
use crate::compute_thread::{ComputeLoad, ErasedJob};
use crate::endpoint::Endpoint;
use crate::file::{FileDone, FileOp};
use crate::instant::Instant;
use crate::oneshot::Sender;
pub(crate) use notifier::Notifier;
use socket::StreamSocket;

/// Kernel interface that a real runtime waits with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendKind {
    /// io_uring where the kernel allows it, else epoll.
    #[default]
    Auto,
    /// io_uring; starting fails where the kernel denies it.
    Uring,
    /// epoll, with files on helper threads.
    Epoll,
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Epoll => "epoll",
        })
    }
}

/// Error for a text that names no back end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown back end `{0}`: one of auto, uring, epoll")]
pub struct UnknownBackend(String);

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        [Self::Auto, Self::Uring, Self::Epoll]
            .into_iter()
            .find(|kind| kind.to_string() == text)
            .ok_or_else(|| UnknownBackend(text.to_owned()))
    }
}

/// Identifies a socket of one back end; a key is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SocketKey(pub(crate) u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// A connection that belongs to no core.
pub(crate) enum Detached {
    Os(StreamSocket),
    Sim(SocketKey),
}

/// The system below one core; see the module's text. Sockets: `poll_ready` is ready while the last
/// transfer was not refused, or when an event came after the refusal. Otherwise it stores the
/// waker, one for each direction.
pub(crate) trait Backend {
    /// Returns the name for logs and reports: `uring`, `epoll` or `sim`.
    fn name(&self) -> &'static str;
    fn now(&self) -> Instant;
    /// Returns milliseconds since 1970, in UTC: those of the system, unless time is simulated.
    fn unix_ms(&self) -> u64 {
        // A clock before 1970 is taken as 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
    fn fill_random(&self, bytes: &mut [u8]);

    fn bind(&self, at: &Endpoint) -> io::Result<SocketKey>;
    /// Accepts a connection; `None` if none is pending. The peer of a Unix socket has no address:
    /// that of the listener stands for it.
    fn accept(&self, key: SocketKey) -> io::Result<Option<(SocketKey, Endpoint)>>;
    /// Starts to connect. The attempt is over, successful or not, when the socket becomes writable.
    fn connect(&self, to: &Endpoint) -> io::Result<SocketKey>;
    /// Returns the outcome of a connection attempt.
    fn connected(&self, key: SocketKey) -> io::Result<()>;
    fn try_recv(&self, key: SocketKey, into: &mut [u8]) -> io::Result<Option<usize>>;
    fn try_send(&self, key: SocketKey, from: &[IoSlice<'_>]) -> io::Result<Option<usize>>;
    fn poll_ready(
        &self,
        key: SocketKey,
        direction: Direction,
        waker: &Waker,
    ) -> Poll<io::Result<()>>;
    fn shutdown(&self, key: SocketKey, how: Shutdown) -> io::Result<()>;
    fn local_addr(&self, key: SocketKey) -> io::Result<SocketAddr>;
    fn peer_addr(&self, key: SocketKey) -> io::Result<SocketAddr>;
    fn close(&self, key: SocketKey);
    fn detach(&self, key: SocketKey) -> io::Result<Detached>;
    fn attach(&self, stream: Detached) -> io::Result<SocketKey>;

    /// Starts a file operation. The operation owns its descriptor and buffers until it completes.
    fn file(&self, op: Box<FileOp>, reply: Sender<FileDone>);

    fn compute(&self, class: Class, job: Box<dyn ErasedJob>);
    /// Runs a long job on a thread of its own, so that other jobs keep taking their turns.
    fn compute_long(&self, job: Box<dyn ErasedJob>);
    fn compute_load(&self) -> ComputeLoad;
    /// Returns true while other threads of this machine do what this core waits for: computation,
    /// and operations on files that the kernel or a helper thread does on a thread of its own.
    fn works_aside(&self) -> bool {
        self.compute_load().works
    }
    /// Checks the compute thread for starvation. `foreground_ns` is the time this core has spent on
    /// foreground tasks. Returns the time until the next check is due, ns, or `None` while the
    /// thread is idle.
    fn guard_compute(&self, foreground_ns: u64) -> Option<u64>;

    fn poll_stop(&self, waker: &Waker) -> Poll<()>;

    /// Processes pending events, and waits up to `wait_ns` (without limit if `None`) for one.
    fn poll(&self, wait_ns: Option<u64>) -> io::Result<()>;
}
