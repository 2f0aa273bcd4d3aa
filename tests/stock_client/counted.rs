//! Every command of an I/O queue is counted once, whatever its answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use csd_tests::wire::{Command, Wire};

use crate::programs::{activate, execute, execution, load, range, toys};
use crate::{NQN, config, io_queue, serve, u64_at};

const COMPARE: u8 = 0x05;
const WRITE: u8 = 0x01;
const BYTES: usize = 4096;

/// Serves a drive with a metrics page; returns both addresses.
fn drive() -> (SocketAddr, SocketAddr) {
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = csd_drive::Config { metrics: vec![metrics], resources: toys(), ..config() };
    (serve(config), metrics)
}

/// Returns the value of a metric, 0 if the page does not have it.
fn metric(address: SocketAddr, name: &str) -> usize {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let mut lines = page.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    lines.next().map_or(0, |value| value.parse().unwrap())
}

fn commands(address: SocketAddr, op: &str) -> usize {
    let labels = format!("namespace=\"block\",op=\"{op}\",side=\"outside\"");
    metric(address, &format!("csd_commands_total{{{labels}}}"))
}

fn refused(address: SocketAddr, code: &str, status: &str) -> usize {
    let labels = format!("code=\"{code}h\",status=\"{status}\",side=\"outside\"");
    metric(address, &format!("csd_command_errors_total{{{labels}}}"))
}

fn half(opcode: u8, fuse: u8) -> Command {
    Command::new(opcode, 1).byte(1, 0x40 | fuse)
}

#[test]
fn a_refusal_by_write_protection_is_counted_and_in_the_error_log() {
    let (address, metrics) = drive();
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut io = io_queue(address, cntlid, 1, true);
    let protect = Command::new(0x09, 1).dword(10, 0x84).dword(11, 1);
    assert_eq!(admin.command(protect, &[], 0).status, 0);
    let write = || Command::new(WRITE, 1);
    assert_eq!(io.command_in_capsule(write(), &[1; BYTES]).status, 0x020);
    assert_eq!(io.command(write(), &[1; BYTES], 0).status, 0x020);
    assert_eq!(commands(metrics, "write"), 2);
    assert_eq!(refused(metrics, "020", "namespace is write protected"), 2);
    let log = Command::new(0x02, u32::MAX).dword(10, 15 << 16 | 0x01);
    let entries = admin.command(log, &[], 64).data;
    assert_eq!(u64_at(&entries, 0), 2, "entries of the error log");
    // Write protection by a host is no error of the medium.
    assert_eq!(metric(metrics, "csd_media_errors_total"), 0);
    assert_eq!(metric(metrics, "csd_media_read_only"), 0);
}

#[test]
fn an_execution_that_meets_write_protection_says_nothing_of_the_medium() {
    let (address, metrics) = drive();
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut io = io_queue(address, cntlid, 1, true);
    assert_eq!((load(&mut admin, 16, b"copy"), activate(&mut admin, 16, true)), (0, 0));
    let protect = Command::new(0x09, 4).dword(10, 0x84).dword(11, 1);
    assert_eq!(admin.command(protect, &[], 0).status, 0);
    let ranges = [range(4, 0, 64), range(4, 4096, 64)].concat();
    let command = execution(16, 0, 2, ranges.len(), 2);
    assert_eq!(execute(&mut io, command, &ranges).status, 0x020);
    assert_eq!(refused(metrics, "020", "namespace is write protected"), 1);
    assert_eq!(metric(metrics, "csd_media_errors_total"), 0);
    assert_eq!(metric(metrics, "csd_media_read_only"), 0);
}

#[test]
fn both_halves_of_a_fused_pair_are_counted() {
    let (address, metrics) = drive();
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut io = io_queue(address, cntlid, 1, true);
    for compared in [0, 7] {
        io.post(half(COMPARE, 1), &[compared; BYTES]);
        io.post(half(WRITE, 2), &[1; BYTES]);
        let statuses = (io.response().1, io.response().1);
        assert_eq!(statuses, if compared == 0 { (0, 0) } else { (0x285, 0x009) });
    }
    // The second half alone.
    io.post(half(WRITE, 2), &[1; BYTES]);
    assert_eq!(io.response().1, 0x00A);
    assert_eq!((commands(metrics, "compare"), commands(metrics, "write")), (2, 3));
    assert_eq!(refused(metrics, "285", "compare failure"), 1);
}
