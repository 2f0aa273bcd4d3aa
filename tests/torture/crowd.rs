//! Many hosts, and hosts that request much data and read none.

use std::io::Write;

use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Wire};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::{Host, NQN, assert_serves, drive, u32_at};

const SLOW_HOSTS: u16 = 8;
const MAX_TRANSFER: usize = 16 << 20;

fn allow_descriptors(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised).expect("enough file descriptors are allowed");
    }
}

/// Returns the resident memory of this process, drive included, in bytes.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn a_thousand_connections_are_served_and_leave() {
    allow_descriptors(4096);
    let address = drive(2, BackendKind::Auto);
    let mut host = Host::new(address);
    let mut admins: Vec<Wire> = Vec::new();
    let mut queues: Vec<Wire> = Vec::new();
    for _ in 0..450 {
        let mut other = Host::new(address);
        queues.push(other.queue(1, 32, true));
        admins.push(other.admin);
    }
    queues.extend((1..101).map(|qid| host.queue(qid, 32, true)));
    assert!(admins.len() + queues.len() >= 1000);
    // All of them at once, twice.
    for round in 0..2u8 {
        for (at, io) in queues.iter_mut().enumerate() {
            let command = Command::new(0x01, 1).dword(10, at as u32);
            let mut command = command;
            io.stamp(&mut command);
            command.sgl(4096, 0x01);
            io.send_capsule(&command, &[at as u8 ^ round; 4096]);
        }
        for io in &mut queues {
            assert_eq!(crate::harness::status_of(&io.receive()), 0);
        }
    }
    for (at, io) in queues.iter_mut().enumerate() {
        let read = io.command(Command::new(0x02, 1).dword(10, at as u32), &[], 4096);
        assert!(read.data.iter().all(|byte| *byte == at as u8 ^ 1));
    }
    drop((queues, admins, host));
    assert_serves(address);
}

#[test]
fn hosts_that_take_nothing_cost_little_and_hold_nobody_up() {
    let address = drive(2, BackendKind::Auto);
    assert_serves(address);
    let before = resident_bytes();
    let mut slow: Vec<(Host, Wire)> = Vec::new();
    for _ in 0..SLOW_HOSTS {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 1024, true);
        // 1,000 reads of 16 MiB: 16 GiB per host, none of which is received.
        let mut capsules = Vec::new();
        for _ in 0..1000 {
            let blocks = (MAX_TRANSFER / 4096) as u32;
            let read = Command::new(0x02, 1).dword(12, blocks - 1);
            capsules.extend(io.capsule_bytes(read, MAX_TRANSFER).1);
        }
        io.stream.write_all(&capsules).unwrap();
        // 20 log pages of 16 MiB, likewise, by a queue that answers at once.
        for _ in 0..20 {
            let dwords = (MAX_TRANSFER / 4 - 1) as u32;
            let log = Command::new(0x02, u32::MAX).dword(10, dwords << 16 | 0x02);
            let log = log.dword(11, dwords >> 16);
            let (_, capsule) = host.admin.capsule_bytes(log, MAX_TRANSFER);
            host.admin.stream.write_all(&capsule).unwrap();
        }
        slow.push((host, io));
    }
    // Others are served meanwhile, again and again.
    for _ in 0..20 {
        assert_serves(address);
    }
    let grown = resident_bytes().saturating_sub(before) >> 20;
    // A log page is queued whole, 16 MiB; anything else is a few MiB a connection.
    assert!(grown < usize::from(SLOW_HOSTS) * 40, "{grown} MiB for {SLOW_HOSTS} slow hosts");
    // A host that reads at last gets all of it in order.
    let (_, io) = &mut slow[0];
    let first = io.receive();
    assert_eq!((first.header[0], u32_at(&first.header, 12)), (0x07, 0), "C2HData from 0 on");
    let mut wire = Wire::open(address);
    wire.admin(NQN);
}
