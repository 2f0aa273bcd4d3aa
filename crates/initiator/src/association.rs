//! [`Association`]: what the connections of one controller share. They fail together.
//!
//! Does not touch bytes. Invariants: an association fails once, with the first reason; from then on
//! every command in flight has ended and every new one ends at once.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use csd_reactor::Semaphore;

use crate::Error;

/// Bytes that crossed the wire on a controller's connections, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Data of commands that reached the host, bytes.
    pub payload_to_host: u64,
    /// Data of commands that left for the drive, bytes.
    pub payload_to_drive: u64,
    /// All that was received from the sockets, bytes.
    pub wire_to_host: u64,
    /// All that was given to the sockets, bytes.
    pub wire_to_drive: u64,
}

/// A connection of the association.
pub(crate) trait Member {
    /// Ends every command in flight with this error, and the connection's task.
    fn fail(&self, error: &Error);
}

/// See the module's text.
pub(crate) struct Association {
    /// The drive's address, for errors.
    pub(crate) drive: Arc<str>,
    /// Longest that a command may take.
    pub(crate) command_timeout: Duration,
    /// Room in the admin queue.
    pub(crate) admin_room: Semaphore,
    /// Room in all I/O queues together.
    pub(crate) io_room: Semaphore,
    traffic: Cell<Traffic>,
    error: RefCell<Option<Error>>,
    connections: RefCell<Vec<Weak<dyn Member>>>,
}

/// More permits than there can be commands: they let everyone who waits for room pass.
const LET_ALL_PASS: usize = 1 << 32;

impl Association {
    pub(crate) fn new(drive: Arc<str>, command_timeout: Duration) -> Rc<Self> {
        Rc::new(Self {
            drive,
            command_timeout,
            admin_room: Semaphore::new(0),
            io_room: Semaphore::new(0),
            traffic: Cell::default(),
            error: RefCell::default(),
            connections: RefCell::default(),
        })
    }

    /// Adds a connection, which fails from now on when the others do.
    pub(crate) fn join(&self, connection: Weak<dyn Member>) {
        self.connections.borrow_mut().push(connection);
    }

    /// Why the controller is closed, if it is.
    pub(crate) fn error(&self) -> Option<Error> {
        self.error.borrow().clone()
    }

    /// True when the controller is closed.
    pub(crate) fn is_sealed(&self) -> bool {
        self.error.borrow().is_some()
    }

    /// Closes the controller: every command in flight ends with this error, every task stops.
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

    /// What crossed the wire so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    /// Notes what crossed the wire.
    pub(crate) fn count(&self, note: impl FnOnce(&mut Traffic)) {
        let mut traffic = self.traffic.get();
        note(&mut traffic);
        self.traffic.set(traffic);
    }
}

/// Closes a controller when its last user is gone, or when connecting was given up.
pub(crate) struct Closer(pub(crate) Rc<Association>);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.close();
    }
}
