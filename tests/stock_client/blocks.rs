//! The NVM command set beyond Read and Write, with blocks of 512 and of 4,096 bytes, on memory and
//! on a file; and write protection.

use std::net::SocketAddr;
use std::path::Path;

use csd_drive::MediaKind;
use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Wire};

use crate::{NQN, drive_on, io_queue, kv, u32_at};

/// Runs a test over both block sizes on memory, and one on a file in its own folder.
fn each_medium(test: impl Fn(&mut Wire, &mut Wire, usize)) {
    let folder = tempfile::tempdir().unwrap();
    let file = MediaKind::File(folder.path().join("drive.img"));
    for (media, block_bytes, backend) in [
        (MediaKind::Memory, 512, BackendKind::Epoll),
        (MediaKind::Memory, 4096, BackendKind::Auto),
        (file, 4096, BackendKind::Auto),
    ] {
        let (mut admin, mut io) = hosts(drive_on(media, block_bytes, 1, backend));
        test(&mut admin, &mut io, block_bytes as usize);
    }
}

fn hosts(address: SocketAddr) -> (Wire, Wire) {
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let io = io_queue(address, cntlid, 1, true);
    (admin, io)
}

/// Returns a command for `blocks` blocks from `lba` on.
fn extent(opcode: u8, lba: u32, blocks: u32) -> Command {
    Command::new(opcode, 1).dword(10, lba).dword(12, blocks - 1)
}

fn write(io: &mut Wire, lba: u32, blocks: u32, data: &[u8]) {
    assert_eq!(io.command(extent(0x01, lba, blocks), data, 0).status, 0);
}

fn read(io: &mut Wire, lba: u32, blocks: u32, block: usize) -> Vec<u8> {
    let reply = io.command(extent(0x02, lba, blocks), &[], blocks as usize * block);
    assert_eq!(reply.status, 0);
    reply.data
}

fn pattern(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i % 251) as u8 ^ seed).collect()
}

#[test]
fn the_commands_are_announced() {
    each_medium(|admin, _io, block| {
        let data = admin.command(Command::new(0x06, 0).dword(10, 1), &[], 4096).data;
        let oncs = u32_at(&data, 520) & 0xFFFF;
        assert_eq!(
            oncs, 0b1_1001_1101,
            "compare, trim, zeroes, save, verify, copy; no reservations"
        );
        assert_eq!((data[522], data[531], data[534]), (1, 3, 17), "FUSES, NWPC, OCFS");
        assert_eq!(data[526..530], [0; 4], "AWUN, AWUPF: one block");
        assert_eq!(data[532..534], [0; 2], "ACWU: one block");
        let namespace = admin.command(Command::new(0x06, 1).dword(10, 0), &[], 4096).data;
        assert_eq!(namespace[33], 0x09, "DLFEAT: zeros, and the Deallocate bit");
        let most = (16 << 20) / block as u32;
        assert_eq!(u32_at(&namespace, 74) & 0xFFFF, most, "MSSRL");
        assert_eq!((u32_at(&namespace, 76), namespace[80]), (most, 127), "MCL, MSRC");
        let effects = Command::new(0x02, 0).dword(10, 1023 << 16 | 0x05);
        let effects = admin.command(effects, &[], 4096).data;
        let entry = |opcode: usize| u32_at(&effects, 1024 + opcode * 4) & 3;
        assert_eq!(
            [0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0C, 0x19].map(entry),
            [1, 3, 1, 1, 3, 3, 1, 3]
        );
        assert_eq!([0x04, 0x0D, 0x0E, 0x11, 0x15].map(entry), [0; 5], "and no others");
        let limits = admin.command(Command::new(0x06, 0).dword(10, 6), &[], 4096).data;
        assert_eq!((limits[0], limits[1]), (16, 16), "VSL, WZSL");
    });
}

#[test]
fn zeroes_are_written_with_and_without_giving_space_back() {
    each_medium(|_admin, io, block| {
        let old = pattern(3, 64 * block);
        for deallocate in [0, 1 << 25] {
            write(io, 100, 64, &old);
            let mut zeroes = extent(0x08, 110, 40);
            zeroes.0[48..52].copy_from_slice(&(39u32 | deallocate).to_le_bytes());
            assert_eq!(io.command(zeroes, &[], 0).status, 0);
            let now = read(io, 100, 64, block);
            assert!(now[10 * block..50 * block].iter().all(|byte| *byte == 0));
            assert!(
                now[..10 * block] == old[..10 * block] && now[50 * block..] == old[50 * block..]
            );
        }
        let beyond = extent(0x08, u32::MAX, 1);
        assert_eq!(io.command(beyond, &[], 0).status, 0x080);
        let longest = extent(0x08, 0, 1 << 14);
        assert_eq!(io.command(longest, &[], 0).status, 0);
        assert!(read(io, 100, 64, block).iter().all(|byte| *byte == 0));
    });
}

fn ranges(list: &[(u32, u64)]) -> Vec<u8> {
    let entry = |(blocks, lba): &(u32, u64)| {
        let mut bytes = [0; 16];
        bytes[4..8].copy_from_slice(&blocks.to_le_bytes());
        bytes[8..].copy_from_slice(&lba.to_le_bytes());
        bytes
    };
    list.iter().flat_map(entry).collect()
}

#[test]
fn deallocated_blocks_read_as_zeros() {
    each_medium(|_admin, io, block| {
        let old = pattern(7, 256 * block);
        write(io, 0, 256, &old);
        let list = ranges(&[(16, 8), (0, 3), (100, 100)]);
        let trim = |attributes| Command::new(0x09, 1).dword(10, 2).dword(11, attributes);
        assert_eq!(io.command_in_capsule(trim(0), &list).status, 0, "hints alone");
        assert!(read(io, 0, 256, block) == old);
        assert_eq!(io.command_in_capsule(trim(4), &list).status, 0);
        let mut expected = old.clone();
        expected[8 * block..24 * block].fill(0);
        expected[100 * block..200 * block].fill(0);
        assert!(read(io, 0, 256, block) == expected);
        let outside = ranges(&[(1, 0), (1, 3), (1, u64::MAX)]);
        assert_eq!(io.command(trim(4), &outside, 0).status, 0x080, "by transfer too");
        assert!(read(io, 0, 256, block) == expected, "all or nothing");
        assert_eq!(io.command_in_capsule(trim(4), &list[..32]).status, 0x00F, "too few ranges");
        write(io, 10, 1, &old[..block]);
        assert!(read(io, 10, 1, block) == old[..block], "and it can be written again");
        // As Linux sends it: room for all 256 ranges, of which the command counts one.
        let mut padded = [ranges(&[(1, 10)]), vec![0xFF; 4080]].concat();
        let one = || Command::new(0x09, 1).dword(10, 0).dword(11, 4);
        assert_eq!(io.command_in_capsule(one(), &padded).status, 0);
        assert!(read(io, 0, 256, block) == expected);
        assert_eq!(io.command(one(), &padded, 0).status, 0, "by transfer too");
        padded.extend([0; 16]);
        assert_eq!(io.command(one(), &padded, 0).status, 0x00F, "longer than any list");
    });
}

#[test]
fn a_file_gives_deallocated_space_back() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let (_admin, mut io) =
        hosts(drive_on(MediaKind::File(path.clone()), 4096, 1, BackendKind::Auto));
    let used = |path: &Path| path.metadata().unwrap().blocks() * 512;
    write(&mut io, 0, 256, &pattern(1, 256 * 4096));
    let before = used(&path);
    let trim = Command::new(0x09, 1).dword(10, 0).dword(11, 4);
    assert_eq!(io.command_in_capsule(trim, &ranges(&[(256, 0)])).status, 0);
    let after = used(&path);
    assert!(before - after >= 1 << 20, "{before} bytes in use before, {after} after");
}

#[test]
fn compare_and_verify_look_at_the_blocks() {
    each_medium(|_admin, io, block| {
        let data = pattern(9, 300 * block);
        write(io, 50, 300, &data);
        assert_eq!(io.command(extent(0x05, 50, 300), &data, 0).status, 0);
        let mut other = data.clone();
        *other.last_mut().unwrap() ^= 1;
        assert_eq!(io.command(extent(0x05, 50, 300), &other, 0).status, 0x285);
        assert_eq!(io.command_in_capsule(extent(0x05, 50, 1), &data[..block]).status, 0);
        assert_eq!(io.command(extent(0x0C, 0, 4096), &[], 0).status, 0);
        assert_eq!(io.command(extent(0x0C, u32::MAX, 2), &[], 0).status, 0x080);
        assert_eq!(io.command(extent(0x05, u32::MAX, 1), &data[..block], 0).status, 0x080);
    });
}

fn sources(list: &[(u64, u16)]) -> Vec<u8> {
    let entry = |(lba, blocks): &(u64, u16)| {
        let mut bytes = [0; 32];
        bytes[8..16].copy_from_slice(&lba.to_le_bytes());
        bytes[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
        bytes
    };
    list.iter().flat_map(entry).collect()
}

#[test]
fn copies_join_their_sources_even_where_they_overlap() {
    each_medium(|_admin, io, block| {
        let data = pattern(2, 64 * block);
        write(io, 0, 64, &data);
        let copy = |to: u32, ranges: u32| Command::new(0x19, 1).dword(10, to).dword(12, ranges - 1);
        let list = sources(&[(40, 8), (0, 4)]);
        assert_eq!(io.command_in_capsule(copy(200, 2), &list).status, 0);
        let joined = [&data[40 * block..48 * block], &data[..4 * block]].concat();
        assert!(read(io, 200, 12, block) == joined);
        // Onto itself, one block on: the result is as if all was read first.
        assert_eq!(io.command_in_capsule(copy(1, 1), &sources(&[(0, 32)])).status, 0);
        assert!(read(io, 1, 32, block) == data[..32 * block]);
        let most = ((16 << 20) / block) as u16;
        let too_long = sources(&[(0, most + 1)]);
        assert_eq!(io.command_in_capsule(copy(300, 1), &too_long).status, 0x183, "MSSRL");
        let too_much = sources(&[(0, most), (0, 1)]);
        assert_eq!(io.command_in_capsule(copy(300, 2), &too_much).status, 0x183, "MCL");
        let too_many = sources(&[(0, 1); 129]);
        assert_eq!(io.command(copy(300, 129), &too_many, 0).status, 0x183, "MSRC");
        let beyond = sources(&[(u64::MAX, 1)]);
        assert_eq!(io.command_in_capsule(copy(300, 1), &beyond).status, 0x080, "source");
        assert_eq!(io.command_in_capsule(copy(u32::MAX, 1), &sources(&[(0, 1)])).status, 0x080);
        let format = copy(300, 1).dword(12, 1 << 8);
        assert_eq!(io.command_in_capsule(format, &sources(&[(0, 1)])).status, 0x002, "format 1");
    });
}

#[test]
fn reservations_are_not_there() {
    each_medium(|_admin, io, _block| {
        for opcode in [0x0D, 0x0E, 0x11, 0x15, 0x04] {
            let reply = io.command(Command::new(opcode, 1), &[], 0);
            assert_eq!(reply.status, 0x001, "{opcode:#x}");
        }
    });
}

#[test]
fn store_newer_refuses_an_older_version() {
    each_medium(|_, io, _| {
        let value = |version: u64, fill: u64| [fill, version].map(u64::to_le_bytes).concat();
        let newer = |options| kv(0x81, b"newer", 16, options);
        for (version, fill, status) in
            [(2, 1, 0), (2, 1, 0), (2, 9, 0x7C4), (1, 1, 0x7C4), (u64::MAX, 1, 0), (3, 1, 0x7C4)]
        {
            let stored = io.command_in_capsule(newer(0), &value(version, fill)).status;
            assert_eq!(stored, status, "version {version}, {fill}");
        }
        assert_eq!(io.command_in_capsule(newer(1 << 6), &value(5, 1)).status, 0x7C4, "mend");
        for options in [1 << 0, 1 << 1, 1 << 7] {
            assert_eq!(io.command_in_capsule(newer(options), &value(9, 1)).status, 0x002);
        }
        let short = kv(0x81, b"newer", 15, 0);
        assert_eq!(io.command_in_capsule(short, &value(9, 1)[..15]).status, 0x085);
        let store = kv(0x01, b"newer", 16, 0);
        assert_eq!(io.command_in_capsule(store, &value(0, 1)).status, 0, "Store");
    });
}

/// Sends Set Features 84h for a namespace.
fn protect(admin: &mut Wire, nsid: u32, state: u32) -> u16 {
    let set = Command::new(0x09, nsid).dword(10, 0x84).dword(11, state);
    admin.command(set, &[], 0).status
}

#[test]
fn a_protected_namespace_takes_no_writes() {
    each_medium(|admin, io, block| {
        let data = pattern(5, block);
        write(io, 1, 1, &data);
        assert_eq!(protect(admin, 1, 1), 0);
        let attributes = admin.command(Command::new(0x06, 1).dword(10, 0), &[], 4096).data[99];
        assert_eq!(attributes, 1, "NSATTR");
        let copy = Command::new(0x19, 1).dword(10, 9);
        let trim = Command::new(0x09, 1).dword(11, 4);
        assert_eq!(io.command(extent(0x01, 1, 1), &data, 0).status, 0x020, "Write");
        assert_eq!(io.command(extent(0x08, 1, 1), &[], 0).status, 0x020, "Write Zeroes");
        assert_eq!(io.command_in_capsule(trim, &ranges(&[(1, 1)])).status, 0x020);
        assert_eq!(io.command_in_capsule(copy, &sources(&[(1, 1)])).status, 0x020);
        assert_eq!(io.command(Command::new(0x00, 1), &[], 0).status, 0, "Flush");
        assert!(read(io, 1, 1, block) == data);
        let smart = Command::new(0x02, u32::MAX).dword(10, 127 << 16 | 0x02);
        assert_eq!(admin.command(smart, &[], 512).data[0], 0, "the medium is in good health");
        assert_eq!(protect(admin, 1, 0), 0);
        assert_eq!(io.command(extent(0x01, 1, 1), &data, 0).status, 0);
        assert_eq!((protect(admin, 1, 3), protect(admin, 77, 1)), (0x002, 0x00B));
        assert_eq!(protect(admin, 5, 1), 0x10E, "programs are not written");
        assert_eq!(protect(admin, 2, 1), 0, "keys and values too");
        assert_eq!(io.command_in_capsule(kv(0x01, b"k", 4, 0), b"none").status, 0x020, "Store");
        assert_eq!(io.command(kv(0x10, b"k", 0, 0), &[], 0).status, 0x020, "Delete");
        assert_eq!(io.command(kv(0x14, b"k", 0, 0), &[], 0).status, 0x087, "Exist");
        assert_eq!(protect(admin, 1, 2), 0, "until power cycle");
        assert_eq!(protect(admin, 1, 0), 0x10E, "which cannot be taken back");
        assert_eq!(io.command(extent(0x01, 1, 1), &data, 0).status, 0x020);
    });
}
