//! [`Poller`]: waiting and file operations over one kernel interface.
//!
//! This module neither reads nor writes sockets. Invariant: an armed direction reports its next
//! event.

use std::io;
use std::os::fd::RawFd;

use crate::backend::{Direction, SocketKey};
use crate::file::{FileDone, FileOp};
use crate::oneshot::Sender;

/// Events that a poller saw on one socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) key: SocketKey,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// True if the peer is done sending, or the socket is dead: it stays readable.
    pub(crate) read_closed: bool,
    /// True if the socket is dead: it stays writable, so that the next transfer meets the error.
    pub(crate) write_closed: bool,
}

/// Waits and does file operations over one kernel interface.
pub(crate) trait Poller {
    fn name(&self) -> &'static str;
    fn add(&self, key: SocketKey, fd: RawFd) -> io::Result<()>;
    /// Requests one more event for this direction.
    fn arm(&self, key: SocketKey, fd: RawFd, direction: Direction) -> io::Result<()>;
    /// Removes a socket. `armed` are the directions (read, write) that still await an event.
    fn remove(&self, key: SocketKey, fd: RawFd, armed: [bool; 2]);
    fn file(&self, op: Box<FileOp>, reply: Sender<FileDone>);
    /// Returns true while operations on files are done on threads, the kernel's included.
    fn works_aside(&self) -> bool;
    fn poll(&self, wait_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()>;
}
