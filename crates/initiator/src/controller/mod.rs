//! [`Controller`]: one host's association with one drive, on one core.
//!
//! It does not retry or fail over. Invariants: the admin queue and each I/O queue have a connection
//! each; when one of them fails all do; they close when the last clone is dropped.
//!
//! - `auth`: authentication of a queue
//! - `connect`: the steps from a socket to a ready controller
//! - `describe`: the drive's description of itself and its namespaces
//! - `discover`: records of a discovery subsystem

mod auth;
mod connect;
mod describe;
mod discover;

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use csd_nvme::capsule::Sqe;
use csd_nvme::fabrics;
use csd_nvme::identify::IdentifyController;
use csd_nvme::opcode::{Admin, Cp, Csi, Fabrics, Kv, Nvm, Slm};
use csd_nvme::property::{self, Configuration, ControllerStatus};
use csd_reactor::{Buffer, JoinHandle, sleep, timeout};

pub use describe::{Namespace, NamespaceKind};
pub use discover::discover;

use crate::association::{Association, Closer, Traffic};
use crate::connection::{Answer, Connection, Reply, Request};
use crate::{Address, Error, Options};

/// Maximum data that a command of the admin queue carries in its capsule, bytes.
const ADMIN_IN_CAPSULE_BYTES: usize = 8192;
/// Maximum time for a drive to shut down in order.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two reads of a property that is about to change.
const PROPERTY_PAUSE: Duration = Duration::from_millis(5);

/// A connected drive; clones are the same controller. See the module's text.
#[derive(Clone)]
pub struct Controller(Rc<Inner>);

struct Inner {
    address: Address,
    association: Rc<Association>,
    admin: Rc<Connection>,
    io: Vec<Rc<Connection>>,
    configuration: Configuration,
    identity: Box<IdentifyController>,
    transfer_bytes_max: u32,
    in_capsule_bytes_max: u32,
    namespaces: Vec<Namespace>,
    keep_alive: Cell<Option<JoinHandle<()>>>,
    _closer: Closer,
}

impl Controller {
    /// Connects to the drive at `address`: admin queue, controller, namespaces, I/O queues.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Timeout`] with the step, [`Error::Status`] if the drive
    /// refuses a step, or any other error of a command. Everything opened is closed.
    pub async fn connect(address: &Address, options: &Options) -> Result<Self, Error> {
        connect::connect(address, options).await
    }

    /// Returns the address of the drive.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    /// Returns the drive's Identify Controller data.
    #[must_use]
    pub fn identity(&self) -> &IdentifyController {
        &self.0.identity
    }

    /// Returns the maximum transfer of one command in bytes (MDTS), at most 16 MiB.
    #[must_use]
    pub fn transfer_bytes_max(&self) -> u32 {
        self.0.transfer_bytes_max
    }

    /// Returns the maximum in-capsule data of an I/O command in bytes (IOCCSZ).
    #[must_use]
    pub fn in_capsule_bytes_max(&self) -> u32 {
        self.0.in_capsule_bytes_max
    }

    /// Returns the number of I/O queues that the drive allowed.
    #[must_use]
    pub fn io_queues(&self) -> usize {
        self.0.io.len()
    }

    /// Returns the drive's namespaces by rising id, as they were when connecting.
    #[must_use]
    pub fn namespaces(&self) -> &[Namespace] {
        &self.0.namespaces
    }

    /// Returns the namespace with this id.
    #[must_use]
    pub fn namespace(&self, nsid: u32) -> Option<&Namespace> {
        self.0.namespaces.iter().find(|namespace| namespace.nsid == nsid)
    }

    /// Returns the number of data bytes received from the drive so far.
    #[must_use]
    pub fn bytes_to_host(&self) -> u64 {
        self.traffic().payload_to_host
    }

    /// Returns the number of data bytes sent to the drive so far.
    #[must_use]
    pub fn bytes_to_drive(&self) -> u64 {
        self.traffic().payload_to_drive
    }

    /// Returns all bytes transferred so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.0.association.traffic()
    }

    /// Returns the error that closed the controller; `None` while it is open.
    #[must_use]
    pub fn closed(&self) -> Option<Error> {
        self.0.association.error()
    }

    /// Sends an admin command with `data`, expecting at most `to_host` bytes back.
    ///
    /// # Errors
    /// Any error of a command.
    pub async fn admin(&self, sqe: Sqe, data: &[u8], to_host: u32) -> Result<Reply, Error> {
        admin(&self.0.association, &self.0.admin, sqe, data, to_host).await
    }

    /// Sends an I/O command on the queue with the most free entries; waits if all queues are full.
    /// `payload` goes to the drive, in the capsule if it is short enough; at most `to_host` bytes
    /// come back. A command whose future is dropped stays in flight, and its answer is discarded.
    ///
    /// # Errors
    /// Any error of a command; [`Error::TooLarge`] above [`Self::transfer_bytes_max`].
    pub async fn submit(
        &self,
        sqe: Sqe,
        mut payload: Vec<Buffer>,
        to_host: u32,
    ) -> Result<Reply, Error> {
        self.submit_kept(sqe, &mut payload, to_host).await
    }

    /// Does the same as [`Self::submit`]. If the connection is lost before an answer comes, the
    /// payload is in `payload` again, for another connection.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub async fn submit_kept(
        &self,
        sqe: Sqe,
        payload: &mut Vec<Buffer>,
        to_host: u32,
    ) -> Result<Reply, Error> {
        let (reply, unsent) = self.start(sqe, payload, to_host).await?.await;
        *payload = unsent;
        reply
    }

    /// Starts a command as [`Self::submit`] does; the answer has its identifier.
    ///
    /// # Errors
    /// As [`Self::submit`], before an answer comes.
    pub(crate) async fn start(
        &self,
        sqe: Sqe,
        payload: &mut Vec<Buffer>,
        to_host: u32,
    ) -> Result<Answer, Error> {
        let inner = &*self.0;
        let bytes = payload.iter().map(|part| part.len() as u64).sum::<u64>();
        let most = bytes.max(to_host.into());
        if most > inner.transfer_bytes_max.into() {
            return Err(self.too_large(most, inner.transfer_bytes_max.into()));
        }
        let permit = inner.association.io_room.acquire(1).await;
        if let Some(error) = inner.association.error() {
            return Err(error);
        }
        let queue = inner.io.iter().max_by_key(|queue| queue.room());
        let queue = queue.expect("a connected controller has an I/O queue");
        let in_capsule = bytes <= inner.in_capsule_bytes_max.into();
        let what = self.command_name(&sqe);
        let (permit, bytes) = (Some(permit), std::mem::take(payload));
        let request = Request { sqe, what, payload: bytes, in_capsule, to_host, permit };
        queue.start(request)
    }

    /// Shuts the controller down in order (CC.SHN) and closes its connections. Commands still in
    /// flight, of any clone, end with [`Error::Closed`].
    pub async fn disconnect(self) {
        let inner = &*self.0;
        // A drive that does not shut down in order is left all the same.
        let shutdown = timeout(SHUTDOWN_TIMEOUT, self.shut_down()).await;
        drop(shutdown);
        inner.association.close();
    }

    async fn shut_down(&self) -> Result<(), Error> {
        let value = self.0.configuration.with_shn(1).0;
        self.admin(fabrics::property_set(property::CC, value), &[], 0).await?;
        loop {
            let reply = self.admin(fabrics::property_get(property::CSTS, false), &[], 0).await?;
            let status = ControllerStatus(low(reply.result));
            if status.shst() == 2 {
                return Ok(());
            }
            sleep(PROPERTY_PAUSE).await;
        }
    }

    /// Returns the name of an I/O command, which depends on its namespace's command set.
    fn command_name(&self, sqe: &Sqe) -> &'static str {
        let opcode = sqe.opcode();
        let csi = self.namespace(sqe.nsid()).map_or(Csi::NVM, |namespace| namespace.csi);
        let name = match csi {
            Csi::NVM => Nvm(opcode).text(),
            Csi::KV => Kv(opcode).text(),
            Csi::SLM => Slm(opcode).text(),
            Csi::CP => Cp(opcode).text(),
            _ => None,
        };
        name.unwrap_or("an I/O command")
    }

    pub(crate) fn too_large(&self, bytes: u64, bytes_max: u64) -> Error {
        Error::TooLarge { drive: Arc::clone(&self.0.association.drive), bytes, bytes_max }
    }

    pub(crate) fn misuse(&self, reason: impl Into<String>) -> Error {
        Error::Misuse { drive: Arc::clone(&self.0.association.drive), reason: reason.into() }
    }

    pub(crate) fn protocol(&self, reason: impl Into<String>) -> Error {
        Error::Protocol { drive: Arc::clone(&self.0.association.drive), reason: reason.into() }
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Controller({})", self.0.address)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(task) = self.keep_alive.take() {
            task.abort();
        }
    }
}

/// Returns the low half of a result: dword 0.
#[allow(clippy::cast_possible_truncation)] // on purpose
fn low(result: u64) -> u32 {
    result as u32
}

/// Sends an admin command; waits if the admin queue is full.
async fn admin(
    association: &Association,
    connection: &Rc<Connection>,
    sqe: Sqe,
    data: &[u8],
    to_host: u32,
) -> Result<Reply, Error> {
    let what = match Admin(sqe.opcode()) {
        Admin::FABRICS => Fabrics::text(fabrics::fctype(&sqe)),
        opcode => opcode.text(),
    };
    let what = what.unwrap_or("an admin command");
    let permit = Some(association.admin_room.acquire(1).await);
    let payload = if data.is_empty() { Vec::new() } else { vec![Buffer::from_slice(data)] };
    let in_capsule = data.len() <= ADMIN_IN_CAPSULE_BYTES;
    connection.start(Request { sqe, what, payload, in_capsule, to_host, permit })?.await.0
}

/// Sends a keep-alive every `pause` as long as the controller exists.
async fn keep_alive(controller: Weak<Inner>, pause: Duration) {
    loop {
        sleep(pause).await;
        let Some(inner) = controller.upgrade().map(Controller) else { return };
        let sqe = Sqe::new(Admin::KEEP_ALIVE.0, 0);
        // A drive that answers with an error status is alive; any other error has closed the
        // controller, and said why.
        if inner.admin(sqe, &[], 0).await.is_err_and(|error| error.status().is_none()) {
            return;
        }
    }
}
