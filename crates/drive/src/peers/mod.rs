//! Peers: the drives that this drive may work with, and its connections to them.
//!
//! A host's command names a peer by its NQN; the address and the secret are those of the drive's
//! own file of peers. A peer that connects is known by its NQN too: its connection yields to those
//! of hosts, and it may not execute programs, so that drives at work for each other never wait in a
//! circle. Invariants: the drive connects to no address that is not in its file; a peer with a
//! secret is served, and used, only after authentication.

mod connections;
mod peer_list;

pub use connections::{Connections, Unavailable};
pub use peer_list::{Directory, Peer, PeerList};

use std::sync::{Arc, Mutex, PoisonError};

use csd_nvme::auth::{Keys, Secrets};
use csd_reactor::{Class, compute_fn};

use crate::log::{Level, Log};

/// Peers of a drive, shared by its cores.
#[derive(Debug)]
pub struct Peers {
    directory: Directory,
    /// NQN of this drive.
    own: String,
    /// PeerList that was read last.
    list: Mutex<Arc<PeerList>>,
}

impl Peers {
    /// Makes the peers of the drive with this NQN. The list is empty until it is first read.
    #[must_use]
    pub fn new(directory: Directory, own: &str) -> Self {
        Self { directory, own: own.to_owned(), list: Mutex::default() }
    }

    /// Returns the NQN of this drive.
    #[must_use]
    pub fn own(&self) -> &str {
        &self.own
    }

    /// Reads the list, which may have changed. If it cannot be read, the former one holds, and the
    /// log says why.
    pub async fn read(&self, log: &Log) -> Arc<PeerList> {
        let directory = self.directory.clone();
        let read = compute_fn(Class::System, 0, move || directory.read()).await;
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        match read.unwrap_or_else(|failed| Err(failed.to_string())) {
            Ok(read) => *list = read,
            Err(why) => {
                let fields = [("reason", why)];
                log.write_rated(Level::Warn, "the file of peers cannot be read", &fields);
            }
        }
        Arc::clone(&list)
    }
}

impl PeerList {
    /// Returns the secrets with which `host` and `subsystem`, both in the list, prove themselves to
    /// each other; `None` if the host has none.
    #[must_use]
    pub fn keys(&self, host: &str, subsystem: &str) -> Option<Keys> {
        self.secrets(host, subsystem).keys(host, subsystem)
    }

    /// Returns the secrets of a connection of `host` to `subsystem`.
    #[must_use]
    pub fn secrets(&self, host: &str, subsystem: &str) -> Secrets {
        let mut secrets = Secrets::default();
        if let Some(secret) = self.get(host).and_then(|peer| peer.secret.clone()) {
            secrets.set_host(host, secret);
        }
        if let Some(secret) = self.get(subsystem).and_then(|peer| peer.secret.clone()) {
            secrets.set_controller(secret);
        }
        secrets
    }
}
