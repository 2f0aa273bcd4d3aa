//! Accepting connections and dealing them to cores: each goes to the core with the fewest.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use csd_nvme::controller::Event;
use csd_reactor::{Class, CoreId, Listener, Stream, core_id, kept, post, sleep, spawn};

use super::connection;
use super::link::Link;
use crate::drive::{Core, Shared};
use crate::log::Level;

/// Wait before another try when accepting fails, such as for lack of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Pause between two summaries of events that were held back.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// Connections beyond the limit that are heard, to be told that there are too many. More are
/// closed as they come.
const SURPLUS_MAX: usize = 32;

/// Accepts until the listener is dropped.
pub async fn accept(listener: Listener, shared: Arc<Shared>) {
    let log = shared.log().clone();
    drop(spawn(Class::System, async move {
        loop {
            sleep(SUMMARY_EVERY).await;
            log.summarise();
        }
    }));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        let loads = || shared.connections.iter().map(|count| count.load(Relaxed));
        let (all, most) = (loads().sum::<usize>(), shared.host_limits.connections);
        let surplus = all >= most;
        if all >= most + SURPLUS_MAX {
            shared.surplus.fetch_add(1, Relaxed);
            let fields = [("connections", all.to_string())];
            shared.log().write_rated(Level::Warn, "connection refused: too many", &fields);
            continue;
        }
        let least = loads().enumerate().min_by_key(|(_, load)| *load).map_or(0, |(core, _)| core);
        shared.connections[least].fetch_add(1, Relaxed);
        if CoreId(least) == core_id() {
            begin(stream, surplus);
            continue;
        }
        let detached = stream.detach();
        let shared = Arc::clone(&shared);
        // A core that is gone takes nothing: the drive is stopping.
        let _ = post(CoreId(least), Class::System, move || match detached.attach() {
            Ok(stream) => begin(stream, surplus),
            Err(_) => drop(Leaving(shared, CoreId(least))),
        });
    }
}

fn begin(stream: Stream, surplus: bool) {
    let core = kept::<Core>().expect("a drive's core keeps itself");
    drop(spawn(Class::Foreground, async move {
        let leaving = Leaving(Arc::clone(&core.shared), core_id());
        connection::serve(stream, core, surplus).await;
        drop(leaving);
    }));
}

struct Leaving(Arc<Shared>, CoreId);

impl Drop for Leaving {
    fn drop(&mut self) {
        let count: &AtomicUsize = &self.0.connections[self.1.0];
        count.fetch_sub(1, Relaxed);
    }
}

/// The connections of one core, so that others can end them or tell them of events.
#[derive(Default)]
pub struct Connections {
    links: RefCell<BTreeMap<u64, Rc<Link>>>,
    next: Cell<u64>,
    draining: Cell<bool>,
}

impl Connections {
    /// A number for a new connection of this core.
    pub fn number(&self) -> u64 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    /// Notes a connection.
    pub fn insert(&self, number: u64, link: Rc<Link>) {
        if self.draining.get() {
            link.drain();
        }
        self.links.borrow_mut().insert(number, link);
    }

    /// Forgets a connection.
    pub fn remove(&self, number: u64) {
        self.links.borrow_mut().remove(&number);
    }

    /// Ends a connection.
    pub fn end(&self, number: u64) {
        if let Some(link) = self.links.borrow().get(&number) {
            link.end();
        }
    }

    /// Tells every admin queue of an event, but not that of the controller `except`.
    pub fn raise(&self, event: Event, except: Option<u16>) {
        self.links.borrow().values().for_each(|link| link.raise(event, except));
    }

    /// Has connections take no new commands and close when those they have are answered, save for
    /// those of admin queues.
    pub fn drain_io(&self) {
        self.draining.set(true);
        let links = self.links.borrow();
        links.values().filter(|link| !link.is_admin()).for_each(|link| link.drain());
    }

    /// The same for all connections.
    pub fn drain_all(&self) {
        self.links.borrow().values().for_each(|link| link.drain());
    }

    /// Connections of admin queues, or the others.
    pub fn count(&self, of_admin_queues: bool) -> usize {
        let links = self.links.borrow();
        links.values().filter(|link| link.is_admin() == of_admin_queues).count()
    }
}
