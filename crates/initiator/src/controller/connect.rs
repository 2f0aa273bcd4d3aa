//! Connects: from a socket to a ready controller, step by step.
//!
//! Source: NVMe Base Specification, "Controller Initialization" over fabrics; NVMe/TCP, "Connection
//! Establishment". Invariant: if a step fails, everything opened before is closed.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_nvme::auth::CONNECT_ATR;
use csd_nvme::capsule::Sqe;
use csd_nvme::fabrics::{self, CATTR_NO_FLOW_CONTROL};
use csd_nvme::feature::{FeatureId, NumberOfQueues, set_features};
use csd_nvme::host::connect_data;
use csd_nvme::identify::IdentifyController;
use csd_nvme::property::{self, Capabilities, Configuration, ControllerStatus};
use csd_reactor::{Class, Endpoint, Stream, now, random_bytes, sleep, spawn, timeout};

use super::{Controller, Inner, PROPERTY_PAUSE, admin, auth, describe, keep_alive, low};
use crate::association::{Association, Closer};
use crate::connection::{Connection, Reply, Request};
use crate::options::CONNECT_ANSWERS;
use crate::{Address, Error, Options};

/// Entries of the admin queue: the minimum of a fabrics drive.
const ADMIN_ENTRIES: u16 = 32;
/// Maximum transfer of one command, even if the drive allows more, bytes.
const TRANSFER_BYTES_MAX: u32 = 16 << 20;
/// Size of a submission queue entry in bytes; IOCCSZ includes it.
const SQE_BYTES: u32 = 64;

pub(super) async fn connect(address: &Address, options: &Options) -> Result<Controller, Error> {
    let whole = Address { nsid: None, ..address.clone() };
    let drive: Arc<str> = whole.to_string().into();
    let step = Cell::new("the connection");
    let connecting = Connecting::new(address, options, &drive, &step);
    connecting.unless_silent(connecting.run()).await
}

/// Connects and enables an admin queue alone; it closes with the [`Closer`].
pub(super) async fn admin_only(
    address: &Address,
    options: &Options,
) -> Result<(Rc<Connection>, Closer), Error> {
    let drive: Arc<str> = address.to_string().into();
    let step = Cell::new("the connection");
    let connecting = Connecting::new(address, options, &drive, &step);
    let closer = Closer(Rc::clone(&connecting.association));
    let steps = async {
        let (connection, cntlid) = connecting.admin_queue().await?;
        connecting.enable(&connection, cntlid).await?;
        Ok(connection)
    };
    connecting.unless_silent(steps).await.map(|connection| (connection, closer))
}

struct Connecting<'a> {
    address: &'a Address,
    options: &'a Options,
    host_id: [u8; 16],
    association: Rc<Association>,
    /// Name of the current step, for the error of a timeout.
    step: &'a Cell<&'static str>,
    /// The one of several addresses that answered.
    reached: RefCell<Option<Endpoint>>,
}

/// Data read over the admin queue.
struct Told {
    capabilities: Capabilities,
    configuration: Configuration,
    cntlid: u16,
}

impl<'a> Connecting<'a> {
    fn new(
        address: &'a Address,
        options: &'a Options,
        drive: &Arc<str>,
        step: &'a Cell<&'static str>,
    ) -> Self {
        let mut host_id = options.host_id;
        if host_id == [0; 16] {
            random_bytes(&mut host_id);
        }
        let (timeout, class) = (options.command_timeout, options.class);
        let association = Association::new(Arc::clone(drive), timeout, class);
        Self { address, options, host_id, association, step, reached: RefCell::default() }
    }

    /// Takes these steps, unless the drive is silent for too long, or answers without end.
    async fn unless_silent<T>(
        &self,
        steps: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut steps = pin!(steps);
        let (limit, begun) = (self.options.connect_timeout, now());
        loop {
            let at = (self.association.heard() + limit).min(begun + limit * CONNECT_ANSWERS);
            let left = at.since(now());
            if let Ok(done) = timeout(left, steps.as_mut()).await {
                return done;
            }
            if left == Duration::ZERO {
                return Err(self.silent(limit));
            }
        }
    }

    fn silent(&self, after: Duration) -> Error {
        Error::Timeout { drive: self.drive(), what: self.step.get(), after }
    }

    async fn run(&self) -> Result<Controller, Error> {
        // From here on, whatever ends this future early closes all connections.
        let closer = Closer(Rc::clone(&self.association));
        let (connection, cntlid) = self.admin_queue().await?;
        let told = self.enable(&connection, cntlid).await?;
        self.step.set("Identify");
        let identity = self.identify(&connection).await?;
        let namespaces = describe::namespaces(&self.association, &connection).await?;
        self.step.set("the connection of the I/O queues");
        let io = self.io_queues(&connection, &told).await?;
        let inner = Inner {
            address: self.address.clone(),
            association: Rc::clone(&self.association),
            admin: connection,
            io,
            configuration: told.configuration,
            transfer_bytes_max: transfer_bytes_max(&identity, told.capabilities),
            in_capsule_bytes_max: (identity.ioccsz().saturating_mul(16)).saturating_sub(SQE_BYTES),
            identity,
            namespaces,
            keep_alive: Cell::new(None),
            _closer: closer,
        };
        let controller = Controller(Rc::new(inner));
        if self.options.keep_alive > Duration::ZERO {
            let pause = self.options.keep_alive / 2;
            let task = keep_alive(Rc::downgrade(&controller.0), pause);
            controller.0.keep_alive.set(Some(spawn(Class::System, task)));
        }
        Ok(controller)
    }

    async fn open(&self, entries: u16) -> Result<Rc<Connection>, Error> {
        let unreachable =
            |cause| Error::Unreachable { drive: self.drive(), cause: Arc::new(cause) };
        let limit = self.options.reach_timeout.min(self.options.connect_timeout);
        let reached = timeout(limit, self.stream(limit)).await;
        let stream = reached.map_err(|_| self.silent(limit))?.map_err(unreachable)?;
        Connection::open(&self.association, stream, entries, self.options.digests).await
    }

    /// Connects to the first address of the drive that answers within `limit`; every queue to the
    /// same one.
    async fn stream(&self, limit: Duration) -> io::Result<Stream> {
        let reached = self.reached.borrow().clone();
        if let Some(socket) = reached {
            return Stream::connect(socket).await;
        }
        let sockets = self.address.sockets();
        if let [socket] = &sockets[..] {
            return Stream::connect(socket).await;
        }
        // One that does not answer leaves time for the others.
        let share = limit / u32::try_from(sockets.len() + 1).unwrap_or(2);
        let (mut kind, mut reasons) = (io::ErrorKind::TimedOut, Vec::new());
        for socket in sockets {
            match timeout(share, Stream::connect(&socket)).await {
                Ok(Ok(stream)) => {
                    *self.reached.borrow_mut() = Some(socket);
                    return Ok(stream);
                }
                Ok(Err(error)) => {
                    kind = error.kind();
                    reasons.push(format!("{socket}: {error}"));
                }
                Err(_) => reasons.push(format!("{socket}: no answer for {share:?}")),
            }
        }
        Err(io::Error::new(kind, reasons.join("; ")))
    }

    /// Connects the queue `qid` of `entries` entries; returns the controller's id, and true if the
    /// drive requires authentication.
    async fn queue(
        &self,
        connection: &Rc<Connection>,
        qid: u16,
        entries: u16,
        cntlid: Option<u16>,
    ) -> Result<(u16, bool), Error> {
        let kato = if qid == 0 { self.options.keep_alive.as_millis() } else { 0 };
        let kato = u32::try_from(kato).unwrap_or(u32::MAX);
        let sqe = fabrics::connect(qid, entries, kato, CATTR_NO_FLOW_CONTROL);
        let data = connect_data(&self.host_id, &self.options.host_nqn, &self.address.nqn, cntlid);
        let payload = vec![csd_reactor::Buffer::from_slice(data.as_bytes())];
        // The first command of a queue needs no permit: nobody else knows the queue.
        let request =
            Request { sqe, what: "Connect", payload, in_capsule: true, to_host: 0, permit: None };
        let reply = connection.start(request)?.await.0?;
        let result = low(reply.result);
        Ok(((result & 0xFFFF) as u16, result & CONNECT_ATR != 0))
    }

    async fn authenticate(
        &self,
        connection: &Rc<Connection>,
        qid: u16,
        required: bool,
    ) -> Result<(), Error> {
        self.step.set("authentication");
        let parties = (self.address, self.options);
        auth::authenticate(&self.association, connection, parties, (qid, required)).await
    }

    async fn admin_queue(&self) -> Result<(Rc<Connection>, u16), Error> {
        let connection = self.open(ADMIN_ENTRIES).await?;
        self.step.set("Connect");
        let (cntlid, required) = self.queue(&connection, 0, ADMIN_ENTRIES, None).await?;
        self.association.admin_room.add(connection.room());
        self.authenticate(&connection, 0, required).await?;
        Ok((connection, cntlid))
    }

    async fn admin(
        &self,
        connection: &Rc<Connection>,
        sqe: Sqe,
        to_host: u32,
    ) -> Result<Reply, Error> {
        admin(&self.association, connection, sqe, &[], to_host).await
    }

    /// Enables the controller with all its command sets and waits until it is ready.
    async fn enable(&self, connection: &Rc<Connection>, cntlid: u16) -> Result<Told, Error> {
        self.step.set("Property Get");
        let cap = self.admin(connection, fabrics::property_get(property::CAP, true), 0).await?;
        let capabilities = Capabilities(cap.result);
        let css = if capabilities.io_sets() == 1 { property::CSS_ALL } else { property::CSS_NVM };
        let configuration = Configuration::default()
            .with_enable(1)
            .with_css(css)
            .with_mps(0)
            .with_iosqes(6)
            .with_iocqes(4);
        let set = fabrics::property_set(property::CC, configuration.0);
        self.admin(connection, set, 0).await?;
        self.step.set("becoming ready");
        loop {
            let get = fabrics::property_get(property::CSTS, false);
            let status = ControllerStatus(low(self.admin(connection, get, 0).await?.result));
            if status.fatal() == 1 {
                let reason = "it reports a fatal controller status".to_owned();
                return Err(Error::Protocol { drive: self.drive(), reason });
            }
            if status.ready() == 1 {
                return Ok(Told { capabilities, configuration, cntlid });
            }
            sleep(PROPERTY_PAUSE).await;
        }
    }

    async fn identify(
        &self,
        connection: &Rc<Connection>,
    ) -> Result<Box<IdentifyController>, Error> {
        let data = describe::controller(&self.association, connection).await?;
        Ok(Box::new(data))
    }

    async fn io_queues(
        &self,
        connection: &Rc<Connection>,
        told: &Told,
    ) -> Result<Vec<Rc<Connection>>, Error> {
        let wanted = self.options.io_queues.max(1);
        let zero_based = u32::from(wanted - 1);
        let value =
            NumberOfQueues::default().with_submission(zero_based).with_completion(zero_based);
        let set = set_features(FeatureId::NUMBER_OF_QUEUES, 0, value.0);
        let allowed = NumberOfQueues(low(self.admin(connection, set, 0).await?.result));
        let allowed = allowed.submission().min(allowed.completion()) + 1;
        let count = u16::try_from(allowed).unwrap_or(u16::MAX).min(wanted);
        let entries_max = u16::try_from(told.capabilities.mqes() + 1).unwrap_or(u16::MAX);
        let entries = self.options.entries.min(entries_max).max(2);
        let mut queues = Vec::with_capacity(usize::from(count));
        for qid in 1..=count {
            let queue = self.open(entries).await?;
            let (_, required) = self.queue(&queue, qid, entries, Some(told.cntlid)).await?;
            self.authenticate(&queue, qid, required).await?;
            self.association.io_room.add(queue.room());
            queues.push(queue);
        }
        Ok(queues)
    }

    fn drive(&self) -> Arc<str> {
        Arc::clone(&self.association.drive)
    }
}

/// Returns MDTS in bytes: 2^MDTS pages of CAP.MPSMIN; 0 means that the drive has no limit.
fn transfer_bytes_max(identity: &IdentifyController, capabilities: Capabilities) -> u32 {
    let shift = u64::from(identity.mdts()) + 12 + capabilities.mpsmin();
    match identity.mdts() {
        0 => TRANSFER_BYTES_MAX,
        _ if shift >= u64::from(TRANSFER_BYTES_MAX.ilog2()) => TRANSFER_BYTES_MAX,
        _ => 1 << shift,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_sizes_follow_mdts_and_are_bounded() {
        let bytes = |mdts: u8, mpsmin: u64| {
            let mut identity = IdentifyController::zeroed();
            identity.set_mdts(mdts);
            transfer_bytes_max(&identity, Capabilities::default().with_mpsmin(mpsmin))
        };
        assert_eq!(bytes(1, 0), 8 << 10);
        assert_eq!(bytes(5, 0), 128 << 10);
        assert_eq!(bytes(5, 2), 512 << 10);
        for mdts in [0, 12, 13, 20, 255] {
            assert_eq!(bytes(mdts, 0), 16 << 20, "{mdts}");
        }
    }
}
