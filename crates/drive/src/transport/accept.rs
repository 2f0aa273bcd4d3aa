//! Accepting connections and dealing them to cores: each goes to the core with the fewest.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use csd_nvme::controller::Event;
use csd_reactor::{
    Class, CoreId, Listener, Stream, core_id, core_local, post, sleep, spawn, yield_now,
};

use super::connection;
use super::link::Link;
use super::turns::origin;
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
    // Over all cores.
    let mut number = 0;
    let log = shared.log().clone();
    drop(spawn(Class::System, async move {
        loop {
            sleep(SUMMARY_EVERY).await;
            log.summarise(false);
        }
    }));
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(ACCEPT_RETRY).await;
            continue;
        };
        let loads = || shared.connections.iter().map(|count| count.load(Relaxed));
        let most = shared.host_limits.connections;
        let open = || shared.newcomers.count(loads().sum());
        if let Some((core, number)) = shared.newcomers.give_way(open(), most) {
            end(core, number);
            yield_now().await;
        }
        let all = open();
        let surplus = all >= most;
        if all >= most + SURPLUS_MAX {
            shared.surplus.fetch_add(1, Relaxed);
            let fields = [("connections", all.to_string())];
            shared.log().write_rated(Level::Warn, "connection refused: too many", &fields);
            continue;
        }
        let least = loads().enumerate().min_by_key(|(_, load)| *load).map_or(0, |(core, _)| core);
        shared.connections[least].fetch_add(1, Relaxed);
        number += 1;
        let leaving = Leaving { shared: Arc::clone(&shared), core: CoreId(least), number };
        if !shared.access.secrets.is_empty() && !surplus {
            shared.newcomers.enter((CoreId(least), number), origin(peer.ip()));
        }
        if CoreId(least) == core_id() {
            begin(stream, surplus, leaving);
            continue;
        }
        let detached = stream.detach();
        // A core that is gone takes nothing: the drive is stopping.
        let _ = post(CoreId(least), Class::System, move || {
            if let Ok(stream) = detached.attach() {
                begin(stream, surplus, leaving);
            }
        });
    }
}

fn begin(stream: Stream, surplus: bool, leaving: Leaving) {
    let core = core_local::<Core>().expect("a drive's core keeps itself");
    drop(spawn(Class::Foreground, async move {
        connection::serve(stream, core, leaving.number, surplus).await;
        drop(leaving);
    }));
}

/// Ends a connection on whatever core.
pub fn end(core: CoreId, number: u64) {
    // A core that is gone has no connections.
    let _ = post(core, Class::System, move || {
        if let Some(core) = core_local::<Core>() {
            core.connections.end(number);
        }
    });
}

/// A connection that is counted until this is dropped.
struct Leaving {
    shared: Arc<Shared>,
    core: CoreId,
    number: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let count: &AtomicUsize = &self.shared.connections[self.core.0];
        count.fetch_sub(1, Relaxed);
        self.shared.newcomers.remove(self.number);
    }
}

/// The connections of one core, so that others can end them or tell them of events.
#[derive(Default)]
pub struct Connections {
    links: RefCell<BTreeMap<u64, Rc<Link>>>,
    draining: Cell<bool>,
}

impl Connections {
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
