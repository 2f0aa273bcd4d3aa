//! Authentication for a host without the secret: the refusals, in raw bytes.

use std::io::Read;
use std::net::SocketAddr;

use csd_drive::{Access, Config};
use csd_initiator::Secrets;
use csd_nvme::auth::host::{Host, Next};
use csd_nvme::auth::{Entropy, Offer};
use csd_tests::drive::serve;
use csd_tests::wire::{Command, Wire};

use super::NQN;

pub(super) const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:stock-client";
/// 32 bytes from 0 to 31, transformed with SHA-256; the checksum is of CRC-32.
const SECRET: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
/// Result of Connect, bit 1 of its upper half: authentication required.
pub(super) const ATR: u64 = 1 << 17;

fn drive(access: Access) -> SocketAddr {
    serve(Config { nqn: NQN.into(), size_bytes: 256 << 20, access, ..Config::default() })
}

/// Returns the secret of the stock client's host.
pub(super) fn secret() -> Access {
    let secrets = Secrets::parse(&format!("host {HOST} {SECRET}")).unwrap();
    Access { secrets, ..Access::default() }
}

fn with_secret() -> SocketAddr {
    drive(secret())
}

pub(super) fn auth(fctype: u8, length: usize) -> Command {
    let command = Command::new(0x7F, 0).byte(4, fctype).dword(11, length as u32);
    command.byte(41, 1).byte(42, 1).byte(43, 0xE9)
}

/// Connects an admin queue that must authenticate.
pub(super) fn connected(address: SocketAddr) -> Wire {
    let mut wire = Wire::open(address);
    wire.initialise();
    let reply = wire.connect(NQN, 0, 0xFFFF, true);
    assert_eq!((reply.status, reply.result & !0xFFFF), (0, ATR), "{reply:?}");
    wire
}

/// Returns Negotiate: SHA-256, and the null group or a group that does not exist.
pub(super) fn negotiate(group: u8) -> [u8; 72] {
    let mut message = [0; 72];
    message[4..6].copy_from_slice(&[0x34, 0x12]);
    message[7] = 1; // one descriptor
    message[8] = 1; // DH-HMAC-CHAP
    (message[10], message[11]) = (1, 1);
    (message[12], message[42]) = (1, group);
    message
}

pub(super) fn ends(mut wire: Wire) {
    let mut rest = Vec::new();
    wire.stream.read_to_end(&mut rest).expect("the drive closes the connection");
    assert!(rest.is_empty());
}

#[test]
fn strangers_are_refused_by_name() {
    let named =
        drive(Access { hosts: vec!["nqn.2026-11.io.csdstore:other".into()], ..Access::default() });
    let mut wire = Wire::open(named);
    wire.initialise();
    assert_eq!(wire.connect(NQN, 0, 0xFFFF, true).status, 0x184, "connect invalid host");
    let named = drive(Access { hosts: vec![HOST.into()], ..Access::default() });
    let mut wire = Wire::open(named);
    assert!(wire.admin(NQN) > 0);
}

#[test]
fn the_discovery_log_is_for_named_hosts_and_asks_no_secret() {
    let named =
        drive(Access { hosts: vec!["nqn.2026-11.io.csdstore:other".into()], ..Access::default() });
    let mut stranger = Wire::open(named);
    stranger.initialise();
    assert_eq!(stranger.connect(DISCOVERY, 0, 0xFFFF, true).status, 0x184);
    let address = with_secret();
    let mut wire = Wire::open(address);
    wire.admin(DISCOVERY);
    let log = Command::new(0x02, 0).dword(10, 255 << 16 | 0x70);
    let log = wire.command(log, &[], 1024);
    assert_eq!((log.status, log.data[8]), (0, 2), "two records");
    // It is no way around the gate of the drive itself.
    let mut other = connected(address);
    assert_eq!(other.command(Command::new(0x06, 0).dword(10, 1), &[], 4096).status, 0x191);
}

#[test]
fn nothing_but_authentication_is_begun_before_it() {
    let address = with_secret();
    let mut wire = connected(address);
    let identify = || Command::new(0x06, 0).dword(10, 1);
    assert_eq!(wire.command(identify(), &[], 4096).status, 0x191, "Identify");
    let property = Command::new(0x7F, 0).byte(4, 0x04).dword(11, 0x1C);
    assert_eq!(wire.command(property, &[], 0).status, 0x191, "Property Get");
    let enable = Command::new(0x7F, 0).dword(11, 0x14).dword(12, 0x0046_0061);
    assert_eq!(wire.command(enable, &[], 0).status, 0x191, "Property Set");
    // Not even a grant: a command that would be asked for its data is refused at once.
    assert_eq!(wire.command(Command::new(0x09, 0), &[0; 4096], 0).status, 0x191);
    assert_eq!(wire.command(auth(0x06, 4096), &[], 4096).status, 0x00C, "the host's turn");
    let foreign = auth(0x05, 72).byte(43, 0xEA);
    assert_eq!(wire.command_in_capsule(foreign, &negotiate(0)).status, 0x002, "SECP");
    assert_eq!(wire.command_in_capsule(auth(0x05, 64), &negotiate(0)).status, 0x002, "TL");
    assert_eq!(wire.command(auth(0x06, 4096), &[], 512).status, 0x002, "AL");
    assert_eq!(wire.command_in_capsule(auth(0x05, 72), &negotiate(0)).status, 0);
    let challenge = wire.command(auth(0x06, 4096), &[], 4096);
    assert_eq!((challenge.status, challenge.data.len()), (0, 4096));
    assert_eq!(challenge.data[..12], [1, 1, 0, 0, 0x34, 0x12, 32, 0, 1, 0, 0, 0]);
    assert_ne!(challenge.data[12..16], [0; 4], "SEQNUM");
    assert_ne!(challenge.data[16..48], [0; 32], "the challenge");
    assert_eq!(challenge.data[48..], [0; 4048], "padding");
    assert_eq!(wire.command(identify(), &[], 4096).status, 0x191, "still");
    let mut reply = [0; 80];
    reply[..7].copy_from_slice(&[1, 2, 0, 0, 0x34, 0x12, 32]);
    assert_eq!(wire.command_in_capsule(auth(0x05, 80), &reply).status, 0);
    let failure = wire.command(auth(0x06, 4096), &[], 4096);
    assert_eq!(failure.data[..8], [0, 0xF1, 0, 0, 0x34, 0x12, 1, 1], "failure1: failed");
    ends(wire);
    let mut other = connected(address);
    assert_eq!(other.command_in_capsule(auth(0x05, 72), &negotiate(77)).status, 0);
    let failure = other.command(auth(0x06, 4096), &[], 4096);
    assert_eq!(failure.data[..8], [0, 0xF1, 0, 0, 0x34, 0x12, 1, 5], "failure1: group");
    ends(other);
}

/// Authenticates a queue by our own host's code; golden files elsewhere check its messages.
pub(super) fn authenticate(wire: &mut Wire) {
    assert_eq!(prove(wire), (Some(Next::Done), 0));
}

/// Authenticates as far as the drive allows; returns the step reached, and the status of the last
/// command.
pub(super) fn prove(wire: &mut Wire) -> (Option<Next>, u16) {
    let secrets = Secrets::parse(&format!("host {HOST} {SECRET}")).unwrap();
    let keys = secrets.keys(HOST, NQN).unwrap();
    let mut host = Host::new(keys, Offer::default(), 1, Entropy::draw(|bytes| bytes.fill(3)));
    let mut message = host.negotiate();
    loop {
        let send = auth(0x05, message.len());
        assert_eq!(wire.command_in_capsule(send, &message).status, 0);
        let reply = wire.command(auth(0x06, 4096), &[], 4096);
        if reply.status != 0 {
            return (None, reply.status);
        }
        match host.receive(&reply.data) {
            Next::Exchange(next) => message = next,
            next => return (Some(next), 0),
        }
    }
}

#[test]
fn every_queue_has_a_gate_of_its_own() {
    let address = with_secret();
    let mut admin = connected(address);
    authenticate(&mut admin);
    let enable = Command::new(0x7F, 0).dword(11, 0x14).dword(12, 0x0046_0061);
    assert_eq!(admin.command(enable, &[], 0).status, 0);
    let cntlid = admin.command(Command::new(0x06, 0).dword(10, 1), &[], 4096).data[78];
    let mut io = Wire::open(address);
    io.initialise();
    let reply = io.connect(NQN, 1, u16::from(cntlid), true);
    assert_eq!((reply.status, reply.result & !0xFFFF), (0, ATR), "{reply:?}");
    // Every form of a command: short or long, in the capsule or not, single or fused.
    let command = |opcode, lba: u32| Command::new(opcode, 1).dword(10, lba);
    let block = [1; 4096];
    let refused = |status: u16, what: &str| assert_eq!(status, 0x191, "{what}");
    refused(io.command(command(0x02, 0), &[], 4096).status, "read");
    refused(io.command_in_capsule(command(0x01, 0), &block).status, "write in the capsule");
    refused(io.command(command(0x01, 0), &block, 0).status, "write by transfer");
    refused(io.command(command(0x00, 0), &[], 0).status, "flush");
    refused(io.command_in_capsule(command(0x05, 0).byte(1, 0x41), &block).status, "a first half");
    refused(io.command(Command::new(0x01, 2).dword(10, 4096), &block, 0).status, "store");
    authenticate(&mut io);
    let read = io.command(command(0x02, 0), &[], 4096);
    assert!(read.status == 0 && read.data == [0; 4096], "nothing was written before");
    assert_eq!(io.command_in_capsule(command(0x01, 0), &block).status, 0);
}

#[test]
fn two_connections_are_asked_different_questions() {
    let address = with_secret();
    let challenge = || {
        let mut wire = connected(address);
        assert_eq!(wire.command(auth(0x05, 72), &negotiate(0), 0).status, 0, "by transfer");
        wire.command(auth(0x06, 4096), &[], 4096).data[12..48].to_vec()
    };
    assert_ne!(challenge(), challenge());
}

#[test]
fn a_drive_without_secrets_knows_no_authentication() {
    let mut wire = Wire::open(drive(Access::default()));
    wire.admin(NQN);
    assert_eq!(wire.command_in_capsule(auth(0x05, 72), &negotiate(0)).status, 0x00C);
    assert_eq!(wire.command(auth(0x06, 4096), &[], 4096).status, 0x00C);
}
