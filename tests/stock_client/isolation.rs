//! Hosts are isolated by their names: objects of one host do not exist for another, whatever
//! identifier it connects with.

use std::net::SocketAddr;

use csd_drive::{Config, Resources};
use csd_tests::wire::{Command, Wire, connect_command};

use crate::programs::{
    INDEX, activate, create_set, delete_set, execute, execution, load, log, payload, range, toys,
    unload,
};
use crate::{NQN, config, serve, u32_at};

const A: &str = "nqn.2026-11.io.csdstore:a";
const B: &str = "nqn.2026-11.io.csdstore:b";
const NO_PROGRAM: u16 = 0x196;
const NO_SET: u16 = 0x18D;

fn drive(shared_compute: bool) -> SocketAddr {
    serve(Config { resources: Resources { shared_compute, ..toys() }, ..config() })
}

/// Connects a queue as the host of this name and identifier; returns the status, and the
/// controller's identifier.
fn connect(wire: &mut Wire, host: (&str, u8), qid: u16, cntlid: u16) -> (u16, u16) {
    let (command, mut data) = connect_command(NQN, qid, cntlid, 32, true);
    data[..16].fill(host.1);
    data[512..768].fill(0);
    data[512..512 + host.0.len()].copy_from_slice(host.0.as_bytes());
    wire.initialise();
    let reply = wire.command_in_capsule(command, &data);
    (reply.status, reply.result as u16)
}

struct Host {
    admin: Wire,
    io: Wire,
}

fn host(address: SocketAddr, name: &str, id: u8) -> Host {
    let (mut admin, mut io) = (Wire::open(address), Wire::open(address));
    let (status, cntlid) = connect(&mut admin, (name, id), 0, 0xFFFF);
    assert_eq!(status, 0);
    let enable = Command::new(0x7F, 0).dword(11, 0x14).dword(12, 4 << 20 | 6 << 16 | 6 << 4 | 1);
    assert_eq!(admin.command(enable, &[], 0).status, 0);
    assert_eq!(connect(&mut io, (name, id), 1, cntlid).0, 0);
    Host { admin, io }
}

impl Host {
    fn run(&mut self, index: u32) -> u16 {
        execute(&mut self.io, execution(index, 0, 0, 96, 0), &payload(index)).status
    }

    fn run_over(&mut self, index: u32, rsid: u32) -> u16 {
        execute(&mut self.io, execution(index, rsid, 0, 0, 0), &[]).status
    }

    /// Returns the number of programs with those of the drive, up to the last, and of range sets.
    fn sees(&mut self) -> (u32, u32) {
        (u32_at(&log(&mut self.admin, 0x82), 0), u32_at(&log(&mut self.admin, 0x84), 0))
    }

    fn makes(&mut self) -> u32 {
        assert_eq!(load(&mut self.admin, INDEX, b"copy"), 0);
        assert_eq!(activate(&mut self.admin, INDEX, true), 0);
        let set = create_set(&mut self.admin, &[range(4, 0, 64)]);
        assert_eq!(set.status, 0);
        set.result as u32
    }
}

#[test]
fn programs_and_range_sets_belong_to_the_host_that_made_them() {
    let address = drive(false);
    let (mut a, mut b) = (host(address, A, 1), host(address, B, 2));
    let at_first = b.sees();
    let rsid = a.makes();
    // The same identifier does not make it the same host.
    let mut impostor = host(address, B, 1);
    for other in [&mut b, &mut impostor] {
        assert_eq!(other.sees(), at_first, "built-in programs are everyone's");
        assert_eq!(other.run(INDEX), NO_PROGRAM);
        assert_eq!(other.run_over(INDEX, rsid), NO_SET);
        assert_eq!(other.run_over(0, rsid), NO_SET, "a program of the drive's own");
        assert_eq!(activate(&mut other.admin, INDEX, false), NO_PROGRAM);
        assert_eq!(unload(&mut other.admin, INDEX), NO_PROGRAM);
        assert_eq!(delete_set(&mut other.admin, rsid), NO_SET);
    }
    // Its own program at the same index, and its own set of the same number, are others.
    assert_eq!(b.makes(), rsid);
    assert_eq!((b.run(INDEX), b.run_over(INDEX, rsid)), (0, 0));
    assert_eq!(activate(&mut b.admin, INDEX, false), 0);
    assert_eq!((unload(&mut b.admin, INDEX), delete_set(&mut b.admin, rsid)), (0, 0));
    assert_eq!(b.sees(), at_first);
    assert_eq!((a.sees(), a.run(INDEX)), ((INDEX + 1, 1), 0));
    // The name identifies the host: it may come back with another identifier.
    drop(a);
    let mut again = host(address, A, 77);
    assert_eq!(again.sees(), (INDEX + 1, 1));
    assert_eq!((again.run(INDEX), again.run_over(INDEX, rsid)), (0, 0));
    assert_eq!(activate(&mut again.admin, INDEX, false), 0);
    assert_eq!((unload(&mut again.admin, INDEX), delete_set(&mut again.admin, rsid)), (0, 0));
    assert_eq!(again.sees(), at_first);
}

#[test]
fn a_drive_that_shares_shows_all_to_all() {
    let address = drive(true);
    let (mut a, mut b) = (host(address, A, 1), host(address, B, 2));
    let rsid = a.makes();
    assert_eq!(b.sees(), (INDEX + 1, 1));
    assert_eq!((b.run(INDEX), b.run_over(INDEX, rsid)), (0, 0));
    assert_eq!(activate(&mut b.admin, INDEX, false), 0);
    assert_eq!((unload(&mut b.admin, INDEX), delete_set(&mut b.admin, rsid)), (0, 0));
    assert_eq!(a.run(INDEX), NO_PROGRAM);
}

#[test]
fn queues_of_one_controller_agree_on_name_and_identifier() {
    let address = drive(false);
    let mut admin = Wire::open(address);
    let (_, cntlid) = connect(&mut admin, (A, 1), 0, 0xFFFF);
    let enable = Command::new(0x7F, 0).dword(11, 0x14).dword(12, 4 << 20 | 6 << 16 | 6 << 4 | 1);
    assert_eq!(admin.command(enable, &[], 0).status, 0);
    for wrong in [(A, 2), (B, 1)] {
        assert_eq!(connect(&mut Wire::open(address), wrong, 1, cntlid).0, 0x182, "{wrong:?}");
    }
    assert_eq!(connect(&mut Wire::open(address), (A, 1), 1, cntlid).0, 0);
}

/// One host leaves room for others: half of the bytes, a quarter of the programs.
#[test]
fn no_host_takes_all_that_can_be_loaded() {
    let address = drive(false);
    let long = [&b"copy "[..], &vec![b'x'; (1 << 20) - 5]].concat();
    let mut a = host(address, A, 1);
    let part = |wire: &mut Wire, index: u32| {
        let command = crate::programs::part(index, long.len(), 0, long.len());
        wire.command(command, &long, 0).status
    };
    for index in INDEX..INDEX + 8 {
        assert_eq!(part(&mut a.admin, index), 0);
    }
    assert_eq!(part(&mut a.admin, INDEX + 8), 0x194, "half of 16 MiB");
    let mut b = host(address, B, 1);
    for index in INDEX..INDEX + 8 {
        assert_eq!(part(&mut b.admin, index), 0);
    }
    let mut c = host(address, "nqn.2026-11.io.csdstore:c", 1);
    assert_eq!(load(&mut c.admin, INDEX, b"copy"), 0x194, "16 MiB are there");
    for index in INDEX..INDEX + 8 {
        assert_eq!((unload(&mut a.admin, index), unload(&mut b.admin, index)), (0, 0));
    }
    for number in 0..64u32 {
        let name = format!("nqn.2026-11.io.csdstore:{}", number / 16);
        let mut host = host(address, &name, 1);
        assert_eq!(load(&mut host.admin, INDEX + number % 16, b"copy"), 0, "program {number}");
    }
    assert_eq!(load(&mut c.admin, INDEX, b"copy"), 0x18A, "64 programs are there");
}
