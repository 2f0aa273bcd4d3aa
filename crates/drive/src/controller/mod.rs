//! Controllers of the drive: associations with hosts, and their queues.
//!
//! [`csd_nvme::controller`] answers admin commands; this module has the state that cores share. It
//! is used at Connect and at the end of a connection, not per command. Invariants: a queue
//! identifier is in use once per controller, from when its host has authenticated itself if it
//! must; a controller ends with its admin queue, and with it every I/O queue, on any core.

mod access;
mod counters;
pub mod executions;
mod inside_only;
mod settings;

pub use access::Access;
pub use counters::CoreCounters;
pub use executions::ExecutionLog;
pub use inside_only::{Change, InsideOnly};
pub use settings::Settings;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_nvme::controller::ERROR_ENTRIES_MAX;
use csd_nvme::controller::connect::{Refused, Request};
use csd_nvme::log::ErrorEntry;
use csd_nvme::status::Status;
use csd_reactor::{CoreId, now};

/// Core of a connection, and its number on the drive.
pub type ConnectionId = (CoreId, u64);

/// Returns the milliseconds of the drive's clock.
pub fn now_ms() -> u64 {
    now().ns() / 1_000_000
}

/// Most controllers at once. Their identifiers are 1 to this number.
pub const CONTROLLERS_MAX: u16 = 4096;

/// State of one controller that all cores share.
#[derive(Debug)]
pub struct Association {
    /// Controller id.
    pub cntlid: u16,
    hostnqn: String,
    hostid: [u8; 16],
    /// True if CC.EN is set and the controller is not shut down: I/O queues may connect.
    pub ready: AtomicBool,
    /// Time at which its host was last heard, in milliseconds of the drive's clock.
    pub heard_ms: AtomicU64,
    queues: Mutex<Queues>,
    discovery: bool,
    errors: Mutex<Errors>,
}

/// A controller's I/O queues.
#[derive(Debug, Default)]
struct Queues {
    // By queue id.
    used: BTreeMap<u16, IoQueue>,
    // Connections of hosts that have not authenticated themselves yet: they hold no queue
    // identifier.
    claims: Vec<ConnectionId>,
}

/// An I/O queue whose host has authenticated itself if it must.
#[derive(Clone, Copy, Debug)]
struct IoQueue {
    connection: ConnectionId,
    // True if its connection is lost or must end: no command of it begins, but some may run.
    ending: bool,
}

impl IoQueue {
    fn new(connection: ConnectionId) -> Self {
        Self { connection, ending: false }
    }
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

    /// Returns the NVMe Qualified Name that the host has given.
    pub fn host_nqn(&self) -> &str {
        &self.hostnqn
    }

    /// Marks all I/O queues as ending. Returns their connections.
    pub fn end_queues(&self) -> Vec<ConnectionId> {
        let mut queues = self.queues();
        queues.used.values_mut().for_each(|queue| queue.ending = true);
        let used = queues.used.values().map(|queue| queue.connection);
        used.chain(queues.claims.iter().copied()).collect()
    }

    /// Notes that an I/O queue has lost its connection. It stays until its commands have ended.
    /// False when the connection had no queue, because its host has not authenticated itself.
    pub fn part(&self, qid: u16, connection: ConnectionId) -> bool {
        let mut queues = self.queues();
        let queue = queues.used.get_mut(&qid).filter(|queue| queue.connection == connection);
        queue.map(|queue| queue.ending = true).is_some()
    }

    /// Returns true when no command runs of a queue that is ending.
    fn is_settled(&self) -> bool {
        self.queues().used.values().all(|queue| !queue.ending)
    }

    /// Returns true for a controller of the host that asks, by its name or by its identifier.
    fn is_of(&self, request: &Request) -> bool {
        let identified = request.hostid != [0; 16] && self.hostid == request.hostid;
        identified || self.hostnqn == request.hostnqn
    }

    /// Returns the number of I/O queues, ending ones included.
    pub fn io_queues(&self) -> usize {
        self.queues().used.len()
    }

    /// Adds an error, and sets its count.
    pub fn note_error(&self, mut entry: ErrorEntry) {
        let mut errors = self.errors();
        errors.count += 1;
        entry.set_count(errors.count);
        errors.entries.truncate(usize::from(ERROR_ENTRIES_MAX) - 1);
        errors.entries.push_front(entry);
    }

    /// Returns the recent errors, newest first.
    pub fn recent_errors(&self) -> Vec<ErrorEntry> {
        self.errors().entries.iter().copied().collect()
    }

    /// Returns the number of errors in the life of the controller.
    pub fn error_count(&self) -> u64 {
        self.errors().count
    }

    fn errors(&self) -> MutexGuard<'_, Errors> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the host of an I/O queue's connection has authenticated itself: from now on the
    /// queue identifier is in use. False when another connection was first, or the controller has
    /// ended its queues.
    pub fn proved(&self, qid: u16, connection: ConnectionId) -> bool {
        let mut queues = self.queues();
        queues.claims.retain(|claim| *claim != connection);
        let queue = || IoQueue::new(connection);
        self.ready.load(Relaxed)
            && queues.used.entry(qid).or_insert_with(queue).connection == connection
    }

    /// Removes an I/O queue whose connection and commands have ended.
    pub fn leave(&self, qid: u16, connection: ConnectionId) {
        let mut queues = self.queues();
        queues.claims.retain(|claim| *claim != connection);
        if queues.used.get(&qid).is_some_and(|queue| queue.connection == connection) {
            queues.used.remove(&qid);
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All controllers of the drive.
#[derive(Debug, Default)]
pub struct Controllers(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    live: BTreeMap<u16, Arc<Association>>,
    // Controllers without an admin queue, while commands of their I/O queues run.
    ending: Vec<Arc<Association>>,
}

impl Table {
    fn forget_ended(&mut self) {
        self.ending.retain(|one| one.io_queues() > 0);
    }
}

impl Controllers {
    /// Makes a controller for an admin Connect.
    ///
    /// # Errors
    /// [`Status::CONTROLLER_BUSY`] when there are too many.
    pub fn create(&self, request: &Request, now_ms: u64) -> Result<Arc<Association>, Refused> {
        let mut all = self.all();
        all.forget_ended();
        let is_ending = |id| all.ending.iter().any(|one| one.cntlid == id);
        let free = (1..=CONTROLLERS_MAX).find(|id| !all.live.contains_key(id) && !is_ending(*id));
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
        all.live.insert(cntlid, Arc::clone(&association));
        Ok(association)
    }

    /// Joins an I/O queue to its controller. If its host must authenticate itself, its queue
    /// identifier stays free until [`Association::proved`].
    ///
    /// # Errors
    /// [`Refused`] when the controller does not exist, belongs to another host, is not enabled, or
    /// has the queue already.
    pub fn join(
        &self,
        request: &Request,
        connection: ConnectionId,
        must_prove: bool,
    ) -> Result<Arc<Association>, Refused> {
        let found = self.all().live.get(&request.cntlid).filter(|found| !found.discovery).cloned();
        let association = found.ok_or(Refused::data(16))?;
        if association.hostnqn != request.hostnqn {
            return Err(Refused::data(512));
        }
        if association.hostid != request.hostid {
            return Err(Refused::data(0));
        }
        let qid = request.connect.qid();
        // Checked under the lock under which an ending controller collects its queues: a queue that
        // joins before is collected, one that joins later sees the end.
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
            queues.used.insert(qid, IoQueue::new(connection));
        }
        drop(queues);
        Ok(association)
    }

    /// Returns the identifiers of the controllers that have namespaces, rising.
    pub fn ids(&self) -> Vec<u16> {
        let all = self.all();
        all.live.values().filter(|found| !found.discovery).map(|found| found.cntlid).collect()
    }

    /// Removes a controller. It is kept aside while commands of its I/O queues run.
    pub fn remove(&self, cntlid: u16) {
        let mut all = self.all();
        all.forget_ended();
        let ended = all.live.remove(&cntlid).filter(|one| one.io_queues() > 0);
        all.ending.extend(ended);
    }

    /// Returns true when no command runs of any queue that the host has lost or ended, so that no
    /// older command overtakes one that begins now.
    pub fn is_settled(&self, request: &Request) -> bool {
        let all = self.all();
        let of_host = all.live.values().chain(&all.ending).filter(|one| one.is_of(request));
        of_host.into_iter().all(|one| one.is_settled())
    }

    fn all(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
