//! How one kernel interface waits, and does file operations: [`Poller`].
//!
//! Never reads or writes a socket. Invariant: an event that was armed for is told once it comes.

use std::io;
use std::os::fd::RawFd;

use crate::backend::{Direction, SocketKey};
use crate::file::{FileDone, FileOp};
use crate::oneshot::Sender;

/// What a poller saw of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) key: SocketKey,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer is done sending, or the socket is dead: readable for ever.
    pub(crate) read_closed: bool,
    /// The socket is dead: writable for ever, so that the error is met.
    pub(crate) write_closed: bool,
}

/// How one kernel interface waits, and does file operations.
pub(crate) trait Poller {
    fn name(&self) -> &'static str;
    fn add(&self, key: SocketKey, fd: RawFd) -> io::Result<()>;
    /// Makes sure that one more event for this direction will be seen.
    fn arm(&self, key: SocketKey, fd: RawFd, direction: Direction) -> io::Result<()>;
    /// Forgets a socket, of which these directions (read, write) are armed.
    fn remove(&self, key: SocketKey, fd: RawFd, armed: [bool; 2]);
    fn file(&self, op: Box<FileOp>, reply: Sender<FileDone>);
    fn poll(&self, wait_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()>;
}
