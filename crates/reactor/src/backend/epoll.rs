//! Poller of the epoll back end: one edge-triggered registration for a socket's whole life.
//!
//! This module neither reads nor writes sockets. epoll cannot wait for files, so file operations go
//! to helper threads. Invariant: the caller sees all events of one wait before the next wait.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::backend::poller::{Event, Poller};
use crate::backend::{Direction, SocketKey, os};
use crate::file::{FileDone, FileOp, FileThreads};
use crate::oneshot::Sender;

/// User data of the core's own eventfd; no socket has this key.
const NOTIFIER: u64 = u64::MAX;
const EVENTS_MAX: usize = 256;

pub(crate) struct Epoll {
    set: OwnedFd,
    room: RefCell<Vec<libc::epoll_event>>,
    files: FileThreads,
    _notifier: Arc<os::EventFd>,
}

impl Epoll {
    pub(crate) fn new(notifier: Arc<os::EventFd>, name: &str) -> io::Result<Self> {
        let set = os::epoll_create()?;
        // Edge-triggered, so each ring is one event and the counter need never be read.
        let events = libc::EPOLLIN | libc::EPOLLET;
        os::epoll_change(
            set.as_raw_fd(),
            libc::EPOLL_CTL_ADD,
            notifier.as_raw_fd(),
            events,
            NOTIFIER,
        )?;
        let room = RefCell::new(vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX]);
        Ok(Self { set, room, files: FileThreads::new(name), _notifier: notifier })
    }
}

impl Poller for Epoll {
    fn name(&self) -> &'static str {
        "epoll"
    }

    fn add(&self, key: SocketKey, fd: RawFd) -> io::Result<()> {
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        os::epoll_change(self.set.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, events, key.0)
    }

    fn arm(&self, _key: SocketKey, _fd: RawFd, _direction: Direction) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _key: SocketKey, fd: RawFd, _armed: [bool; 2]) {
        // A live descriptor of the set: removal cannot fail, and closing would remove it anyway.
        let _removed = os::epoll_change(self.set.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    fn file(&self, op: Box<FileOp>, reply: Sender<FileDone>) {
        self.files.start(op, reply);
    }

    fn works_aside(&self) -> bool {
        self.files.work()
    }

    fn poll(&self, wait_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()> {
        let mut room = self.room.borrow_mut();
        let count = os::epoll_wait(self.set.as_raw_fd(), &mut room, wait_ns)?;
        for raw in &room[..count] {
            let (key, flags) = (raw.u64, raw.events.cast_signed());
            if key == NOTIFIER {
                continue;
            }
            let has = |wanted: libc::c_int| flags & wanted != 0;
            let write_closed = has(libc::EPOLLHUP | libc::EPOLLERR);
            let read_closed = has(libc::EPOLLRDHUP) || write_closed;
            events.push(Event {
                key: SocketKey(key),
                readable: has(libc::EPOLLIN) || read_closed,
                writable: has(libc::EPOLLOUT) || write_closed,
                read_closed,
                write_closed,
            });
        }
        Ok(())
    }
}
