//! What a core needs from below: a clock, randomness, sockets, files, a compute lane, and a place
//! to wait. [`Backend`] is the only seam; `real` serves it over `epoll` or `uring`, `sim` over a
//! simulated world.
//!
//! Never seen outside this crate. Invariant: an implementation holds no borrow of its own state
//! while it wakes a waker.

pub(crate) mod epoll;
mod notifier;
pub(crate) mod os;
pub(crate) mod poller;
pub(crate) mod real;
pub(crate) mod thread;
pub(crate) mod uring;

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::str::FromStr;
use std::task::{Poll, Waker};

use crate::class::Class;
use crate::compute_thread::{ComputeLoad, ErasedJob};
use crate::file::{FileDone, FileOp};
use crate::instant::Instant;
use crate::oneshot::Sender;
pub(crate) use notifier::Notifier;

/// Which kernel interface a real runtime waits with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendKind {
    /// io_uring where the kernel grants it, else epoll.
    #[default]
    Auto,
    /// io_uring; starting fails where it is denied.
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

/// The text names no back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBackend(String);

impl fmt::Display for UnknownBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown back end `{}`: one of auto, uring, epoll", self.0)
    }
}

impl std::error::Error for UnknownBackend {}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        [Self::Auto, Self::Uring, Self::Epoll]
            .into_iter()
            .find(|kind| kind.to_string() == text)
            .ok_or_else(|| UnknownBackend(text.to_owned()))
    }
}

/// A socket of one back end; never reused for another socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SocketKey(pub(crate) u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// A connection that belongs to no core.
pub(crate) enum Detached {
    Os(TcpStream),
    Sim(SocketKey),
}

/// See the module's text. Sockets: `poll_ready` is ready while the last transfer was not refused
/// or a newer event came; otherwise it keeps the waker, one for each direction.
pub(crate) trait Backend {
    /// Its name, for people: `uring`, `epoll` or `sim`.
    fn name(&self) -> &'static str;
    fn now(&self) -> Instant;
    fn fill_random(&self, bytes: &mut [u8]);

    fn bind(&self, addr: SocketAddr) -> io::Result<SocketKey>;
    /// `None`: nobody waits to be accepted.
    fn accept(&self, key: SocketKey) -> io::Result<Option<(SocketKey, SocketAddr)>>;
    /// Starts to connect; done, one way or the other, once the socket is writable.
    fn connect(&self, addr: SocketAddr) -> io::Result<SocketKey>;
    /// How connecting went.
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

    /// Starts a file operation, which owns what it needs until it is done.
    fn file(&self, op: Box<FileOp>, reply: Sender<FileDone>);

    fn compute(&self, class: Class, job: Box<dyn ErasedJob>);
    /// Runs a job that takes long, without keeping the lane's other jobs from their turns.
    fn compute_long(&self, job: Box<dyn ErasedJob>);
    fn compute_load(&self) -> ComputeLoad;
    /// Keeps the lane from starving, given the time for which this core has worked for its hosts;
    /// gives the time after which this is due again, ns, or `None` while the lane is idle.
    fn guard_compute(&self, foreground_ns: u64) -> Option<u64>;

    fn poll_stop(&self, waker: &Waker) -> Poll<()>;

    /// Takes in what happened, waiting up to `wait_ns` (for ever if `None`) for something.
    fn poll(&self, wait_ns: Option<u64>) -> io::Result<()>;
}
