//! [`Association`]: state that the connections of one controller share. They fail together.
//!
//! This module moves no bytes. Invariants: an association fails once, with the first error; from
//! then on every command in flight has ended and every new one ends at once.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use csd_reactor::{Class, Instant, Semaphore, now};

use crate::Error;

/// Bytes transferred on a controller's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Data of commands received by the host, bytes.
    pub payload_to_host: u64,
    /// Data of commands sent to the drive, bytes.
    pub payload_to_drive: u64,
    /// All bytes received from the sockets.
    pub wire_to_host: u64,
    /// All bytes sent to the sockets.
    pub wire_to_drive: u64,
}

/// A connection of the association.
pub(crate) trait Member {
    /// Ends every command in flight with this error, and the connection's task.
    fn fail(&self, error: &Error);
}

/// State shared by a controller's connections; see the module's text.
pub(crate) struct Association {
    /// The drive's address, for errors.
    pub(crate) drive: Arc<str>,
    /// Maximum time of a command.
    pub(crate) command_timeout: Duration,
    /// Class of the connections' tasks.
    pub(crate) class: Class,
    /// Free entries of the admin queue.
    pub(crate) admin_room: Semaphore,
    /// Free entries of all I/O queues together.
    pub(crate) io_room: Semaphore,
    traffic: Cell<Traffic>,
    /// Time of the last bytes from the drive.
    heard: Cell<Instant>,
    error: RefCell<Option<Error>>,
    connections: RefCell<Vec<Weak<dyn Member>>>,
}

/// More permits than there can be commands: releases every task that waits for a queue entry.
const LET_ALL_PASS: usize = 1 << 32;

impl Association {
    pub(crate) fn new(drive: Arc<str>, command_timeout: Duration, class: Class) -> Rc<Self> {
        Rc::new(Self {
            drive,
            command_timeout,
            class,
            admin_room: Semaphore::new(0),
            io_room: Semaphore::new(0),
            traffic: Cell::default(),
            heard: Cell::new(now()),
            error: RefCell::default(),
            connections: RefCell::default(),
        })
    }

    /// Adds a connection, which fails together with the others from now on.
    pub(crate) fn join(&self, connection: Weak<dyn Member>) {
        self.connections.borrow_mut().push(connection);
    }

    /// Returns the error that closed the controller, if it is closed.
    pub(crate) fn error(&self) -> Option<Error> {
        self.error.borrow().clone()
    }

    /// Returns true if the controller is closed.
    pub(crate) fn is_sealed(&self) -> bool {
        self.error.borrow().is_some()
    }

    /// Closes the controller: every command in flight ends with this error, and every task stops.
    pub(crate) fn fail(&self, error: &Error) {
        if self.error.borrow().is_some() {
            return;
        }
        self.error.replace(Some(error.clone()));
        let connections = std::mem::take(&mut *self.connections.borrow_mut());
        for connection in connections.iter().filter_map(Weak::upgrade) {
            connection.fail(error);
        }
        self.admin_room.add(LET_ALL_PASS);
        self.io_room.add(LET_ALL_PASS);
    }

    /// Closes the controller from this side.
    pub(crate) fn close(&self) {
        self.fail(&Error::Closed { drive: Arc::clone(&self.drive) });
    }

    /// Returns the bytes transferred so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Notes that bytes have come from the drive.
    pub(crate) fn hear(&self) {
        self.heard.set(now());
    }

    /// Returns the time of the last bytes from the drive; at first, that of the beginning.
    pub(crate) fn heard(&self) -> Instant {
        self.heard.get()
    }

    /// Updates the counters of transferred bytes.
    pub(crate) fn count(&self, note: impl FnOnce(&mut Traffic)) {
        let mut traffic = self.traffic.get();
        note(&mut traffic);
        self.traffic.set(traffic);
    }
}

/// Closes a controller when its last clone is dropped, or when connecting was abandoned.
pub(crate) struct Closer(pub(crate) Rc<Association>);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.close();
    }
}
