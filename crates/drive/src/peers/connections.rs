//! [`Connections`] of one core to peers: made when they are needed, closed when they are idle.
//!
//! Invariants: a core has at most one controller of a peer; tasks that need the same peer wait for
//! the same attempt to connect.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Controller, Error, Options};
use csd_reactor::{Class, Instant, Semaphore, now, sleep, spawn};

use super::{PeerList, Peers};

/// Longest time of connecting to a peer. Authentication on a busy machine takes seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(7);
/// Longest time of a command to a peer. Both together end before hosts give the execution up, after
/// 30 s.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which an unused connection is closed.
const IDLE: Duration = Duration::from_secs(10);

/// Reason why there is no connection to a peer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unavailable {
    /// It is not in the list.
    #[error("{0} is not in the file of peers")]
    Unknown(String),
    /// It cannot be reached, or has refused this drive.
    #[error("{0}")]
    Failed(Error),
}

/// A connection to one peer.
struct Link {
    /// Held while one task connects.
    turn: Semaphore,
    controller: RefCell<Option<Controller>>,
    used: Cell<Instant>,
}

/// Connections of this core.
#[derive(Default)]
pub struct Connections {
    links: RefCell<BTreeMap<String, Rc<Link>>>,
    is_tidied: Cell<bool>,
}

impl Connections {
    /// Returns a controller of the peer `nqn` of the list.
    ///
    /// # Errors
    /// [`Unavailable`] with the reason.
    pub async fn connect(
        self: &Rc<Self>,
        peers: &Peers,
        list: &PeerList,
        nqn: &str,
    ) -> Result<Controller, Unavailable> {
        let peer = list.get(nqn).ok_or_else(|| Unavailable::Unknown(nqn.to_owned()))?;
        let link = self.link(nqn);
        let _turn = link.turn.acquire(1).await;
        link.used.set(now());
        let known = link.controller.borrow().clone();
        if let Some(controller) = known.filter(|controller| {
            controller.closed().is_none() && *controller.address() == peer.address
        }) {
            return Ok(controller);
        }
        let options = Options {
            host_nqn: peers.own().to_owned(),
            secrets: list.secrets(peers.own(), nqn),
            keep_alive: IDLE,
            connect_timeout: CONNECT_TIMEOUT,
            command_timeout: COMMAND_TIMEOUT,
            class: Class::Execution,
            ..Options::default()
        };
        let connected = Controller::connect(&peer.address, &options).await;
        let controller = connected.map_err(Unavailable::Failed)?;
        link.controller.replace(Some(controller.clone()));
        self.tidy();
        Ok(controller)
    }

    fn link(&self, nqn: &str) -> Rc<Link> {
        let mut links = self.links.borrow_mut();
        let new = || {
            let (turn, used) = (Semaphore::new(1), Cell::new(now()));
            Rc::new(Link { turn, controller: RefCell::default(), used })
        };
        Rc::clone(links.entry(nqn.to_owned()).or_insert_with(new))
    }

    /// Closes idle connections, in a task that ends with the last one.
    fn tidy(self: &Rc<Self>) {
        if self.is_tidied.replace(true) {
            return;
        }
        let this = Rc::clone(self);
        drop(spawn(Class::System, async move {
            loop {
                sleep(IDLE).await;
                let mut links = this.links.borrow_mut();
                // A task that holds the link uses it, or is about to.
                links.retain(|_, link| {
                    Rc::strong_count(link) > 1 || link.used.get().elapsed() < IDLE
                });
                if links.is_empty() {
                    this.is_tidied.set(false);
                    return;
                }
            }
        }));
    }
}
