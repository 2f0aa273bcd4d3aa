//! The Subsystem Local Memory command set: bytes written, read, filled and copied, also to and from
//! blocks, and every status that a host can provoke.

use std::net::SocketAddr;

use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Wire};

use crate::{NQN, drive, each_backend, io_queue, u32_at, u64_at};

/// Default size of a drive's memory namespace: 64 MiB.
const BYTES: u64 = 64 << 20;
const BLOCK: usize = 4096;

fn hosts(address: SocketAddr) -> (Wire, Wire) {
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let io = io_queue(address, cntlid, 1, true);
    (admin, io)
}

/// Returns an access: start byte in dwords 10 and 11, length in dword 12.
fn access(opcode: u8, start: u64, length: usize) -> Command {
    let command = Command::new(opcode, 4).dword(10, start as u32).dword(11, (start >> 32) as u32);
    command.dword(12, length as u32)
}

fn write(io: &mut Wire, start: u64, data: &[u8]) -> u16 {
    io.command(access(0x05, start, data.len()), data, 0).status
}

fn read(io: &mut Wire, start: u64, length: usize) -> Vec<u8> {
    let reply = io.command(access(0x02, start, length), &[], length);
    assert_eq!(reply.status, 0);
    reply.data
}

/// Sends Memory Copy: total in dwords 2 and 3, destination in 10 and 11, count and format in 12.
fn copy(io: &mut Wire, to: u64, total: u64, format: u32, descriptors: &[[u8; 32]]) -> u16 {
    let command = Command::new(0x01, 4).dword(2, total as u32).dword(3, (total >> 32) as u32);
    let command = command.dword(10, to as u32).dword(11, (to >> 32) as u32);
    let command = command.dword(12, format << 8 | (descriptors.len() as u32 - 1));
    io.command(command, &descriptors.concat(), 0).status
}

/// Returns a source of format 4h: namespace, start byte at 8, length at 16.
fn of_memory(nsid: u32, start: u64, length: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&nsid.to_le_bytes());
    bytes[8..16].copy_from_slice(&start.to_le_bytes());
    bytes[16..20].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Returns a source of format 2h or 3h: namespace, block at 8, 0's based count at 16.
fn of_blocks(nsid: u32, block: u64, count: u16) -> [u8; 32] {
    let mut bytes = of_memory(nsid, block, 0);
    bytes[16..18].copy_from_slice(&(count - 1).to_le_bytes());
    bytes
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 13 + at / 251 + seed) % 256) as u8).collect()
}

#[test]
fn memory_is_identified_with_its_size_and_commands() {
    each_backend(|address| {
        let (mut admin, _io) = hosts(address);
        let identify = Command::new(0x06, 4).dword(10, 0x05).dword(11, 3 << 24);
        let data = admin.command(identify, &[], 4096).data;
        assert_eq!((u64_at(&data, 0), u64_at(&data, 16)), (BYTES, 0), "NSZE, and nothing in use");
        let list = Command::new(0x06, 0).dword(10, 0x07).dword(11, 3 << 24);
        let list = admin.command(list, &[], 4096).data;
        assert_eq!((u32_at(&list, 0), u32_at(&list, 4)), (4, 0));
        let sets = admin.command(Command::new(0x06, 0).dword(10, 0x1C), &[], 4096).data;
        assert_eq!(u64_at(&sets, 0), 0b1_1011, "blocks, kv, memory, programs");
        let controller = admin.command(Command::new(0x06, 0).dword(10, 1), &[], 4096).data;
        assert_eq!(controller[534], 0b1_0001, "OCFS: copy formats 0h and 4h");
        let log = Command::new(0x02, 0).dword(10, 0x03FF << 16 | 0x05).dword(14, 3 << 24);
        let log = admin.command(log, &[], 4096).data;
        let supported: Vec<u32> = (0..256)
            .filter(|op| u32_at(&log, 1024 + op * 4) & 1 == 1)
            .map(|op| op as u32)
            .collect();
        assert_eq!(supported, [0x01, 0x02, 0x04, 0x05]);
        assert_eq!(u32_at(&log, 1024 + 4), 0b11, "Copy changes content");
        assert_eq!(u32_at(&log, 1024 + 2 * 4), 0b01, "Read does not");
    });
}

#[test]
fn bytes_are_written_read_and_filled() {
    each_backend(|address| {
        let (mut admin, mut io) = hosts(address);
        assert_eq!(read(&mut io, BYTES - 8, 8), [0; 8], "memory begins as zeros");
        let data = pattern(3 << 20, 1);
        assert_eq!(write(&mut io, 65_536 - 4, &data), 0);
        assert!(read(&mut io, 65_536 - 4, data.len()) == data);
        // In the capsule too.
        let small = io.command_in_capsule(access(0x05, 0, 512), &data[..512]);
        assert_eq!(small.status, 0);
        assert_eq!(read(&mut io, 0, 512), data[..512]);
        let used = Command::new(0x06, 4).dword(10, 0x05).dword(11, 3 << 24);
        assert!(u64_at(&admin.command(used, &[], 4096).data, 16) >= 3 << 20, "NUSE");
        assert_eq!(io.command(access(0x04, 65_536, 1 << 20), &[], 0).status, 0);
        let after = read(&mut io, 65_532, (1 << 20) + 8);
        assert_eq!(
            (&after[..4], &after[after.len() - 4..]),
            (&data[..4], &data[4 + (1 << 20)..][..4])
        );
        assert!(after[4..4 + (1 << 20)].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn another_connection_on_another_core_sees_the_same_bytes() {
    let address = drive(2, BackendKind::Auto);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut queues: Vec<Wire> = (1..=4).map(|qid| io_queue(address, cntlid, qid, true)).collect();
    for round in 0..8 {
        let data = pattern(200_000, round);
        assert_eq!(write(&mut queues[round % 4], 12, &data), 0);
        for queue in &mut queues {
            assert!(read(queue, 12, data.len()) == data, "round {round}");
        }
    }
}

#[test]
fn blocks_come_to_memory_and_go_back() {
    each_backend(|address| {
        let (_admin, mut io) = hosts(address);
        let data = pattern(600 * BLOCK, 7);
        let blocks = |opcode, lba: u32, count: u32| {
            Command::new(opcode, 1).dword(10, lba).dword(12, count - 1)
        };
        assert_eq!(io.command(blocks(0x01, 100, 600), &data, 0).status, 0);
        // Both formats, two sources each, out of order.
        for format in [2, 3] {
            let sources = [of_blocks(1, 300, 400), of_blocks(1, 100, 200)];
            assert_eq!(copy(&mut io, 8, 600 * BLOCK as u64, format, &sources), 0);
            let found = read(&mut io, 8, data.len());
            assert!(found[..400 * BLOCK] == data[200 * BLOCK..], "format {format}");
            assert!(found[400 * BLOCK..] == data[..200 * BLOCK]);
        }
        // And back, by the Copy of blocks: 5 blocks of two ranges that are none.
        let back = [of_memory(4, 8 + 4, 6000), of_memory(4, 20_000, 5 * BLOCK as u32 - 6000)];
        let command = Command::new(0x19, 1).dword(10, 7).dword(12, 4 << 8 | 1);
        assert_eq!(io.command(command, &back.concat(), 0).status, 0);
        let mut expected = read(&mut io, 12, 6000);
        expected.extend(read(&mut io, 20_000, 5 * BLOCK - 6000));
        let found = io.command(blocks(0x02, 7, 5), &[], 5 * BLOCK);
        assert!(found.data == expected);
    });
}

#[test]
fn memory_is_copied_within_itself_unless_it_overlaps() {
    each_backend(|address| {
        let (_admin, mut io) = hosts(address);
        let data = pattern(1 << 20, 3);
        assert_eq!(write(&mut io, 0, &data), 0);
        let sources = [of_memory(4, 4, 300_000), of_memory(4, 0, 8)];
        assert_eq!(copy(&mut io, 2 << 20, 300_008, 4, &sources), 0);
        let found = read(&mut io, 2 << 20, 300_008);
        assert!(found[..300_000] == data[4..300_004] && found[300_000..] == data[..8]);
        for (to, status) in [(300_000, 0x187), (300_004, 0), (0, 0x187)] {
            let copied = copy(&mut io, to, 300_000, 4, &[of_memory(4, 4, 300_000)]);
            assert_eq!(copied, status, "to {to}");
        }
        let whole = read(&mut io, 300_004, 300_000);
        assert!(whole == data[4..300_004]);
    });
}

#[test]
fn what_is_wrong_is_refused_with_its_status() {
    let (mut admin, mut io) = hosts(drive(1, BackendKind::Auto));
    let end = BYTES;
    // Not on dwords, or nothing.
    for (start, length) in [(1, 4), (4, 6), (0, 0)] {
        assert_eq!(io.command(access(0x02, start, length), &[], 8).status, 0x002);
        assert_eq!(io.command(access(0x04, start, length), &[], 0).status, 0x002);
    }
    // Beyond the end, or around the end of 64 bits.
    for start in [end, end - 4, u64::MAX - 3] {
        assert_eq!(io.command(access(0x02, start, 8), &[], 8).status, 0x080);
        assert_eq!(io.command(access(0x04, start, 8), &[], 0).status, 0x080);
        assert_eq!(io.command_in_capsule(access(0x05, start, 8), &[1; 8]).status, 0x080);
    }
    // Longer than a transfer; a buffer that is shorter; no Flush, no other opcode.
    assert_eq!(io.command(access(0x02, 0, (16 << 20) + 4), &[], (16 << 20) + 4).status, 0x002);
    assert_eq!(io.command(access(0x02, 0, 16), &[], 8).status, 0x00F);
    assert_eq!(io.command(access(0x00, 0, 0), &[], 0).status, 0x001);
    assert_eq!(io.command(access(0x10, 0, 4), &[], 0).status, 0x001);
    // Copies: a total that is not the sum, sources elsewhere, beyond, unknown, of another kind.
    let one = |source| [source];
    let all = [
        (0, 12, 4, one(of_memory(4, 0, 8)), 0x002),
        (64, 8, 4, one(of_memory(9, 0, 8)), 0x18B),
        (64, 8, 4, one(of_memory(1, 0, 8)), 0x18B),
        (64, 8, 4, one(of_memory(4, end - 4, 8)), 0x080),
        (64, 8, 4, one(of_memory(4, 2, 8)), 0x002),
        (end - 4, 8, 4, one(of_memory(4, 0, 8)), 0x080),
        (64, 4096, 2, one(of_blocks(2, 0, 1)), 0x185),
        (64, 4096, 2, one(of_blocks(9, 0, 1)), 0x00B),
        (64, 4096, 2, one(of_blocks(1, u64::MAX, 1)), 0x080),
        (64, 4096, 7, one(of_blocks(1, 0, 1)), 0x185),
    ];
    for (to, total, format, sources, status) in all {
        assert_eq!(copy(&mut io, to, total, format, &sources), status, "{to} {total} {format}");
    }
    // To blocks: no whole blocks, or beyond the last.
    let back = |io: &mut Wire, lba: u32, source: [u8; 32]| {
        io.command(Command::new(0x19, 1).dword(10, lba).dword(12, 4 << 8), &source, 0).status
    };
    assert_eq!(back(&mut io, 0, of_memory(4, 0, 4096 - 4)), 0x002);
    assert_eq!(back(&mut io, u32::MAX, of_memory(4, 0, 4096)), 0x080);
    assert_eq!(back(&mut io, 0, of_memory(5, 0, 4096)), 0x18B);
    assert_eq!(back(&mut io, 0, of_memory(4, 0, (16 << 20) + 4096)), 0x183);
    // Write protection.
    let protect = |state| Command::new(0x09, 4).dword(10, 0x84).dword(11, state);
    assert_eq!(admin.command(protect(1), &[], 0).status, 0);
    assert_eq!(io.command_in_capsule(access(0x05, 0, 8), &[1; 8]).status, 0x020);
    assert_eq!(io.command(access(0x04, 0, 8), &[], 0).status, 0x020);
    assert_eq!(copy(&mut io, 64, 8, 4, &one(of_memory(4, 0, 8))), 0x020);
    assert_eq!(read(&mut io, 0, 8), [0; 8]);
    assert_eq!(admin.command(protect(0), &[], 0).status, 0);
    assert_eq!(write(&mut io, 0, &[1; 8]), 0);
}
