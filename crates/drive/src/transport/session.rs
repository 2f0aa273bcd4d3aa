//! [`Session`]: the kind of queue that a connection serves.
//!
//! It runs no command. Invariant: a session ends with its connection, and an admin session takes
//! its controller's I/O connections with it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::capsule::Cqe;
use csd_nvme::controller::queue::Permit;
use csd_nvme::controller::{Controller, Event};
use csd_nvme::status::Status;
use csd_reactor::core_id;

use super::cause::Cause;
use crate::controller::{Association, ConnectionId, Controllers};
use crate::log::{Level, Log};

/// The kind of queue that a connection serves.
#[derive(Debug)]
pub enum Session {
    /// No queue yet: only Connect is allowed.
    Unconnected,
    /// The admin queue of a controller.
    Admin(Box<Admin>),
    /// An I/O queue.
    Io {
        /// Controller of the queue.
        association: Arc<Association>,
        /// Queue identifier.
        qid: u16,
        /// Core and number of the connection.
        connection: ConnectionId,
    },
}

/// An admin queue.
#[derive(Debug)]
pub struct Admin {
    /// State machine of the controller.
    pub controller: Controller,
    /// State of the controller that all cores share.
    pub association: Arc<Association>,
    held: Vec<Permit>,
}

impl Admin {
    /// Notes an event.
    pub fn raise(&mut self, event: Event) {
        self.controller.raise(event);
    }

    /// Returns the controller identifier.
    pub fn cntlid(&self) -> u16 {
        self.controller.cntlid
    }

    /// Holds an Asynchronous Event Request until an event completes it.
    pub fn hold(&mut self, permit: Permit) {
        self.held.push(permit);
    }

    /// Takes back the held request of this identifier.
    ///
    /// # Panics
    /// When no such request is held.
    pub fn take_held(&mut self, cid: u16) -> Permit {
        let at = self.held.iter().position(|permit| permit.cid() == cid);
        self.held.remove(at.expect("the controller knows what is held"))
    }

    /// Drops the held request of this identifier. Returns false if there is none.
    fn forget(&mut self, cid: u16) -> bool {
        let held = self.controller.forget(cid);
        if held {
            self.take_held(cid).forget();
        }
        held
    }

    /// Returns the completion of a held request with the next event; `None` without either.
    pub fn next_event(&mut self) -> Option<Cqe> {
        let (cid, dword) = self.controller.take_event()?;
        Some(self.take_held(cid).complete(Status::SUCCESS, u64::from(dword)))
    }
}

impl Session {
    /// Makes the session of a new controller's admin queue.
    pub fn admin(controller: Controller, association: Arc<Association>) -> Self {
        Self::Admin(Box::new(Admin { controller, association, held: Vec::new() }))
    }

    /// Returns the controller's shared state.
    pub fn association(&self) -> Option<&Arc<Association>> {
        match self {
            Self::Unconnected => None,
            Self::Admin(admin) => Some(&admin.association),
            Self::Io { association, .. } => Some(association),
        }
    }

    /// Returns true for an I/O queue.
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Io { .. })
    }

    /// Notes that the host has authenticated itself on this queue. Returns false if the queue
    /// identifier went to another connection meanwhile.
    pub fn authenticated(&self) -> bool {
        match self {
            Self::Io { association, qid, connection } => association.proved(*qid, *connection),
            _ => true,
        }
    }

    /// Drops a held Asynchronous Event Request whose identifier a new command has. SPDK drops its
    /// requests silently before it detaches, and reuses their identifiers. Returns false if no such
    /// request has the identifier.
    pub fn forget(&mut self, cid: u16) -> bool {
        match self {
            Self::Admin(admin) => admin.forget(cid),
            _ => false,
        }
    }

    /// Returns the keep-alive timeout in milliseconds; 0 when this connection enforces none.
    pub fn keep_alive_ms(&self) -> u64 {
        match self {
            Self::Admin(admin) => u64::from(admin.controller.keep_alive_ms()),
            _ => 0,
        }
    }

    /// Logs an event of the session, such as its beginning or its end with its cause.
    pub fn log_event(&self, log: &Log, level: Level, event: &'static str, cause: Option<Cause>) {
        let Some(association) = self.association() else { return };
        let qid = if let Self::Io { qid, .. } = self { *qid } else { 0 };
        let fields = [
            ("host", association.host_nqn().to_owned()),
            ("controller", association.cntlid.to_string()),
            ("queue", qid.to_string()),
            ("core", core_id().to_string()),
            ("cause", cause.map(|cause| cause.to_string()).unwrap_or_default()),
        ];
        let count = fields.len() - usize::from(cause.is_none());
        log.write_rated(level, event, &fields[..count]);
    }

    /// Ends the session with its connection. Returns the I/O connections of the controller that
    /// end with it.
    #[must_use]
    pub fn end(&mut self, controllers: &Controllers) -> Vec<ConnectionId> {
        match std::mem::replace(self, Self::Unconnected) {
            Self::Unconnected => Vec::new(),
            Self::Io { association, qid, connection } => {
                association.leave(qid, connection);
                Vec::new()
            }
            Self::Admin(admin) => {
                admin.association.ready.store(false, Relaxed);
                let queues = admin.association.end_queues();
                controllers.remove(admin.association.cntlid);
                queues
            }
        }
    }
}
