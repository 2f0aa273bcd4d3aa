//! A drive in this process, and the parts that all torture tests share.

use std::io::{Read, Write};
use std::net::SocketAddr;

use csd_drive::Config;
use csd_reactor::BackendKind;

use csd_tests::wire::{Command, Pdu, Wire};

pub const NQN: &str = "nqn.2026-11.io.csdstore:torture";
pub const BLOCK_BYTES: usize = 4096;

/// Serves a drive on memory in this process, until the test ends.
pub fn drive(cores: usize, backend: BackendKind) -> SocketAddr {
    serve(Config { cores, backend, ..Config::default() })
}

/// Serves a drive with this configuration.
pub fn serve(config: Config) -> SocketAddr {
    csd_tests::drive::serve(Config { nqn: NQN.into(), size_bytes: 256 << 20, ..config })
}

/// Runs a torture test on both back ends; the drive must survive it.
pub fn each_backend(torture: impl Fn(SocketAddr)) {
    for (cores, backend) in [(1, BackendKind::Epoll), (2, BackendKind::Auto)] {
        let address = drive(cores, backend);
        torture(address);
        assert_serves(address);
    }
}

/// Asserts that a host that keeps the rules can write and read on every core.
pub fn assert_serves(address: SocketAddr) {
    let mut host = Host::new(address);
    for round in 0..2u8 {
        let mut io = host.queue(u16::from(round) + 1, 32, true);
        let block = [round ^ 0x5A; BLOCK_BYTES];
        let write = Command::new(0x01, 1).dword(10, 7);
        assert_eq!(io.command_in_capsule(write, &block).status, 0);
        let read = io.command(Command::new(0x02, 1).dword(10, 7), &[], BLOCK_BYTES);
        assert!(read.data == block, "another host's data came back");
    }
}

/// Controller, and the means to open its queues.
pub struct Host {
    pub address: SocketAddr,
    pub admin: Wire,
    pub cntlid: u16,
}

impl Host {
    pub fn new(address: SocketAddr) -> Self {
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        Self { address, admin, cntlid }
    }

    /// Opens an I/O queue of so many entries.
    pub fn queue(&mut self, qid: u16, entries: u16, flow_control: bool) -> Wire {
        let mut queue = Wire::open(self.address);
        queue.initialise();
        let reply = queue.connect_sized(NQN, qid, self.cntlid, entries, flow_control);
        assert_eq!(reply.status, 0, "{reply:?}");
        queue
    }
}

pub fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(bytes[offset..offset + 2].try_into().unwrap())
}

pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().unwrap())
}

/// Returns the status of a response capsule: type in bits 10:8, code in bits 7:0.
pub fn status_of(pdu: &Pdu) -> u16 {
    assert_eq!(pdu.header[0], 0x05, "a response: {:02x?}", pdu.header);
    (u16_at(&pdu.header, 22) >> 1) & 0x7FF
}

/// Asserts that the drive sends the reason (C2HTermReq with this status), then closes.
pub fn assert_terminated(wire: &mut Wire, fatal_status: u16) {
    let pdu = loop {
        let pdu = wire.receive();
        if pdu.header[0] == 0x03 {
            break pdu;
        }
    };
    assert_eq!((pdu.header.len(), u16_at(&pdu.header, 8)), (24, fatal_status), "FES");
    assert!(u32_at(&pdu.header, 4) <= 152, "a C2HTermReq has at most 152 bytes");
    assert_closed(wire);
}

/// Asserts that the drive closes without sending more.
pub fn assert_closed(wire: &mut Wire) {
    let mut rest = Vec::new();
    match wire.stream.read_to_end(&mut rest) {
        Ok(_) => assert!(rest.is_empty(), "{} bytes before the end", rest.len()),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
}

/// Sends bytes that the drive may refuse: it may have closed already.
pub fn send(wire: &mut Wire, bytes: &[u8]) {
    let _ = wire.stream.write_all(bytes);
}
