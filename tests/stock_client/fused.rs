//! Fused Compare and Write, in every order that a host may send its halves.

use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Wire};

use crate::{NQN, drive, io_queue};

const COMPARE: u8 = 0x05;
const WRITE: u8 = 0x01;
const BYTES: usize = 4096;

/// Returns a command for one block at `lba`, marked as first (1) or second (2) of a pair.
fn half(opcode: u8, lba: u32, fuse: u8) -> Command {
    Command::new(opcode, 1).dword(10, lba).byte(1, 0x40 | fuse)
}

fn queue() -> (Wire, Wire) {
    let address = drive(2, BackendKind::Auto);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let io = io_queue(address, cntlid, 1, true);
    (admin, io)
}

fn pair(io: &mut Wire, lba: u32, old: u8, new: u8) -> (u16, u16) {
    let first = io.post(half(COMPARE, lba, 1), &[old; BYTES]);
    let second = io.post(half(WRITE, lba, 2), &[new; BYTES]);
    let (one, two) = (io.response(), io.response());
    assert_eq!((one.0, two.0), (first, second), "answered in order");
    (one.1, two.1)
}

fn block(io: &mut Wire, lba: u32) -> Vec<u8> {
    io.command(Command::new(0x02, 1).dword(10, lba), &[], BYTES).data
}

#[test]
fn a_pair_writes_when_it_compares_and_does_nothing_otherwise() {
    let (_admin, mut io) = queue();
    assert_eq!(pair(&mut io, 5, 0, 1), (0, 0));
    assert!(block(&mut io, 5) == [1; BYTES]);
    assert_eq!(pair(&mut io, 5, 0, 2), (0x285, 0x009), "compare failure, failed fused");
    assert!(block(&mut io, 5) == [1; BYTES]);
    assert_eq!(pair(&mut io, 5, 1, 3), (0, 0));
    assert!(block(&mut io, 5) == [3; BYTES]);
}

#[test]
fn halves_that_are_no_pair_are_refused() {
    let (_admin, mut io) = queue();
    let first = io.post(half(COMPARE, 5, 1), &[0; BYTES]);
    let second = io.post(half(WRITE, 6, 2), &[1; BYTES]);
    assert_eq!(io.response(), (first, 0x002, 0), "two different extents");
    assert_eq!(io.response(), (second, 0x002, 0));
    io.post(half(WRITE, 5, 1), &[0; BYTES]);
    io.post(half(COMPARE, 5, 2), &[0; BYTES]);
    assert_eq!((io.response().1, io.response().1), (0x002, 0x002), "the wrong way round");
    let two = |opcode, fuse| half(opcode, 5, fuse).dword(12, 1);
    io.post(two(COMPARE, 1), &[0; 2 * BYTES]);
    io.post(two(WRITE, 2), &[1; 2 * BYTES]);
    assert_eq!((io.response().1, io.response().1), (0x014, 0x009), "more than ACWU");
    assert!(block(&mut io, 5) == [0; BYTES], "nothing of all that was written");
}

#[test]
fn a_missing_half_is_noticed_at_the_next_command() {
    let (_admin, mut io) = queue();
    let alone = io.post(half(WRITE, 7, 2), &[9; BYTES]);
    assert_eq!(io.response(), (alone, 0x00A, 0), "a second without a first");
    let first = io.post(half(COMPARE, 7, 1), &[0; BYTES]);
    let other = io.post(Command::new(0x00, 1), &[]);
    assert_eq!(io.response(), (first, 0x00A, 0), "a first before a command of its own");
    assert_eq!(io.response(), (other, 0, 0), "which runs as if nothing had been");
    let first = io.post(half(COMPARE, 7, 1), &[0; BYTES]);
    let again = io.post(half(COMPARE, 7, 1), &[0; BYTES]);
    assert_eq!(io.response(), (first, 0x00A, 0), "a first before another first");
    let second = io.post(half(WRITE, 7, 2), &[4; BYTES]);
    assert_eq!((io.response(), io.response()), ((again, 0, 0), (second, 0, 0)));
    assert!(block(&mut io, 7) == [4; BYTES]);
    let first = io.post(half(COMPARE, 7, 1), &[4; BYTES]);
    let fabrics = io.post(Command::new(0x7F, 0).byte(4, 0x06), &[]);
    assert_eq!(io.response(), (first, 0x00A, 0), "a first before a fabrics command");
    assert_eq!(io.response().0, fabrics);
    // A first half without its second ends with its connection.
    io.post(half(COMPARE, 7, 1), &[4; BYTES]);
}

/// Hosts that count in one block by Compare and Write lose no step, while another host writes to it
/// plainly, on other cores.
#[test]
fn pairs_of_many_hosts_never_lose_a_step() {
    const HOSTS: u64 = 4;
    const STEPS: u64 = 30;
    let address = drive(2, BackendKind::Auto);
    let step = move || {
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let mut io = io_queue(address, cntlid, 1, true);
        let mut done = 0;
        while done < STEPS {
            let old = block(&mut io, 40);
            let count = u64::from_le_bytes(old[..8].try_into().unwrap());
            let mut new = old.clone();
            new[..8].copy_from_slice(&(count + 1).to_le_bytes());
            io.post(half(COMPARE, 40, 1), &old);
            io.post(half(WRITE, 40, 2), &new);
            match (io.response().1, io.response().1) {
                (0, 0) => done += 1,
                (0x285, 0x009) => {}
                other => panic!("{other:x?}"),
            }
            let beside = Command::new(WRITE, 1).dword(10, 41);
            assert_eq!(io.command_in_capsule(beside, &[7; BYTES]).status, 0);
        }
        drop(admin);
    };
    let hosts: Vec<_> = (0..HOSTS).map(|_| std::thread::spawn(step)).collect();
    hosts.into_iter().for_each(|host| host.join().unwrap());
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut io = io_queue(address, cntlid, 1, true);
    let last = block(&mut io, 40);
    assert_eq!(u64::from_le_bytes(last[..8].try_into().unwrap()), HOSTS * STEPS);
}
