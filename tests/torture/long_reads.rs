//! Reads that are longer than the pieces in which a drive reads: the data of each is one PDU.

use std::collections::BTreeMap;
use std::io::Write;

use csd_drive::{Config, MediaKind};
use csd_tests::wire::{Command, Wire};

use crate::harness::{BLOCK_BYTES, Host, assert_serves, serve, status_of, u16_at, u32_at};

/// Bytes of the blocks that are read.
const BYTES: usize = 4 << 20;

/// Returns the byte that fills a block.
fn fill(block: usize) -> u8 {
    (block % 251) as u8
}

fn write_all(io: &mut Wire) {
    const STEP: usize = 64;
    for first in (0..BYTES / BLOCK_BYTES).step_by(STEP) {
        let data: Vec<u8> =
            (first..first + STEP).flat_map(|block| [fill(block); BLOCK_BYTES]).collect();
        let write = Command::new(0x01, 1).dword(10, first as u32).dword(12, STEP as u32 - 1);
        assert_eq!(io.command(write, &data, 0).status, 0);
    }
}

/// Sends reads from block 0 on, of these lengths and all at once, with a Flush behind each; checks
/// every answer.
fn read_at_once(io: &mut Wire, lengths: &[usize]) {
    let (mut capsules, mut wanted) = (Vec::new(), BTreeMap::new());
    for length in lengths {
        let read = Command::new(0x02, 1).dword(12, (length / BLOCK_BYTES) as u32 - 1);
        let (cid, bytes) = io.capsule_bytes(read, *length);
        capsules.extend(bytes);
        wanted.insert(cid, (*length, false));
        let (cid, bytes) = io.capsule_bytes(Command::new(0x00, 1), 0);
        capsules.extend(bytes);
        wanted.insert(cid, (0, true));
    }
    io.stream.write_all(&capsules).unwrap();
    while !wanted.is_empty() {
        let pdu = io.receive();
        if pdu.header[0] == 0x05 {
            assert_eq!(status_of(&pdu), 0);
            let (_, complete) = wanted.remove(&u16_at(&pdu.header, 20)).expect("asked for");
            assert!(complete, "an answer before the data");
            continue;
        }
        assert_eq!(pdu.header[0], 0x07);
        let (length, complete) = wanted.get_mut(&u16_at(&pdu.header, 8)).expect("asked for");
        assert!(!std::mem::replace(complete, true), "a second PDU of one read");
        assert_eq!((u32_at(&pdu.header, 12), u32_at(&pdu.header, 16) as usize), (0, *length));
        assert_eq!(pdu.header[1] & 0x04, 0x04, "LAST_PDU");
        let is_right = |(at, block): (usize, &[u8])| block.iter().all(|byte| *byte == fill(at));
        assert!(
            pdu.data.len() == *length && pdu.data.chunks(BLOCK_BYTES).enumerate().all(is_right)
        );
        if pdu.header[1] & 0x08 != 0 {
            wanted.remove(&u16_at(&pdu.header, 8));
        }
    }
}

#[test]
fn the_data_of_a_read_is_one_pdu_and_others_do_not_come_between() {
    let folder = tempfile::tempdir().unwrap();
    for media in [MediaKind::Memory, MediaKind::File(folder.path().join("m"))] {
        let address = serve(Config { media, ..Config::default() });
        for flow_control in [true, false] {
            let mut host = Host::new(address);
            let mut io = host.queue(1, 64, flow_control);
            write_all(&mut io);
            let short = [BLOCK_BYTES; 6];
            let long = [1 << 20, BLOCK_BYTES, 256 << 10, 4 << 20, 132 << 10, 128 << 10];
            read_at_once(&mut io, &short);
            read_at_once(&mut io, &long);
            read_at_once(&mut io, &[[1 << 20; 12], [128 << 10; 12]].concat());
        }
        assert_serves(address);
    }
}

#[test]
fn a_drive_with_a_shorter_transfer_limit_keeps_it() {
    let resources = csd_drive::Resources { mdts: 5, ..Default::default() };
    let address = serve(Config { resources, ..Config::default() });
    let mut host = Host::new(address);
    let identify = Command::new(0x06, 0).dword(10, 1);
    assert_eq!(host.admin.command(identify, &[], 4096).data[77], 5, "MDTS");
    // The longest value of a key-value namespace (KVVML).
    let namespace = Command::new(0x06, 2).dword(10, 5).dword(11, 1 << 24);
    assert_eq!(u32_at(&host.admin.command(namespace, &[], 4096).data, 76), 128 << 10, "KVVML");
    let mut io = host.queue(1, 32, true);
    let read = |bytes: usize| Command::new(0x02, 1).dword(12, (bytes / BLOCK_BYTES) as u32 - 1);
    assert_eq!(io.command(read(128 << 10), &[], 128 << 10).data.len(), 128 << 10);
    assert_eq!(io.command(read(132 << 10), &[], 132 << 10).status, 0x002, "Invalid Field");
    let store =
        |bytes: usize| Command::new(0x01, 2).dword(2, 7).dword(10, bytes as u32).dword(11, 4);
    assert_eq!(io.command(store(128 << 10), &[1; 128 << 10], 0).status, 0);
    assert_eq!(io.command(store(132 << 10), &[1; 132 << 10], 0).status, 0x085, "value size");
    assert_serves(address);
}
