//! Blocking commands to a drive: one at a time on each queue, waiting for every answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use csd_nvme::auth::CONNECT_ATR;
use csd_nvme::capsule::{FLAGS_SGL, Sgl, Sqe};
use csd_nvme::compute;
use csd_nvme::fabrics::{self, CATTR_NO_FLOW_CONTROL};
use csd_nvme::feature::{FeatureId, set_features};
use csd_nvme::host::connect_data;
use csd_nvme::kv::{self, Key};
use csd_nvme::nvm::{self, Extent};
use csd_nvme::opcode::Admin;
use csd_nvme::pdu::Kind;
use csd_nvme::property::{self, Capabilities, Configuration, ControllerStatus};
use csd_nvme::status::Status;
use csd_nvme::tcp::Digests;
use csd_nvme::tcp::host::{Connection, Event};
use csd_nvme::vendor::execute::Execution;

use crate::workload::BLOCK;
use crate::{Error, random};

/// Most entries of an I/O queue.
const ENTRIES_MAX: u16 = 256;
/// Length of the header of a PDU with data or a response, bytes.
const HEADER: usize = 24;
/// Room for the headers of an answer's PDUs, bytes.
const ANSWER_HEADERS: usize = 4 << 10;
/// Entries of an admin queue, the minimum of a fabrics drive.
const ADMIN_ENTRIES: u16 = 32;
/// Keep Alive Timeout of a host, longer than any workload runs, ms.
const KATO_MS: u32 = 600_000;
/// Longest wait for a connection, or for a controller to become ready.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Longest wait for an answer of a server that the measurement has started.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// NQN of a drive that a measurement starts.
pub const NQN: &str = "nqn.2026-11.io.csdstore:bench";
/// NQN of the host that measures such a drive.
const HOST_NQN: &str = "nqn.2026-11.io.csdstore:bench-host";

/// A block namespace to measure, and its host.
#[derive(Clone, Debug)]
pub struct Target {
    /// Address that the drive listens on.
    pub address: SocketAddr,
    /// NVMe Qualified Name of its subsystem.
    pub nqn: String,
    /// NVMe Qualified Name of this host.
    pub host_nqn: String,
    /// Namespace ID.
    pub nsid: u32,
    /// Size of a logical block in bytes.
    pub block_bytes: u32,
    /// Most data that a command carries in its capsule, bytes.
    pub in_capsule_bytes: u32,
    /// Longest wait for an answer.
    pub answer_within: Duration,
    /// True if its data may be overwritten.
    pub may_write: bool,
}

impl Target {
    /// Returns the block namespace of a drive that a measurement has started.
    pub fn started(address: SocketAddr) -> Self {
        Self {
            address,
            nqn: NQN.to_owned(),
            host_nqn: HOST_NQN.to_owned(),
            nsid: 1,
            block_bytes: 4096,
            in_capsule_bytes: 8 << 10,
            answer_within: ANSWER_WITHIN,
            may_write: true,
        }
    }
}

/// A connected queue.
pub(crate) struct Queue {
    pub(crate) stream: TcpStream,
    pub(crate) wire: Connection,
    /// Longest wait for an answer.
    within: Duration,
}

impl Queue {
    /// Connects and initialises the transport.
    fn open(address: SocketAddr, within: Duration) -> Result<Self, Error> {
        let mut stream = open(address, within)?;
        let (mut wire, request) = Connection::new(Digests::default());
        let mut response = [0; 128];
        let exchanged = stream.write_all(&request).and_then(|()| stream.read_exact(&mut response));
        exchanged.map_err(|error| lost(address, within, error))?;
        match wire.next(&mut &response[..]) {
            Ok(Some(Event::Connected { .. })) => Ok(Self { stream, wire, within }),
            _ => Err(broken(address, "its answer to ICReq is not an ICResp of NVMe/TCP")),
        }
    }

    /// Sends a command with optional in-capsule data, waits for its response, and returns its
    /// result, dwords 0 and 1.
    pub(crate) fn command(&mut self, mut sqe: Sqe, data: &[u8]) -> Result<u64, Error> {
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        sqe.set_sgl(if bytes > 0 { Sgl::in_capsule(bytes) } else { Sgl::transport(0) });
        sqe.set_flags(FLAGS_SGL);
        let address = peer(&self.stream);
        let mut response = [0; 24];
        let sent = self.stream.write_all(&self.wire.capsule(&sqe, bytes));
        let sent = sent.and_then(|()| self.stream.write_all(data));
        let exchanged = sent.and_then(|()| self.stream.read_exact(&mut response));
        exchanged.map_err(|error| lost(address, self.within, error))?;
        check(address, &response)?;
        if response[0] != Kind::CAPSULE_RESP.0 {
            return Err(broken(address, "a command without data was answered with data"));
        }
        let dword = |at: usize| u64::from(dword(&response, at));
        Ok(dword(8) | dword(12) << 32)
    }
}

/// A controller's admin queue, which keeps it alive, and its properties.
pub(crate) struct Controller {
    pub(crate) admin: Queue,
    cntlid: u16,
    entries_max: u16,
}

impl Controller {
    /// Connects and enables a controller.
    pub(crate) fn connect(target: &Target) -> Result<Self, Error> {
        let (mut admin, cntlid) = connect(target, 0, ADMIN_ENTRIES, None)?;
        let capabilities = admin.command(fabrics::property_get(property::CAP, true), &[])?;
        let capabilities = Capabilities(capabilities);
        let css = if capabilities.io_sets() == 1 { property::CSS_ALL } else { property::CSS_NVM };
        let enable =
            Configuration::default().with_enable(1).with_css(css).with_iosqes(6).with_iocqes(4);
        admin.command(fabrics::property_set(property::CC, enable.0), &[])?;
        let start = Instant::now();
        loop {
            let status = admin.command(fabrics::property_get(property::CSTS, false), &[])?;
            let status = ControllerStatus(u32::try_from(status & 0xFFFF_FFFF).unwrap_or(0));
            if status.ready() == 1 {
                break;
            }
            if status.fatal() == 1 || start.elapsed() > CONNECT_WITHIN {
                return Err(broken(target.address, "its controller does not become ready"));
            }
        }
        // One submission and one completion queue, 0's based.
        admin.command(set_features(FeatureId::NUMBER_OF_QUEUES, 0, 0), &[])?;
        let entries = u16::try_from(capabilities.mqes()).unwrap_or(u16::MAX).saturating_add(1);
        Ok(Self { admin, cntlid, entries_max: entries.min(ENTRIES_MAX) })
    }

    /// Connects the I/O queue.
    pub(crate) fn io_queue(&self, target: &Target) -> Result<Queue, Error> {
        Ok(connect(target, 1, self.entries_max, Some(self.cntlid))?.0)
    }

    /// Most commands of its I/O queue in flight.
    pub(crate) fn depth_max(&self) -> u16 {
        self.entries_max - 1
    }
}

/// A connection that runs programs, reads blocks, and reads and lists values, one command at a
/// time.
pub struct Single {
    target: Target,
    controller: Controller,
    queue: Queue,
    /// Room for the PDUs of an answer.
    answer: Vec<u8>,
}

impl Single {
    /// Connects to a running drive.
    ///
    /// # Errors
    /// If it cannot be reached or refuses a step.
    pub fn connect(target: &Target) -> Result<Self, Error> {
        let controller = Controller::connect(target)?;
        let queue = controller.io_queue(target)?;
        Ok(Self { target: target.clone(), controller, queue, answer: Vec::new() })
    }

    /// Sends a Keep Alive command.
    ///
    /// # Errors
    /// If the drive does not answer.
    pub fn keep_alive(&mut self) -> Result<(), Error> {
        self.controller.admin.command(Sqe::new(Admin::KEEP_ALIVE.0, 0), &[]).map(drop)
    }

    /// Executes a built-in program on namespace 5 and returns the completion's result.
    ///
    /// # Errors
    /// If it fails.
    pub fn execute(&mut self, execution: &Execution) -> Result<u64, Error> {
        // Built-in programs have identifiers from 1, in the order of their indices.
        let index = u16::try_from(execution.program - 1).expect("a few programs are built in");
        let data = execution.encode();
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.queue.command(compute::execute(5, index, bytes), &data)
    }

    /// Reads 4 KiB at block `slba` and returns the time it took, ns.
    ///
    /// # Errors
    /// If it fails.
    pub fn read_ns(&mut self, slba: u64) -> Result<u64, Error> {
        let blocks = BLOCK / self.target.block_bytes;
        let sqe = nvm::read(self.target.nsid, Extent { slba, blocks });
        self.exchange(sqe, BLOCK).map(|(_, ns)| ns)
    }

    /// Reads 4 KiB blocks of the first `blocks` at random for a while. Returns the times they took,
    /// ns, ascending.
    ///
    /// # Errors
    /// If a read fails.
    pub fn read_for(&mut self, window: Duration, blocks: u64) -> Result<Vec<u64>, Error> {
        let (start, mut all) = (Instant::now(), Vec::new());
        for number in random::numbers(0) {
            if start.elapsed() >= window {
                break;
            }
            all.push(self.read_ns(number % blocks)?);
        }
        all.sort_unstable();
        Ok(all)
    }

    /// Retrieves a value of at most `most` bytes and returns the time it took, ns.
    ///
    /// # Errors
    /// If it fails; the key is not there.
    pub fn retrieve_ns(&mut self, key: &Key, most: u32) -> Result<u64, Error> {
        self.exchange(kv::retrieve(self.target.nsid, key, most, 0), most).map(|(_, ns)| ns)
    }

    /// Lists keys from `from` on, as many as `most` bytes hold. Returns the length of the list,
    /// bytes.
    ///
    /// # Errors
    /// If it fails.
    pub fn list(&mut self, from: &Key, most: u32) -> Result<usize, Error> {
        self.exchange(kv::list(self.target.nsid, Some(from), most), most).map(|(bytes, _)| bytes)
    }

    /// Sends a command that reads at most `most` bytes. Returns the length of its data, which it
    /// drops, and the time until the answer was complete, ns.
    fn exchange(&mut self, mut sqe: Sqe, most: u32) -> Result<(usize, u64), Error> {
        let (address, within) = (self.target.address, self.target.answer_within);
        let failed = |error| lost(address, within, error);
        sqe.set_sgl(Sgl::transport(most)).set_flags(FLAGS_SGL);
        let capsule = self.queue.wire.capsule(&sqe, 0);
        self.answer.resize(most as usize + ANSWER_HEADERS, 0);
        let start = Instant::now();
        self.queue.stream.write_all(&capsule).map_err(failed)?;
        let (mut filled, mut at, mut bytes) = (0, 0, 0);
        loop {
            let received = &self.answer[at..filled];
            let length = if received.len() < HEADER { HEADER } else { dword(received, 4) as usize };
            if received.len() < length {
                let room = &mut self.answer[filled..];
                let more = self.queue.stream.read(room).map_err(failed)?;
                if more == 0 {
                    return Err(failed(ErrorKind::UnexpectedEof.into()));
                }
                filled += more;
                continue;
            }
            check(address, received)?;
            let is_data = received[0] == Kind::C2H_DATA.0;
            if length < HEADER || !(is_data || received[0] == Kind::CAPSULE_RESP.0) {
                return Err(broken(address, "its answer is neither data nor a response"));
            }
            at += length;
            bytes += if is_data { length - HEADER } else { 0 };
            // The last data can stand for a response.
            if !is_data || received[1] & 8 != 0 {
                let ns = start.elapsed().as_nanos();
                return Ok((bytes, u64::try_from(ns).unwrap_or(u64::MAX)));
            }
        }
    }
}

/// Connects queue `qid`; returns it with the controller's id.
fn connect(
    target: &Target,
    qid: u16,
    entries: u16,
    cntlid: Option<u16>,
) -> Result<(Queue, u16), Error> {
    let mut queue = Queue::open(target.address, target.answer_within)?;
    let data = connect_data(&[7; 16], &target.host_nqn, &target.nqn, cntlid);
    let kato_ms = if qid == 0 { KATO_MS } else { 0 };
    let command = fabrics::connect(qid, entries, kato_ms, CATTR_NO_FLOW_CONTROL);
    let result = queue.command(command, data.as_bytes())?;
    if result & u64::from(CONNECT_ATR) != 0 {
        return Err(Error::Usage(format!(
            "{} requires authentication, which a measurement does not do: let the host {} connect \
             without it",
            target.address, target.host_nqn
        )));
    }
    Ok((queue, u16::try_from(result & 0xFFFF).unwrap_or(0)))
}

/// Opens a connection to a server.
pub(crate) fn open(address: SocketAddr, within: Duration) -> Result<TcpStream, Error> {
    let connected =
        TcpStream::connect_timeout(&address, CONNECT_WITHIN.min(within)).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(within))?;
            stream.set_write_timeout(Some(within))?;
            Ok(stream)
        });
    connected.map_err(Error::system(format!("cannot connect to {address}")))
}

/// Returns the address of a connection's other end, for errors.
pub(crate) fn peer(stream: &TcpStream) -> SocketAddr {
    stream.peer_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)))
}

/// Returns the error of a connection that ended or stands still.
pub(crate) fn lost(address: SocketAddr, within: Duration, error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => silent(address, within),
        ErrorKind::UnexpectedEof => Error::Server(format!("{address} closed the connection")),
        _ => Error::system(format!("the connection to {address}"))(error),
    }
}

/// Returns the error of a server that does not answer.
pub(crate) fn silent(address: SocketAddr, within: Duration) -> Error {
    Error::Server(format!("{address} has not answered for {} s", within.as_secs_f64()))
}

/// Returns the error of a server that breaks the protocol.
pub(crate) fn broken(address: SocketAddr, why: &str) -> Error {
    Error::Server(format!("{address} breaks the protocol: {why}"))
}

/// Checks the first 24 bytes of an answer: a response capsule has the status success, and the
/// connection was not terminated.
pub(crate) fn check(address: SocketAddr, header: &[u8]) -> Result<(), Error> {
    if header[0] == Kind::C2H_TERM_REQ.0 {
        return Err(broken(address, "it terminated the connection"));
    }
    if header[0] != Kind::CAPSULE_RESP.0 {
        return Ok(());
    }
    let status = Status((u16::from_le_bytes([header[22], header[23]]) >> 1) & 0x7FF);
    match status.is_success() {
        true => Ok(()),
        false => Err(Error::Server(format!("{address} refuses a command: {status}"))),
    }
}

/// Returns the little-endian number of four bytes.
pub(crate) fn dword(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
