//! Controllers of the drive: who is connected, with which queues.
//!
//! The admin commands themselves are answered by [`csd_nvme::controller`]; here is what its cores
//! share. Touched at Connect and at the end of a connection, never per command. Invariants: a
//! queue id is in use once per controller, from when its host has proved itself where it must;
//! with its admin queue a controller ends, and with it every I/O queue, on whatever core.

mod access;
mod counters;
pub mod executions;
mod health;
mod settings;

pub use access::Access;
pub use counters::{CoreCounters, View};
pub use executions::ExecutionLog;
pub(crate) use health::announce;
pub use settings::Settings;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_nvme::controller::ERROR_ENTRIES_MAX;
use csd_nvme::controller::connect::{Refused, Request};
use csd_nvme::log::ErrorEntry;
use csd_nvme::status::Status;

use crate::transport::newcomers::Connection;

/// Most controllers at once; ids are 1 to this.
pub const CONTROLLERS_MAX: u16 = 4096;

/// One controller as all cores see it.
#[derive(Debug)]
pub struct Association {
    /// Controller id.
    pub cntlid: u16,
    hostnqn: String,
    hostid: [u8; 16],
    /// CC.EN is set and the controller is not shut down: I/O queues may connect.
    pub ready: AtomicBool,
    /// When its host was last heard, in milliseconds of the drive's clock.
    pub heard_ms: AtomicU64,
    queues: Mutex<Queues>,
    discovery: bool,
    errors: Mutex<Errors>,
}

/// A controller's I/O queues.
#[derive(Debug, Default)]
struct Queues {
    // By queue id.
    used: BTreeMap<u16, Connection>,
    // Connections whose hosts have yet to prove themselves: they hold no queue id.
    claims: Vec<Connection>,
}

/// A controller's recent errors.
#[derive(Debug, Default)]
struct Errors {
    count: u64,
    // Newest first.
    entries: VecDeque<ErrorEntry>,
}

impl Association {
    /// Notes that the host was heard.
    pub fn heard(&self, now_ms: u64) {
        self.heard_ms.store(now_ms, Relaxed);
    }

    /// NVMe Qualified Name of the host, as it says.
    pub fn host_nqn(&self) -> &str {
        &self.hostnqn
    }

    /// Where the I/O queues' connections are: core and connection number.
    pub fn connections(&self) -> Vec<Connection> {
        let queues = self.queues();
        queues.used.values().chain(&queues.claims).copied().collect()
    }

    /// Number of I/O queues.
    pub fn io_queues(&self) -> usize {
        self.queues().used.len()
    }

    /// Notes an error; its count is set here.
    pub fn note_error(&self, mut entry: ErrorEntry) {
        let mut errors = self.errors();
        errors.count += 1;
        entry.set_count(errors.count);
        errors.entries.truncate(usize::from(ERROR_ENTRIES_MAX) - 1);
        errors.entries.push_front(entry);
    }

    /// Recent errors, newest first.
    pub fn recent_errors(&self) -> Vec<ErrorEntry> {
        self.errors().entries.iter().copied().collect()
    }

    /// Number of errors in the controller's life.
    pub fn error_count(&self) -> u64 {
        self.errors().count
    }

    fn errors(&self) -> MutexGuard<'_, Errors> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host of an I/O queue's connection has proved itself: from now on the queue id is in
    /// use. False when another connection was first, or the controller has ended its queues.
    pub fn proved(&self, qid: u16, connection: Connection) -> bool {
        let mut queues = self.queues();
        queues.claims.retain(|claim| *claim != connection);
        self.ready.load(Relaxed) && *queues.used.entry(qid).or_insert(connection) == connection
    }

    /// Forgets an I/O queue whose connection has ended.
    pub fn leave(&self, qid: u16, connection: Connection) {
        let mut queues = self.queues();
        queues.claims.retain(|claim| *claim != connection);
        if queues.used.get(&qid) == Some(&connection) {
            queues.used.remove(&qid);
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All controllers of the drive.
#[derive(Debug, Default)]
pub struct Controllers(Mutex<BTreeMap<u16, Arc<Association>>>);

impl Controllers {
    /// Makes a controller for an admin Connect.
    ///
    /// # Errors
    /// [`Status::CONTROLLER_BUSY`] when there are too many.
    pub fn create(&self, request: &Request, now_ms: u64) -> Result<Arc<Association>, Refused> {
        let mut all = self.all();
        let free = (1..=CONTROLLERS_MAX).find(|id| !all.contains_key(id));
        let cntlid = free.ok_or(Refused { status: Status::CONTROLLER_BUSY, dword0: 0 })?;
        let association = Arc::new(Association {
            cntlid,
            hostnqn: request.hostnqn.clone(),
            hostid: request.hostid,
            ready: AtomicBool::new(false),
            heard_ms: AtomicU64::new(now_ms),
            queues: Mutex::default(),
            discovery: request.discovery,
            errors: Mutex::default(),
        });
        all.insert(cntlid, Arc::clone(&association));
        Ok(association)
    }

    /// Joins an I/O queue to its controller; where its host must prove itself, its queue id stays
    /// free until [`Association::proved`].
    ///
    /// # Errors
    /// [`Refused`] when the controller does not exist, belongs to another host, is not enabled, or
    /// has the queue already.
    pub fn join(
        &self,
        request: &Request,
        connection: Connection,
        must_prove: bool,
    ) -> Result<Arc<Association>, Refused> {
        let found = self.all().get(&request.cntlid).filter(|found| !found.discovery).cloned();
        let association = found.ok_or(Refused::data(16))?;
        if association.hostnqn != request.hostnqn {
            return Err(Refused::data(512));
        }
        if association.hostid != request.hostid {
            return Err(Refused::data(0));
        }
        let qid = request.connect.qid();
        // Asked under the lock under which an ending controller collects its queues: one that
        // joins is collected, one that comes too late sees that it does.
        let mut queues = association.queues();
        if !association.ready.load(Relaxed) {
            return Err(Refused { status: Status::COMMAND_SEQUENCE_ERROR, dword0: 0 });
        }
        if queues.used.contains_key(&qid) {
            return Err(Refused::command(42));
        }
        if must_prove {
            queues.claims.push(connection);
        } else {
            queues.used.insert(qid, connection);
        }
        drop(queues);
        Ok(association)
    }

    /// Ids of the controllers that have namespaces, rising.
    pub fn ids(&self) -> Vec<u16> {
        let all = self.all();
        all.values().filter(|found| !found.discovery).map(|found| found.cntlid).collect()
    }

    /// Ends a controller.
    pub fn remove(&self, cntlid: u16) {
        self.all().remove(&cntlid);
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<Association>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
