//! [`Connections`]: the connections of one core, for others to end them or to report events.
//!
//! Each core keeps its registry as a core-local value, so that any core can reach a connection of
//! any other by a message.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use csd_nvme::controller::Event;
use csd_reactor::{Class, CoreId, core_count, core_local, post};

use super::cause::Cause;
use super::link::Link;

/// The connections of one core.
#[derive(Default)]
pub struct Connections {
    links: RefCell<BTreeMap<u64, Rc<Link>>>,
    draining: Cell<bool>,
    /// Turns in which bytes of hosts were received, without connections that yield to them.
    pub host_turns: Cell<u64>,
}

impl Connections {
    /// Adds a connection.
    pub fn insert(&self, link: Rc<Link>) {
        if self.draining.get() {
            link.drain();
        }
        self.links.borrow_mut().insert(link.number, link);
    }

    /// Removes a connection.
    pub fn remove(&self, number: u64) {
        self.links.borrow_mut().remove(&number);
    }

    /// Ends a connection.
    pub fn end(&self, number: u64, cause: Cause) {
        if let Some(link) = self.links.borrow().get(&number) {
            link.end(cause);
        }
    }

    /// Reports an event to every admin queue but that of the controller `except`.
    pub fn raise(&self, event: Event, except: Option<u16>) {
        self.links.borrow().values().for_each(|link| link.raise(event, except));
    }

    /// Drains all connections but those of admin queues: they take no new commands, and close when
    /// those they have are answered.
    pub fn drain_io(&self) {
        self.draining.set(true);
        let links = self.links.borrow();
        links.values().filter(|link| !link.is_admin()).for_each(|link| link.drain());
    }

    /// Drains all connections.
    pub fn drain_all(&self) {
        self.links.borrow().values().for_each(|link| link.drain());
    }

    /// Returns the number of connections of admin queues, or of the others.
    pub fn count(&self, of_admin_queues: bool) -> usize {
        let links = self.links.borrow();
        links.values().filter(|link| link.is_admin() == of_admin_queues).count()
    }
}

/// Ends a connection on any core.
pub fn end(core: CoreId, number: u64, cause: Cause) {
    // A core that is gone has no connections.
    let _ = post(core, Class::System, move || {
        if let Some(connections) = core_local::<Connections>() {
            connections.end(number, cause);
        }
    });
}

/// Reports an event to every controller but `except`, which caused it. The report runs on each core
/// after the caller's turn, on the caller's core too. Each controller decides whether its host
/// wants the event.
pub fn announce(event: Event, except: Option<u16>) {
    for core in 0..core_count() {
        // A core that is gone has no hosts.
        let _ = post(CoreId(core), Class::System, move || {
            if let Some(connections) = core_local::<Connections>() {
                connections.raise(event, except);
            }
        });
    }
}
