//! The whole life of a program: load, activate, copy data to memory, set a range, execute, read the
//! result, delete the set, deactivate, unload.

use std::path::Path;

use csd_tests::wire::Command;

use crate::host::{Host, INDEX, descriptor};

fn example(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/built");
    std::fs::read(folder.join(name).with_extension("wasm")).unwrap()
}

fn numbers(count: i32) -> Vec<u8> {
    (0..count).flat_map(|i| i.wrapping_mul(2_654_435).wrapping_sub(500_000).to_le_bytes()).collect()
}

#[test]
fn blocks_are_filtered_in_the_drive() {
    let mut host = Host::new();
    let data = numbers(300 * 1024);
    let blocks = data.len() / 4096;
    let write = Command::new(0x01, 1).dword(10, 1000).dword(12, blocks as u32 - 1);
    assert_eq!(host.io.command(write, &data, 0).status, 0, "Write");

    assert_eq!(host.load(INDEX, &example("rust-filter")), 0, "Load Program");
    assert_eq!(host.activate(INDEX, true), 0, "Program Activation Management");
    let mut source = [0u8; 32];
    source[0] = 1;
    source[8..10].copy_from_slice(&1000u16.to_le_bytes());
    source[16..18].copy_from_slice(&(blocks as u16 - 1).to_le_bytes());
    let copy = Command::new(0x01, 4).dword(2, data.len() as u32).dword(12, 2 << 8);
    assert_eq!(host.io.command(copy, &source, 0).status, 0, "Memory Copy");
    let ranges = [descriptor(0, data.len() as u32), descriptor(8 << 20, data.len() as u32)];
    let create = Command::new(0x89, 5).dword(11, 2);
    let created = host.admin.command_in_capsule(create, &ranges.concat());
    assert_eq!(created.status, 0, "Memory Range Set Management");
    let rsid = created.result as u32;
    let bound = 1_000_000_000i32;
    let execute = Command::new(0x01, 5).dword(2, INDEX | rsid << 16).dword(4, 4).dword(10, 2);
    let done = host.io.command_in_capsule(execute, &bound.to_le_bytes());
    let expected: Vec<u8> = data
        .as_chunks::<4>()
        .0
        .iter()
        .filter(|four| i32::from_le_bytes(**four) > bound)
        .flatten()
        .copied()
        .collect();
    assert_eq!((done.status, done.result), (0, expected.len() as u64 / 4), "Execute Program");
    assert!(!expected.is_empty() && host.read(8 << 20, expected.len()) == expected, "Memory Read");
    let delete = Command::new(0x89, 5).dword(10, rsid << 16 | 1);
    assert_eq!(host.admin.command(delete, &[], 0).status, 0);
    assert_eq!(host.activate(INDEX, false), 0);
    assert_eq!(host.unload(INDEX), 0);
    assert_eq!(host.said(), "");
}

#[test]
fn a_program_reads_blocks_by_our_payload_too() {
    let mut host = Host::new();
    let data = numbers(2 << 20);
    for (index, part) in data.chunks(1 << 20).enumerate() {
        let lba = index as u32 * 256;
        let write = Command::new(0x01, 1).dword(10, lba).dword(12, part.len() as u32 / 4096 - 1);
        assert_eq!(host.io.command(write, part, 0).status, 0);
    }
    assert_eq!(host.load(INDEX, &example("rust-crc")), 0);
    assert_eq!(host.activate(INDEX, true), 0);
    // A header, and one source of blocks that begins and ends within blocks.
    let mut payload = [&b"CSDX\x01\0\x01\0\x07\0\0\0\0\0\0\0"[..], &[0; 48 + 32]].concat();
    (payload[64], payload[68], payload[72], payload[84]) = (2, 1, 3, 100);
    let length = data.len() - 3 * 4096 - 200;
    payload[88..92].copy_from_slice(&(length as u32).to_le_bytes());
    let execute = Command::new(0x01, 5).dword(2, INDEX).dword(4, payload.len() as u32);
    let done = host.io.command_in_capsule(execute, &payload);
    let expected = crc32c::crc32c(&data[3 * 4096 + 100..][..length]);
    assert_eq!((done.status, done.result), (0, expected.into()));
}

#[test]
fn programs_run_side_by_side_and_in_turns() {
    let mut host = Host::new();
    let data = numbers(1 << 20);
    for part in 0..4 {
        host.write(part << 20, &data[(part as usize) << 20..][..1 << 20]);
    }
    let names = ["rust-crc", "c-crc", "rust-histogram", "c-histogram", "rust-count"];
    for (index, name) in (INDEX..).zip(names) {
        assert_eq!(host.load(index, &example(name)), 0, "{name}");
        assert_eq!(host.activate(index, true), 0);
    }
    // All at once, on one queue, again and again.
    let mut waiting = Vec::new();
    for round in 0..20u32 {
        let which = round % 5;
        let ranges = [descriptor(0, 4 << 20), descriptor((8 + u64::from(round)) << 20, 4096)];
        let data = [&ranges.concat()[..], &[0, 0, 0, 0]].concat();
        let command = Command::new(0x01, 5).dword(2, INDEX + which).dword(3, 2);
        let command = command.dword(4, data.len() as u32).dword(10, 2);
        waiting.push((host.io.post(command, &data), which));
    }
    let crc = u64::from(crc32c::crc32c(&data));
    for _ in 0..20 {
        let (cid, status, low) = host.io.response();
        let which = waiting.iter().find(|(waits, _)| *waits == cid).unwrap().1;
        let zeros = data.as_chunks::<4>().0.iter().filter(|four| **four == [0; 4]).count();
        let expected = [crc, crc, 4 << 20, 4 << 20, zeros as u64][which as usize];
        assert_eq!((status, u64::from(low)), (0, expected), "{}", names[which as usize]);
    }
}
