//! The client of drive and floor: sends prepared capsules and receives answers of fixed size,
//! without sleeping.
//!
//! Checks the type and identifier of every answer, but not its data: the end-to-end tests do.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use csd_nvme::capsule::{FLAGS_SGL, Sgl, Sqe};
use csd_nvme::compute;
use csd_nvme::execute::Execution;
use csd_nvme::fabrics::{self, CATTR_NO_FLOW_CONTROL};
use csd_nvme::host::connect_data;
use csd_nvme::nvm::{self, Extent};
use csd_nvme::opcode::Admin;
use csd_nvme::pdu::{Kind, R2t};
use csd_nvme::property::{self, Configuration};
use csd_nvme::tcp::Digests;
use csd_nvme::tcp::host::Connection;

use crate::serve::Side;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 4096;
/// Most in-capsule data, bytes; the drive requests longer data with R2T.
const CAPSULE_BYTES_MAX: usize = 8 << 10;
/// Most slices of one send.
const SLICES: usize = 64;
/// Keep Alive Timeout of a host, longer than any workload runs, ms.
const KATO_MS: u32 = 600_000;
/// NQN of the drive under test.
pub const NQN: &str = "nqn.2026-11.io.csdstore:bench";

/// A workload to measure.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Name in the table.
    pub name: &'static str,
    /// True to read, false to write.
    pub read: bool,
    /// Bytes of one operation, a multiple of the block size.
    pub bytes: usize,
    /// Operations in flight.
    pub depth: u16,
    /// True for sequential offsets, false for random ones.
    pub in_order: bool,
    /// Number of blocks that offsets are drawn from.
    pub blocks: u64,
}

impl Workload {
    /// Returns the endless sequence of the operations' offsets, bytes.
    pub fn offsets(&self) -> impl Iterator<Item = u64> + use<> {
        let unit = self.bytes as u64;
        let units = self.blocks * BLOCK_BYTES as u64 / unit;
        let in_order = self.in_order;
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        (0..).map(move |index: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (if in_order { index } else { state }) % units * unit
        })
    }
}

/// Writes every block of a drive once, so that no read hits a hole.
///
/// # Panics
/// Panics as [`Client::connect`] does.
pub fn fill(address: SocketAddr, blocks: u64) {
    let workload = Workload {
        name: "fill",
        read: false,
        bytes: BLOCK_BYTES,
        depth: 64,
        in_order: true,
        blocks,
    };
    Client::connect(address, Side::Drive, workload).run_count(blocks);
}

/// A connected client.
pub struct Client {
    stream: TcpStream,
    workload: Workload,
    wire: Connection,
    offsets: Box<dyn Iterator<Item = u64>>,
    // Requested transfers (R2T): identifier, tag, offset, length.
    asked: Vec<(u16, u16, u32, u32)>,
    // Bytes received and not yet parsed.
    input: Vec<u8>,
    filled: usize,
    idle: Vec<u16>,
    data: Vec<u8>,
    left: usize,
    // The admin connection keeps the controller alive.
    _admin: Option<TcpStream>,
}

impl Client {
    /// Connects to a running server, for this workload.
    ///
    /// # Panics
    /// If the server does not listen or breaks the protocol.
    pub fn connect(address: SocketAddr, side: Side, workload: Workload) -> Self {
        let (admin, mut stream) = match side {
            Side::Floor => (None, open(address)),
            Side::Drive => {
                let (admin, _, cntlid) = admin(address);
                (Some(admin), io_queue(address, cntlid))
            }
        };
        if side == Side::Floor {
            // The floor needs only the sizes.
            let (command, answer) = sizes(workload);
            stream.write_all(&command.to_le_bytes()).expect("the floor listens");
            stream.write_all(&answer.to_le_bytes()).expect("the floor listens");
        }
        stream.set_nonblocking(true).expect("a socket");
        Self {
            stream,
            workload,
            wire: Connection::new(Digests::default()).0,
            offsets: Box::new(workload.offsets()),
            asked: Vec::new(),
            input: vec![0; 512 << 10],
            filled: 0,
            idle: (0..workload.depth).collect(),
            data: vec![0xA5; workload.bytes],
            left: 0,
            _admin: admin,
        }
    }

    /// Keeps `depth` operations in flight for this long. Returns the operations completed and the
    /// time they took.
    pub fn run(&mut self, length: Duration) -> (u64, Duration) {
        let start = Instant::now();
        let mut operations = 0;
        let mut turns = 0u32;
        loop {
            self.send();
            operations += self.receive();
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(64) && start.elapsed() >= length {
                return (operations, start.elapsed());
            }
        }
    }

    /// Completes this many operations and returns the time they took.
    pub fn run_count(&mut self, count: u64) -> Duration {
        let start = Instant::now();
        let mut ended = 0;
        while ended < count {
            if ended + self.in_flight() < count {
                self.send();
            }
            ended += self.receive();
        }
        start.elapsed()
    }

    fn in_flight(&self) -> u64 {
        u64::from(self.workload.depth) - self.idle.len() as u64
    }

    fn send(&mut self) {
        while !self.idle.is_empty() {
            let count = self.idle.len().min(SLICES / 2);
            let capsules: Vec<Vec<u8>> = (0..count).map(|_| self.capsule()).collect();
            let mut slices = Vec::with_capacity(SLICES);
            for capsule in &capsules {
                slices.push(IoSlice::new(capsule));
                if self.in_capsule() {
                    slices.push(IoSlice::new(&self.data));
                }
            }
            write_all(&mut self.stream, &mut slices);
        }
    }

    fn capsule(&mut self) -> Vec<u8> {
        let cid = self.idle.pop().expect("asked with one");
        let blocks = self.workload.bytes / BLOCK_BYTES;
        let offset = self.offsets.next().expect("without end");
        let extent = Extent {
            slba: offset / BLOCK_BYTES as u64,
            blocks: u32::try_from(blocks).expect("few blocks"),
        };
        let bytes = u32::try_from(self.workload.bytes).expect("small");
        let (mut sqe, inside) = if self.workload.read {
            let mut sqe = nvm::read(1, extent);
            sqe.set_sgl(Sgl::transport(bytes));
            (sqe, 0)
        } else {
            let mut sqe = nvm::write(1, extent, false);
            let inside = self.in_capsule();
            sqe.set_sgl(if inside { Sgl::in_capsule(bytes) } else { Sgl::transport(bytes) });
            (sqe, if inside { bytes } else { 0 })
        };
        sqe.set_cid(cid).set_flags(FLAGS_SGL);
        self.wire.capsule(&sqe, inside).to_vec()
    }

    fn in_capsule(&self) -> bool {
        !self.workload.read && self.workload.bytes <= CAPSULE_BYTES_MAX
    }

    /// Sends the data that the drive has requested.
    fn transfer(&mut self) {
        for (cid, ttag, offset, length) in std::mem::take(&mut self.asked) {
            let prefix = self.wire.data_prefix(cid, ttag, offset, length, true);
            let data = &self.data[offset as usize..][..length as usize];
            write_all(&mut self.stream, &mut [IoSlice::new(&prefix), IoSlice::new(data)]);
        }
    }

    /// Receives once and returns the number of operations that completed.
    fn receive(&mut self) -> u64 {
        let received = match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => panic!("the server closed"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return 0,
            Err(error) => panic!("receiving: {error}"),
        };
        self.filled += received;
        let mut at = 0;
        let mut ended = 0;
        loop {
            let skip = self.left.min(self.filled - at);
            at += skip;
            self.left -= skip;
            if self.left > 0 || self.filled - at < 24 {
                break;
            }
            let header = &self.input[at..at + 24];
            let length = u32::from_le_bytes(header[4..8].try_into().expect("four")) as usize;
            let cid = match Kind(header[0]) {
                Kind::C2H_DATA => u16::from_le_bytes([header[8], header[9]]),
                Kind::CAPSULE_RESP => u16::from_le_bytes([header[20], header[21]]),
                Kind::R2T => {
                    let r2t = R2t::parse(header).expect("an R2T header is 24 bytes");
                    self.asked.push((r2t.cccid(), r2t.ttag(), r2t.r2to(), r2t.r2tl()));
                    self.left = length;
                    continue;
                }
                other => panic!("unexpected PDU {other:?}"),
            };
            // With SUCCESS (flag bit 3) data completes its command; a response always does.
            if header[0] == Kind::CAPSULE_RESP.0 || header[1] & 8 != 0 {
                self.idle.push(cid);
                ended += 1;
            }
            self.left = length;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        self.transfer();
        ended
    }
}

/// A connection that runs programs and reads blocks, one command at a time, and sleeps until each
/// answer.
pub struct Single {
    stream: TcpStream,
    wire: Connection,
    // The admin connection keeps the controller alive.
    admin: (TcpStream, Connection),
}

impl Single {
    /// Connects to a running drive.
    ///
    /// # Panics
    /// Panics as [`Client::connect`] does.
    pub fn connect(address: SocketAddr) -> Self {
        let (admin, admin_wire, cntlid) = admin(address);
        let (stream, wire, _) = connect(address, 1, Some(cntlid));
        Self { stream, wire, admin: (admin, admin_wire) }
    }

    /// Sends a Keep Alive command.
    ///
    /// # Panics
    /// If the drive does not answer.
    pub fn keep_alive(&mut self) {
        let (stream, wire) = &mut self.admin;
        blocking(stream, wire, Sqe::new(Admin::KEEP_ALIVE.0, 0), &[]);
    }

    /// Executes the program with this index on namespace 5 and returns dword 0 of its completion.
    ///
    /// # Panics
    /// If it fails.
    pub fn execute(&mut self, index: u16, execution: &Execution) -> u32 {
        let data = execution.encode();
        let bytes = u32::try_from(data.len()).expect("few sources");
        let mut sqe = compute::execute(5, index, bytes);
        sqe.set_flags(FLAGS_SGL);
        blocking(&mut self.stream, &self.wire, sqe, &data)
    }

    /// Reads a block and returns the time it took, ns.
    ///
    /// # Panics
    /// If the answer is not a single data PDU that completes the command.
    pub fn read_ns(&mut self, slba: u64) -> u64 {
        let mut sqe = nvm::read(1, Extent { slba, blocks: 1 });
        sqe.set_sgl(Sgl::transport(u32::try_from(BLOCK_BYTES).expect("4096"))).set_flags(FLAGS_SGL);
        let capsule = self.wire.capsule(&sqe, 0);
        let mut answer = [0; 24 + BLOCK_BYTES];
        let start = Instant::now();
        self.stream.write_all(&capsule).expect("the drive listens");
        self.stream.read_exact(&mut answer).expect("an answer");
        let ns = start.elapsed().as_nanos();
        assert_eq!((answer[0], answer[1] & 8), (Kind::C2H_DATA.0, 8), "data that end the command");
        u64::try_from(ns).expect("short")
    }
}

/// Returns the lengths of a command and of its answer on the wire, bytes.
///
/// # Panics
/// If an operation has 4 GiB or more.
pub fn sizes(workload: Workload) -> (u32, u32) {
    let bytes = u32::try_from(workload.bytes).expect("small");
    if workload.read { (72, 24 + bytes) } else { (72 + bytes, 24) }
}

fn write_all(stream: &mut TcpStream, mut slices: &mut [IoSlice<'_>]) {
    while !slices.is_empty() {
        match stream.write_vectored(slices) {
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => panic!("sending: {error}"),
        }
    }
}

fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Sends a command with optional in-capsule data, blocks until its response, and returns dword 0.
fn blocking(stream: &mut TcpStream, wire: &Connection, mut sqe: Sqe, data: &[u8]) -> u32 {
    let bytes = u32::try_from(data.len()).expect("small");
    sqe.set_sgl(if bytes > 0 { Sgl::in_capsule(bytes) } else { Sgl::transport(0) });
    stream.write_all(&wire.capsule(&sqe, bytes)).expect("the drive listens");
    stream.write_all(data).expect("the drive listens");
    let mut response = [0; 24];
    stream.read_exact(&mut response).expect("a response");
    let status = u16::from_le_bytes([response[22], response[23]]) >> 1;
    assert_eq!((response[0], status & 0x7FF), (Kind::CAPSULE_RESP.0, 0), "{response:02x?}");
    u32::from_le_bytes(response[8..12].try_into().expect("four"))
}

fn connect(address: SocketAddr, qid: u16, cntlid: Option<u16>) -> (TcpStream, Connection, u16) {
    let mut stream = open(address);
    let (wire, request) = Connection::new(Digests::default());
    stream.write_all(&request).expect("the drive listens");
    let mut response = [0; 128];
    stream.read_exact(&mut response).expect("ICResp");
    let data = connect_data(&[7; 16], "nqn.2014-08.org.nvmexpress:uuid:bench", NQN, cntlid);
    let kato_ms = if qid == 0 { KATO_MS } else { 0 };
    let command = fabrics::connect(qid, 256, kato_ms, CATTR_NO_FLOW_CONTROL);
    let result = blocking(&mut stream, &wire, command, data.as_bytes());
    (stream, wire, u16::try_from(result & 0xFFFF).expect("sixteen bits"))
}

fn admin(address: SocketAddr) -> (TcpStream, Connection, u16) {
    let (mut stream, wire, cntlid) = connect(address, 0, None);
    let enable = Configuration::default()
        .with_enable(1)
        .with_css(property::CSS_ALL)
        .with_iosqes(6)
        .with_iocqes(4);
    blocking(&mut stream, &wire, fabrics::property_set(property::CC, enable.0), &[]);
    (stream, wire, cntlid)
}

fn io_queue(address: SocketAddr, cntlid: u16) -> TcpStream {
    connect(address, 1, Some(cntlid)).0
}
