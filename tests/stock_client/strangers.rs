//! Hosts that know every name but no secret: they cannot change, hold or use up anything of others.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use csd_drive::{Config, HostLimits, MediaKind};
use csd_tests::wire::{Command, Wire, data_pdu};

use super::auth::{ATR, DISCOVERY, auth, authenticate, connected, ends, negotiate, secret};
use super::{NQN, config, serve};

const ENABLE: u32 = 4 << 20 | 6 << 16 | 6 << 4 | 1;
/// Feature: Asynchronous Event Configuration, and its value on a new drive.
const EVENTS: u32 = 0x0B;
const EVENTS_AT_FIRST: u64 = 1 << 8 | 1 << 3;
const NOT_SAVEABLE: u16 = 0x10D;

fn with_secret(config: Config) -> SocketAddr {
    serve(Config { access: secret(), ..config })
}

/// Connects a host that has authenticated and enabled its controller; returns its queue and the
/// controller's identifier.
fn host(address: SocketAddr) -> (Wire, u16) {
    let mut admin = connected(address);
    authenticate(&mut admin);
    let enable = Command::new(0x7F, 0).dword(11, 0x14).dword(12, ENABLE);
    assert_eq!(admin.command(enable, &[], 0).status, 0);
    let identity = admin.command(Command::new(0x06, 0).dword(10, 1), &[], 4096).data;
    (admin, u16::from_le_bytes([identity[78], identity[79]]))
}

/// Connects an I/O queue that has not authenticated yet.
fn claim(address: SocketAddr, cntlid: u16, qid: u16) -> Wire {
    let mut io = Wire::open(address);
    io.initialise();
    let reply = io.connect(NQN, qid, cntlid, true);
    assert_eq!((reply.status, reply.result & !0xFFFF), (0, ATR), "queue {qid}: {reply:?}");
    io
}

fn assert_reads(io: &mut Wire) {
    assert_eq!(io.command(Command::new(0x02, 1), &[], 4096).status, 0);
}

/// Returns the time of a medium's last write, and the pages at its beginning.
fn seen(media: &Path) -> (i64, i64, Vec<u8>) {
    let about = fs::metadata(media).unwrap();
    let mut head = vec![0; 1 << 20];
    fs::File::open(media).unwrap().read_exact(&mut head).unwrap();
    (about.mtime(), about.mtime_nsec(), head)
}

fn set_events(value: u32, save: bool) -> Command {
    Command::new(0x09, 0).dword(10, EVENTS | u32::from(save) << 31).dword(11, value)
}

fn events(wire: &mut Wire, select: u32) -> u64 {
    let reply = wire.command(Command::new(0x0A, 0).dword(10, EVENTS | select << 8), &[], 0);
    assert_eq!(reply.status, 0);
    reply.result
}

#[test]
fn a_discovery_controller_saves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("media");
    let address = with_secret(Config { media: MediaKind::File(path.clone()), ..config() });
    let before = seen(&path);
    let mut stranger = Wire::open(address);
    stranger.admin(DISCOVERY);
    assert_eq!(stranger.command(set_events(0, true), &[], 0).status, NOT_SAVEABLE);
    let keep_alive = Command::new(0x09, 0).dword(10, 0x0F | 1 << 31).dword(11, 9000);
    assert_eq!(stranger.command(keep_alive, &[], 0).status, NOT_SAVEABLE);
    for fid in [0x01, 0x04, 0x05, 0x0A, 0x20, 0x84] {
        let set = Command::new(0x09, 1).dword(10, fid | 1 << 31).dword(11, 1);
        assert_eq!(stranger.command(set, &[], 0).status, 0x002, "feature {fid:#x}");
    }
    assert_eq!(stranger.command(set_events(0, false), &[], 0).status, 0, "its own, while it lasts");
    assert_eq!((events(&mut stranger, 0), events(&mut stranger, 2)), (0, EVENTS_AT_FIRST));
    assert_eq!(events(&mut stranger, 3) & 1, 0, "not saveable");
    assert!(seen(&path) == before, "the medium was written");
    let (mut admin, _) = host(address);
    assert_eq!(events(&mut admin, 0), EVENTS_AT_FIRST);
    assert_eq!(events(&mut admin, 3) & 1, 1, "saveable here");
    // Saved features of a host do not apply to a discovery controller.
    assert_eq!(admin.command(set_events(1 << 8, true), &[], 0).status, 0);
    assert!(seen(&path) != before, "this is how a write is seen");
    let mut stranger = Wire::open(address);
    stranger.admin(DISCOVERY);
    assert_eq!(
        (events(&mut stranger, 0), events(&mut stranger, 1)),
        (EVENTS_AT_FIRST, EVENTS_AT_FIRST)
    );
}

#[test]
fn queue_ids_belong_to_hosts_that_have_proved_themselves() {
    for cores in [1, 2] {
        let address = with_secret(Config { cores, ..config() });
        let (mut admin, cntlid) = host(address);
        // A stranger who knows all names asks for every queue, twice.
        let claims: Vec<Wire> = (1..=64).map(|qid| claim(address, cntlid, qid)).collect();
        let more: Vec<Wire> = (1..=64).map(|qid| claim(address, cntlid, qid)).collect();
        let queues = Command::new(0x09, 0).dword(10, 7).dword(11, 0x003F_003F);
        assert_eq!(admin.command(queues, &[], 0).status, 0, "there are no I/O queues yet");
        let mut own: Vec<Wire> = (1..=64)
            .map(|qid| {
                let mut io = claim(address, cntlid, qid);
                authenticate(&mut io);
                io
            })
            .collect();
        own.iter_mut().for_each(assert_reads);
        let mut late = Wire::open(address);
        late.initialise();
        assert_eq!(late.connect(NQN, 7, cntlid, true).status, 0x182, "taken");
        drop((claims, more));
        let mut late = Wire::open(address);
        late.initialise();
        assert_eq!(late.connect(NQN, 7, cntlid, true).status, 0x182, "and still it is");
        // A reset ends claims, too.
        drop(own.split_off(1));
        let pending = claim_freed(address, cntlid, 64);
        let reset = Command::new(0x7F, 0).dword(11, 0x14).dword(12, ENABLE & !1);
        assert_eq!(admin.command(reset, &[], 0).status, 0);
        ends(pending);
        ends(own.remove(0));
    }
}

/// Claims a queue id whose connection its host has just closed.
fn claim_freed(address: SocketAddr, cntlid: u16, qid: u16) -> Wire {
    for _ in 0..10_000 {
        let mut io = Wire::open(address);
        io.initialise();
        if io.connect(NQN, qid, cntlid, true).status == 0 {
            return io;
        }
    }
    panic!("queue {qid} was never free");
}

#[test]
fn of_two_that_prove_themselves_for_one_queue_the_first_has_it() {
    let address = with_secret(config());
    let (_admin, cntlid) = host(address);
    let (mut first, mut second) = (claim(address, cntlid, 1), claim(address, cntlid, 1));
    authenticate(&mut first);
    let status = super::auth::prove(&mut second).1;
    assert_eq!(status, 0x00C, "it comes too late");
    ends(second);
    assert_reads(&mut first);
}

#[test]
fn half_of_the_connections_are_for_hosts_that_have_proved_themselves() {
    for cores in [1, 2] {
        let host_limits = HostLimits { connections: 16, ..HostLimits::default() };
        let address = with_secret(Config { cores, host_limits, ..config() });
        let strangers = |count: usize| -> Vec<Wire> {
            (0..count)
                .map(|at| match at % 3 {
                    0 => Wire::open(address),
                    1 => {
                        let mut wire = Wire::open(address);
                        wire.admin(DISCOVERY);
                        wire
                    }
                    _ => connected(address),
                })
                .collect()
        };
        let mut all = strangers(40);
        let (mut admin, cntlid) = host(address);
        let mut queues = Vec::new();
        for qid in 1..=7 {
            all.extend(strangers(6));
            let mut io = claim(address, cntlid, qid);
            authenticate(&mut io);
            queues.push(io);
        }
        // The oldest strangers have left; at most half of 16 remain.
        let gone = all.len() - 8;
        all.drain(..gone).for_each(ends);
        // Authenticated hosts may fill the other half, too.
        for qid in 8..=15 {
            let mut io = claim(address, cntlid, qid);
            authenticate(&mut io);
            queues.push(io);
        }
        all.drain(..).for_each(ends);
        let mut surplus = Wire::open(address);
        surplus.initialise();
        assert_eq!(surplus.connect(NQN, 0, 0xFFFF, true).status, 0x181, "all 16 are in use");
        queues.iter_mut().for_each(assert_reads);
        assert_eq!(admin.command(Command::new(0x18, 0), &[], 0).status, 0);
    }
}

/// Authentication is checked again when a command's data has arrived: it may have been lost in the
/// meantime.
#[test]
fn a_command_begun_before_connect_is_not_run_behind_the_gate() {
    let address = with_secret(config());
    let mut wire = Wire::open(address);
    wire.initialise();
    let (cid, capsule) = wire.capsule_bytes(Command::new(0x09, 0).dword(10, 0x16), 512);
    wire.stream.write_all(&capsule).unwrap();
    let r2t = wire.receive();
    assert_eq!(r2t.header[0], 0x09);
    let reply = wire.connect(NQN, 0, 0xFFFF, true);
    assert_eq!((reply.status, reply.result & !0xFFFF), (0, ATR));
    let tag = u16::from_le_bytes([r2t.header[10], r2t.header[11]]);
    wire.stream.write_all(&data_pdu(cid, tag, 0, &[0; 512], true)).unwrap();
    let (answered, status, _) = wire.response();
    assert_eq!((answered, status), (cid, 0x191));
}

#[test]
fn a_message_without_room_for_it_ends_the_exchange() {
    let address = with_secret(config());
    let negotiated = |group| {
        let mut wire = connected(address);
        assert_eq!(wire.command_in_capsule(auth(0x05, 72), &negotiate(group)).status, 0);
        wire
    };
    for group in [0, 5] {
        let mut wire = negotiated(group);
        assert_eq!(wire.command(auth(0x06, 16), &[], 16).status, 0x002, "a challenge is longer");
        unanswered(wire);
        let mut wire = negotiated(group);
        assert_eq!(wire.command_in_capsule(auth(0x05, 72), &negotiate(group)).status, 0);
        let failure = wire.command(auth(0x06, 4096), &[], 4096);
        assert_eq!(failure.data[..8], [0, 0xF1, 0, 0, 0x34, 0x12, 1, 7], "out of order");
        ends(wire);
    }
    let mut wire = negotiated(0);
    assert_eq!(wire.command(auth(0x06, 4096), &[], 4096).status, 0);
    assert_eq!(wire.command(auth(0x06, 4096), &[], 4096).status, 0x00C, "the host's turn");
    unanswered(wire);
}

/// Sends a message once more: the connection has ended.
fn unanswered(mut wire: Wire) {
    let capsule = wire.capsule_bytes(auth(0x06, 4096), 4096).1;
    let mut rest = Vec::new();
    let read = wire.stream.write_all(&capsule).and_then(|()| wire.stream.read_to_end(&mut rest));
    assert!(rest.is_empty(), "{} bytes", rest.len());
    assert!(read.is_ok_and(|bytes| bytes == 0) || !is_open(&wire.stream), "it stays open");
}

fn is_open(mut stream: &std::net::TcpStream) -> bool {
    let read = stream.read(&mut [0]);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}
