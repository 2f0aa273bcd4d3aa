//! Controllers that are reset, shut down, lost and created again.

use std::io::Write;
use std::time::{Duration, Instant};

use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Wire, connect_command};

use crate::harness::{BLOCK_BYTES, Host, NQN, assert_closed, assert_serves, drive, each_backend};

/// Limit of every wait. It only ends tests that hang.
const PATIENCE: Duration = Duration::from_secs(600);

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn configure(admin: &mut Wire, cc: u32) {
    let set = Command::new(0x7F, 0).byte(4, 0x00).dword(11, 0x14).dword(12, cc);
    assert_eq!(admin.command(set, &[], 0).status, 0);
}

const ENABLED: u32 = 4 << 20 | 6 << 16 | 6 << 4 | 1;

/// Connects a queue of 32 entries, once the drive has removed an earlier one of this number.
fn queue(host: &Host, qid: u16) -> Wire {
    let mut made = None;
    eventually("the queue id", || {
        let mut queue = Wire::open(host.address);
        queue.initialise();
        let reply = queue.connect_sized(NQN, qid, host.cntlid, 32, true);
        made = (reply.status == 0).then_some(queue);
        made.is_some()
    });
    made.unwrap()
}

/// Sends ten writes that wait for their data, and one read.
fn put_in_flight(io: &mut Wire) {
    for _ in 0..10 {
        let (_, capsule) = io.capsule_bytes(Command::new(0x01, 1), BLOCK_BYTES);
        io.stream.write_all(&capsule).unwrap();
        assert_eq!(io.receive().header[0], 0x09);
    }
}

#[test]
fn a_reset_ends_queues_with_commands_in_flight_and_can_be_undone() {
    each_backend(|address| {
        let mut host = Host::new(address);
        for _ in 0..5 {
            let mut queues: Vec<Wire> = (1..5).map(|qid| queue(&host, qid)).collect();
            queues.iter_mut().for_each(put_in_flight);
            configure(&mut host.admin, ENABLED & !1);
            eventually("CSTS.RDY to be 0", || host.admin.property(0x1C, false) & 1 == 0);
            queues.iter_mut().for_each(assert_closed);
            let mut early = Wire::open(address);
            early.initialise();
            assert_ne!(early.connect(NQN, 1, host.cntlid, true).status, 0, "not enabled");
            configure(&mut host.admin, ENABLED);
            assert_eq!(host.admin.property(0x1C, false) & 1, 1);
            eventually("the queue ids", || {
                (1..5).all(|qid| {
                    let mut queue = Wire::open(address);
                    queue.initialise();
                    queue.connect(NQN, qid, host.cntlid, true).status == 0
                })
            });
            eventually("the queues to end", || {
                let mut queue = Wire::open(address);
                queue.initialise();
                queue.connect(NQN, 1, host.cntlid, true).status == 0
            });
            configure(&mut host.admin, ENABLED & !1);
            configure(&mut host.admin, ENABLED);
        }
    });
}

#[test]
fn a_shutdown_notification_ends_the_queues_and_says_so() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 32, true);
        put_in_flight(&mut io);
        configure(&mut host.admin, ENABLED | 1 << 14);
        let status = |host: &mut Host| host.admin.property(0x1C, false) >> 2 & 3;
        eventually("CSTS.SHST to say complete", || status(&mut host) == 2);
        assert_closed(&mut io);
    });
}

#[test]
fn a_lost_admin_queue_takes_its_queues_along() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut queues: Vec<Wire> = (1..9).map(|qid| host.queue(qid, 32, true)).collect();
        queues.iter_mut().for_each(put_in_flight);
        drop(host);
        queues.iter_mut().for_each(assert_closed);
    });
}

/// A controller leaves nothing behind: its identifier is used again, however it ended.
#[test]
fn controllers_made_and_dropped_leave_nothing_behind() {
    each_backend(|address| {
        let mut highest = 0;
        for round in 0..300u32 {
            let mut host = Host::new(address);
            highest = highest.max(host.cntlid);
            if round % 3 > 0 {
                let mut io = host.queue(1, 32, true);
                put_in_flight(&mut io);
                if round % 3 == 1 {
                    // The drive ends it, not the host.
                    io.stream.write_all(&[0xFF; 128]).unwrap();
                }
            }
        }
        assert!(highest < 64, "ids are used again: {highest} of 300");
        eventually("the last controllers to end", || Host::new(address).cntlid == 1);
    });
}

/// One time limit for all silent hosts: those that never connect, and two that stop their
/// keep-alive, of which one has an I/O queue.
#[test]
fn silent_hosts_are_forgotten() {
    let address = drive(2, BackendKind::Auto);
    let mut mute = Wire::open(address);
    let mut idle = Wire::open(address);
    idle.initialise();
    let mut half = Wire::open(address);
    half.stream.write_all(&[0x00, 0, 128]).unwrap();
    let mut torn = Wire::open(address);
    torn.initialise();
    torn.stream.write_all(&[0x04, 0, 72, 72, 0xFF, 0, 0, 0, 0x7F]).unwrap();
    let mut silent = Wire::open(address);
    silent.initialise();
    let (mut command, data) = connect_command(NQN, 0, 0xFFFF, 32, true);
    command.0[48..52].copy_from_slice(&1000u32.to_le_bytes());
    assert_eq!(silent.command_in_capsule(command, &data).status, 0);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut io = Wire::open(address);
    io.initialise();
    assert_eq!(io.connect(NQN, 1, cntlid, true).status, 0);
    // At last, so that the limit does not pass before the queue is connected.
    let keep_alive = Command::new(0x09, 0).dword(10, 0x0F).dword(11, 1000);
    assert_eq!(admin.command(keep_alive, &[], 0).status, 0);
    // Each read ends when the drive closes.
    for wire in [&mut mute, &mut idle, &mut half, &mut torn, &mut silent, &mut admin, &mut io] {
        assert_closed(wire);
    }
    assert_serves(address);
}
