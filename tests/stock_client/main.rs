//! A client like stock ones: raw bytes from the specification, against a served drive.
//!
//! It uses nothing of `csd-nvme`, so an error in its layouts cannot hide in both ends.

#![allow(missing_docs, unreachable_pub, clippy::cast_possible_truncation, clippy::unwrap_used)]

mod admin;
mod auth;
mod blocks;
mod counted;
mod discovery;
mod fused;
mod isolation;
mod limits;
mod memory;
mod programs;
mod spdk;
mod strangers;
mod values;

use std::io::{Read, Write};
use std::net::SocketAddr;

use csd_reactor::BackendKind;
use csd_tests::drive::serve;
use csd_tests::wire::{Command, Wire};

const NQN: &str = "nqn.2026-11.io.csdstore:stock";

/// Serves a drive on memory in this process, until the test ends.
fn drive(cores: usize, backend: BackendKind) -> SocketAddr {
    drive_on(csd_drive::MediaKind::Memory, 4096, cores, backend)
}

fn drive_on(
    media: csd_drive::MediaKind,
    block_bytes: u32,
    cores: usize,
    backend: BackendKind,
) -> SocketAddr {
    serve(csd_drive::Config { media, block_bytes, cores, backend, ..config() })
}

/// Returns the configuration that most tests use.
fn config() -> csd_drive::Config {
    csd_drive::Config { nqn: NQN.into(), size_bytes: 256 << 20, ..csd_drive::Config::default() }
}

fn each_backend(test: impl Fn(SocketAddr)) {
    for (cores, backend) in [(1, BackendKind::Epoll), (2, BackendKind::Auto)] {
        test(drive(cores, backend));
    }
}

fn u32_at(data: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap())
}

fn u64_at(data: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(data[offset..offset + 8].try_into().unwrap())
}

fn io_queue(address: SocketAddr, cntlid: u16, qid: u16, flow_control: bool) -> Wire {
    let mut queue = Wire::open(address);
    queue.initialise();
    let reply = queue.connect(NQN, qid, cntlid, flow_control);
    assert_eq!(reply.status, 0, "{reply:?}");
    queue
}

#[test]
fn identify_structures_have_their_fields_where_the_specification_has_them() {
    each_backend(|address| {
        let mut admin = Wire::open(address);
        admin.admin(NQN);
        let cap = admin.property(0x00, true);
        assert_eq!(cap & 0xFFFF, 1023, "MQES");
        assert_eq!(cap >> 43 & 1, 1, "CAP.CSS: I/O command sets");
        assert_eq!(admin.property(0x08, false) >> 16, 2, "VS major");
        let controller = admin.command(Command::new(0x06, 0).dword(10, 0x01), &[], 4096);
        assert_eq!((controller.status, controller.data.len()), (0, 4096));
        let data = controller.data;
        assert_eq!(u32_at(&data, 1792), (64 + 8192) / 16, "IOCCSZ");
        assert_eq!(u32_at(&data, 1796), 1, "IORCSZ");
        assert_eq!((data[77], data[512], data[513]), (12, 0x66, 0x44), "MDTS, SQES, CQES");
        assert_eq!(u32_at(&data, 536) & 3, 1, "SGLS");
        assert_eq!(&data[768..768 + NQN.len()], NQN.as_bytes(), "SUBNQN");
        let list = admin.command(Command::new(0x06, 0).dword(10, 0x02), &[], 4096).data;
        assert_eq!([0, 4, 8, 12, 16, 20].map(|at| u32_at(&list, at)), [1, 2, 3, 4, 5, 0]);
        for (nsid, csi) in [(1, 0), (2, 1), (3, 1), (4, 3), (5, 4)] {
            let descriptors = Command::new(0x06, nsid).dword(10, 0x03);
            let data = admin.command(descriptors, &[], 4096).data;
            assert_eq!((data[0], data[1]), (2, 16), "NGUID");
            assert_eq!((data[20], data[21]), (3, 16), "UUID");
            assert_eq!((data[24 + 6] >> 4, data[24 + 8] >> 6), (4, 2), "of random bytes");
            assert_eq!((data[40], data[41], data[44]), (4, 1, csi), "CSI descriptor");
        }
        let block = admin.command(Command::new(0x06, 1).dword(10, 0x00), &[], 4096).data;
        assert_eq!(block[128 + 2], 12, "LBADS");
        assert!(u64_at(&block, 0) * 4096 > 100 << 20, "NSZE");
        let kv = Command::new(0x06, 2).dword(10, 0x05).dword(11, 1 << 24);
        let kv = admin.command(kv, &[], 4096).data;
        assert_eq!((kv[25], kv[72]), (0, 16), "NKVF, KVKML");
        assert_eq!(u32_at(&kv, 76), 256 << 10, "KVVML");
        let smart = Command::new(0x02, u32::MAX).dword(10, 127 << 16 | 0x02);
        let smart = admin.command(smart, &[], 512);
        assert_eq!((smart.status, smart.data.len()), (0, 512));
    });
}

#[test]
fn reads_what_it_wrote_in_the_capsule_and_by_transfer() {
    each_backend(|address| {
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let queues =
            admin.command(Command::new(0x09, 0).dword(10, 7).dword(11, 0x0003_0003), &[], 0);
        assert_eq!((queues.status, queues.result), (0, 0x0003_0003));
        for (qid, flow_control) in [(1, true), (2, false)] {
            let mut io = io_queue(address, cntlid, qid, flow_control);
            let small: Vec<u8> = (0..4096).map(|i| (i % 253) as u8 ^ qid as u8).collect();
            let write = Command::new(0x01, 1).dword(10, 7);
            assert_eq!(io.command_in_capsule(write, &small).status, 0);
            let large: Vec<u8> = (0..1 << 20).map(|i| (i % 249) as u8).collect();
            let write = Command::new(0x01, 1).dword(10, 100).dword(12, 255);
            assert_eq!(io.command(write, &large, 0).status, 0);
            assert_eq!(io.command(Command::new(0x00, 1), &[], 0).status, 0, "Flush");
            let read = Command::new(0x02, 1).dword(10, 7);
            assert!(io.command(read, &[], 4096).data == small);
            let read = Command::new(0x02, 1).dword(10, 100).dword(12, 255);
            assert!(io.command(read, &[], 1 << 20).data == large);
        }
    });
}

#[test]
fn another_connection_sees_flushed_writes() {
    let address = drive(2, BackendKind::Auto);
    let (mut one, mut two) = (Wire::open(address), Wire::open(address));
    let (first, second) = (one.admin(NQN), two.admin(NQN));
    assert_ne!(first, second, "a controller each");
    let mut writer = io_queue(address, first, 1, true);
    let mut reader = io_queue(address, second, 1, true);
    let block = [0xC5; 4096];
    assert_eq!(writer.command_in_capsule(Command::new(0x01, 1).dword(10, 3), &block).status, 0);
    assert_eq!(writer.command(Command::new(0x00, 1), &[], 0).status, 0);
    assert!(reader.command(Command::new(0x02, 1).dword(10, 3), &[], 4096).data == block);
    drop((one, writer));
    assert!(reader.command(Command::new(0x02, 1).dword(10, 3), &[], 4096).data == block);
}

/// The end of one command's data and the next command in one segment: the drive may use the
/// transfer tag of the first again before it has answered it.
#[test]
fn a_transfer_tag_that_is_used_again_at_once_mixes_nothing_up() {
    let address = drive(1, BackendKind::Auto);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut io = io_queue(address, cntlid, 1, true);
    let blocks = |slba: u32| Command::new(0x01, 1).dword(10, slba).dword(12, 3);
    let contents = |round: u8| vec![round; 4 * 4096];
    let (mut cid, first) = io.capsule_bytes(blocks(0), 4 * 4096);
    io.stream.write_all(&first).unwrap();
    for round in 0..20u8 {
        let mut answered = round == 0;
        let mut tag = None;
        while !answered || tag.is_none() {
            let pdu = io.receive();
            match pdu.header[0] {
                0x09 => tag = Some(u16::from_le_bytes([pdu.header[10], pdu.header[11]])),
                0x05 => answered = true,
                other => panic!("unexpected PDU type {other:#x}"),
            }
        }
        let mut bytes = csd_tests::wire::data_pdu(cid, tag.unwrap(), 0, &contents(round), true);
        let (next, capsule) = io.capsule_bytes(blocks(4 * (u32::from(round) + 1)), 4 * 4096);
        cid = next;
        bytes.extend_from_slice(&capsule);
        io.stream.write_all(&bytes).unwrap();
    }
    let mut reader = io_queue(address, cntlid, 2, true);
    for round in 0..19u8 {
        let read = Command::new(0x02, 1).dword(10, 4 * u32::from(round)).dword(12, 3);
        assert!(reader.command(read, &[], 4 * 4096).data == contents(round), "round {round}");
    }
}

fn kv(opcode: u8, key: &[u8], size: u32, options: u8) -> Command {
    let mut command = Command::new(opcode, 2).dword(10, size);
    command.0[44] = key.len() as u8;
    command.0[45] = options;
    let mut padded = [0; 16];
    padded[..key.len()].copy_from_slice(key);
    command.0[8..16].copy_from_slice(&padded[..8]);
    command.0[56..64].copy_from_slice(&padded[8..]);
    command
}

#[test]
fn stores_and_retrieves_values() {
    each_backend(|address| {
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let mut io = io_queue(address, cntlid, 1, false);
        let value: Vec<u8> = (0..250_000).map(|i| (i % 241) as u8).collect();
        let store = |options| kv(0x01, b"a key of sixteen", value.len() as u32, options);
        assert_eq!(io.command(store(0x01), &value, 0).status, 0x087, "only if it exists");
        assert_eq!(io.command(store(0x02), &value, 0).status, 0, "only if it does not");
        assert_eq!(io.command(store(0x02), &value, 0).status, 0x089, "key exists");
        assert_eq!(io.command_in_capsule(kv(0x01, b"k", 5, 0), b"small").status, 0);
        let whole = io.command(kv(0x02, b"a key of sixteen", 1 << 20, 0), &[], 1 << 20);
        assert_eq!((whole.status, whole.result), (0, 250_000));
        assert!(whole.data == value);
        let part = io.command(kv(0x02, b"a key of sixteen", 1000, 0), &[], 1000);
        assert_eq!((part.status, part.result), (0, 250_000), "the whole size is the result");
        assert!(part.data == value[..1000]);
        let list = io.command(kv(0x06, b"", 4096, 0), &[], 4096).data;
        assert_eq!(u32_at(&list, 0), 2, "number of keys");
        assert_eq!(&list[4..8], &[1, 0, b'k', 0], "length, key, padding");
        assert_eq!(&list[10..26], b"a key of sixteen");
        assert_eq!(io.command(kv(0x14, b"k", 0, 0), &[], 0).status, 0);
        assert_eq!(io.command(kv(0x10, b"k", 0, 0), &[], 0).status, 0);
        assert_eq!(io.command(kv(0x14, b"k", 0, 0), &[], 0).status, 0x087);
        assert_eq!(io.command(kv(0x10, b"k", 0, 0), &[], 0).status, 0, "EDNEK is 0");
        let ednek = Command::new(0x09, 2).dword(10, 0x20).dword(11, 1);
        assert_eq!(admin.command(ednek, &[], 0).status, 0);
        assert_eq!(io.command(kv(0x10, b"k", 0, 0), &[], 0).status, 0x087, "EDNEK is 1");
        assert_eq!(io.command(kv(0x02, b"k", 64, 0), &[], 64).status, 0x087);
        assert_eq!(io.command(kv(0x01, b"", 5, 0), b"value", 0).status, 0x086, "key length 0");
        let empty = io.command(kv(0x01, b"empty", 0, 0), &[], 0);
        assert_eq!(empty.status, 0, "a value of no bytes is legal");
        let read = io.command(kv(0x02, b"empty", 64, 0), &[], 64);
        assert_eq!((read.status, read.result, read.data.len()), (0, 0, 0));
    });
}

#[test]
fn counts_where_the_data_is() {
    each_backend(|address| {
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let mut io = io_queue(address, cntlid, 1, false);
        let elements: Vec<u8> = (0..1000u32).flat_map(|i| (i % 10).to_le_bytes()).collect();
        for chunk in 0..3u32 {
            let mut key = [9u8; 16];
            key[12..].copy_from_slice(&chunk.to_be_bytes());
            let mut store = kv(0x01, &key, 4000, 0);
            store.0[4] = 3;
            assert_eq!(io.command_in_capsule(store, &elements).status, 0);
        }
        let mut payload = vec![0; 96];
        payload[..4].copy_from_slice(b"CSDX");
        payload[4] = 1; // version
        payload[6] = 1; // sources
        payload[8] = 1; // program identifier
        payload[24] = 16; // parameters
        payload[64] = 1; // kv chunks
        payload[68] = 3; // nsid
        payload[72..84].fill(9); // prefix
        payload[88] = 3; // chunks
        payload[92] = 1; // stride
        payload.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]); // i32, equal
        payload.extend_from_slice(&7u64.to_le_bytes());
        let mut execute = Command::new(0x01, 5);
        execute.0[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        let reply = io.command_in_capsule(execute, &payload);
        assert_eq!((reply.status, reply.result), (0, 300), "the answer is dwords 0 and 1");
        // As in Linux's passthrough: dword 4 is zero, only the transfer has the length.
        let reply = io.command_in_capsule(Command::new(0x01, 5), &payload);
        assert_eq!((reply.status, reply.result), (0, 300), "the length of the capsule's data");
        let reply = io.command(Command::new(0x01, 5), &payload, 0);
        assert_eq!((reply.status, reply.result), (0, 300), "the length of the transfer");
        payload[88] = 4;
        let mut execute = Command::new(0x01, 5);
        execute.0[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        let reply = io.command_in_capsule(execute, &payload);
        assert_eq!(reply.status, 0x7C1, "a source is missing");
    });
}

#[test]
fn wrong_commands_get_the_right_status() {
    let address = drive(1, BackendKind::Auto);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    assert_eq!(admin.command(Command::new(0xC7, 0), &[], 0).status, 0x001, "unknown opcode");
    assert_eq!(admin.command(Command::new(0x06, 9).dword(10, 0x03), &[], 4096).status, 0x00B);
    assert_eq!(admin.command(Command::new(0x06, 0).dword(10, 0x01), &[], 512).status, 0x00F);
    let mut io = io_queue(address, cntlid, 1, true);
    assert_eq!(io.command(Command::new(0x55, 1), &[], 0).status, 0x001, "unknown opcode");
    assert_eq!(io.command(Command::new(0x02, 77), &[], 4096).status, 0x00B, "invalid namespace");
    let beyond = Command::new(0x02, 1).dword(10, u32::MAX).dword(11, u32::MAX);
    assert_eq!(io.command(beyond, &[], 4096).status, 0x080, "LBA out of range");
    assert_eq!(io.command(Command::new(0x02, 1), &[], 512).status, 0x00F, "SGL too short");
    let mut fused = Command::new(0x02, 1);
    fused.0[1] |= 3;
    assert_eq!(io.command(fused, &[], 4096).status, 0x002, "the reserved value of FUSE");
    assert_eq!(io.command(Command::new(0x02, 1), &[], 4096).status, 0, "and it goes on");
    let mut stranger = Wire::open(address);
    stranger.initialise();
    assert_eq!(stranger.connect("nqn.2014-08.org.example:no", 0, 0xFFFF, true).status, 0x182);
    let mut early = Wire::open(address);
    early.initialise();
    let status = early.command(Command::new(0x06, 0).dword(10, 1), &[], 4096).status;
    assert_eq!(status, 0x00C, "Identify before Connect");
    let mut orphan = Wire::open(address);
    orphan.initialise();
    assert_eq!(orphan.connect(NQN, 1, 4000, true).status, 0x182, "no such controller");
}

#[test]
fn malformed_pdus_are_told_and_the_drive_lives_on() {
    let address = drive(1, BackendKind::Auto);
    let mut reserved = Wire::open(address);
    reserved.stream.write_all(&[0x0A, 0, 24, 0, 24, 0, 0, 0]).unwrap();
    let term = reserved.receive();
    assert_eq!((term.header[0], term.header[8]), (0x03, 0x01), "C2HTermReq, invalid field");
    let mut rest = Vec::new();
    reserved.stream.read_to_end(&mut rest).expect("the drive closes");
    assert!(rest.is_empty());
    let mut early = Wire::open(address);
    early.send_capsule(&Command::new(0x06, 0), &[]);
    let term = early.receive();
    assert_eq!((term.header[0], term.header[8]), (0x03, 0x02), "PDU sequence error");
    let mut lying = Wire::open(address);
    lying.initialise();
    lying.stream.write_all(&[0x04, 0, 72, 72, 0xFF, 0xFF, 0xFF, 0x7F]).unwrap();
    lying.stream.write_all(&[0; 64]).unwrap();
    let term = lying.receive();
    assert_eq!((term.header[0], term.header[8]), (0x03, 0x05), "more data than IOCCSZ");
    for noise in [&[0xFF; 64][..], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stranger = Wire::open(address);
        stranger.stream.write_all(noise).unwrap();
        assert_eq!(stranger.receive().header[0], 0x03);
    }
    // Half a header, and gone.
    let half = Wire::open(address);
    (&half.stream).write_all(&[0x00, 0]).unwrap();
    drop(half);
    let mut admin = Wire::open(address);
    assert!(admin.admin(NQN) > 0, "the drive serves the next host");
}

#[test]
fn a_stream_cut_at_every_byte_is_the_same_stream() {
    let address = drive(1, BackendKind::Auto);
    let mut admin = Wire::open(address);
    admin.admin(NQN);
    let mut identify = Command::new(0x06, 0).dword(10, 1).byte(2, 99);
    identify.0[32..36].copy_from_slice(&4096u32.to_le_bytes());
    identify.0[39] = 0x5A;
    let mut pdu = vec![0x04, 0, 72, 0, 72, 0, 0, 0];
    pdu.extend_from_slice(&identify.0);
    for byte in &pdu {
        admin.stream.write_all(&[*byte]).unwrap();
    }
    let data = admin.receive();
    assert_eq!((data.header[0], data.data.len()), (0x07, 4096));
    assert_eq!(admin.receive().header[0], 0x05, "with flow control a response follows");
}
