//! Commands of the kv namespaces that are refused: values that are too long, wrong namespaces, and
//! options that a command does not have.

use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Wire};

use crate::{NQN, drive, each_backend, io_queue, kv, u32_at};

const STORE: u8 = 0x01;
const RETRIEVE: u8 = 0x02;
const LIST: u8 = 0x06;
const DELETE: u8 = 0x10;
const EXIST: u8 = 0x14;
const STORE_NEWER: u8 = 0x81;

#[test]
fn a_value_longer_than_kvvml_is_refused_and_not_stored() {
    each_backend(|address| {
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let identify = Command::new(0x06, 2).dword(10, 0x05).dword(11, 1 << 24);
        let most = u32_at(&admin.command(identify, &[], 4096).data, 76);
        let mut io = io_queue(address, cntlid, 1, false);
        let value = vec![7; most as usize + 1];
        for opcode in [STORE, STORE_NEWER] {
            let long = io.command(kv(opcode, b"long", most + 1, 0), &value, 0);
            assert_eq!(long.status, 0x085, "Invalid Value Size: {opcode:#x}");
            assert_eq!(io.command(kv(EXIST, b"long", 0, 0), &[], 0).status, 0x087);
        }
        // What was there before stays, also when the length is the greatest that the field holds.
        assert_eq!(io.command_in_capsule(kv(STORE, b"long", 5, 0), b"short").status, 0);
        let long = io.command(kv(STORE, b"long", most + 1, 0), &value, 0);
        assert_eq!(long.status, 0x085);
        let longest = io.command_in_capsule(kv(STORE, b"long", u32::MAX, 0), b"short");
        assert_eq!(longest.status, 0x085);
        let found = io.command(kv(RETRIEVE, b"long", 64, 0), &[], 64);
        assert_eq!((found.status, found.result, &found.data[..]), (0, 5, &b"short"[..]));
        let value = &value[1..];
        assert_eq!(io.command(kv(STORE, b"long", most, 0), value, 0).status, 0, "KVVML itself");
        let found = io.command(kv(RETRIEVE, b"long", most, 0), &[], most as usize);
        assert!(found.data == value);
    });
}

/// Returns a kv command for another namespace.
fn with_nsid(mut command: Command, nsid: u32) -> Command {
    command.0[4..8].copy_from_slice(&nsid.to_le_bytes());
    command
}

#[test]
fn kv_commands_are_for_kv_namespaces_alone() {
    let address = drive(2, BackendKind::Auto);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut io = io_queue(address, cntlid, 1, false);
    assert_eq!(io.command_in_capsule(kv(STORE, b"key", 5, 0), b"value").status, 0);
    for nsid in [0, 6, 77, u32::MAX - 1, u32::MAX] {
        let store = with_nsid(kv(STORE, b"key", 5, 0), nsid);
        assert_eq!(io.command_in_capsule(store, b"other").status, 0x00B, "Store of {nsid:#x}");
        for opcode in [RETRIEVE, LIST, DELETE, EXIST] {
            let size = if matches!(opcode, RETRIEVE | LIST) { 64 } else { 0 };
            let command = with_nsid(kv(opcode, b"key", size, 0), nsid);
            let status = io.command(command, &[], size as usize).status;
            assert_eq!(status, 0x00B, "Invalid Namespace: {opcode:#x} of {nsid:#x}");
        }
    }
    // Opcodes that the NVM command set does not have. It has 01h and 02h: Write and Read.
    for opcode in [LIST, EXIST, STORE_NEWER] {
        let command = with_nsid(kv(opcode, b"key", 0, 0), 1);
        assert_eq!(io.command(command, &[], 0).status, 0x001, "Invalid Opcode: {opcode:#x}");
    }
    let found = io.command(kv(RETRIEVE, b"key", 64, 0), &[], 64);
    assert_eq!((found.status, &found.data[..]), (0, &b"value"[..]), "nothing was changed");
}

#[test]
fn options_that_a_command_does_not_have_are_refused() {
    let address = drive(1, BackendKind::Auto);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    let mut io = io_queue(address, cntlid, 1, false);
    assert_eq!(io.command_in_capsule(kv(STORE, b"key", 5, 0), b"value").status, 0);
    let both = io.command_in_capsule(kv(STORE, b"key", 5, 0x03), b"other");
    assert_eq!(both.status, 0x002, "only if it exists, and only if it does not");
    for bit in 0..8u8 {
        if bit > 2 {
            let store = io.command_in_capsule(kv(STORE, b"key", 5, 1 << bit), b"other");
            assert_eq!(store.status, 0x002, "Store, bit {bit}");
        }
        for opcode in [RETRIEVE, LIST, DELETE, EXIST] {
            let size = if matches!(opcode, RETRIEVE | LIST) { 64 } else { 0 };
            let reply = io.command(kv(opcode, b"key", size, 1 << bit), &[], size as usize);
            // Retrieve has one: the value as it is stored.
            let expected = if (opcode, bit) == (RETRIEVE, 0) { 0 } else { 0x002 };
            assert_eq!(reply.status, expected, "{opcode:#x}, bit {bit}");
        }
    }
    let found = io.command(kv(RETRIEVE, b"key", 64, 0), &[], 64);
    assert_eq!((found.status, &found.data[..]), (0, &b"value"[..]), "nothing was changed");
    // No compression of the value, which changes nothing.
    assert_eq!(io.command_in_capsule(kv(STORE, b"key", 5, 0x04), b"other").status, 0);
}
