//! Limits of the kv namespaces in Identify: NSZE, NUSE and MNKS of two namespaces that share their
//! room and the memory for keys.

use csd_drive::{Config, MediaKind, Resources};
use csd_kvlog::IndexKind;
use csd_tests::wire::{Command, Wire};

use crate::{NQN, config, io_queue, kv, serve, u32_at, u64_at};

/// Returns NSZE, NUSE and MNKS.
fn limits(admin: &mut Wire, nsid: u32) -> (u64, u64, u32) {
    let identify = Command::new(0x06, nsid).dword(10, 0x05).dword(11, 1 << 24);
    let data = admin.command(identify, &[], 4096).data;
    (u64_at(&data, 0), u64_at(&data, 16), u32_at(&data, 80))
}

#[test]
fn a_namespace_announces_what_it_has_and_what_is_left_for_both() {
    for (kv_index, key_bytes) in [(IndexKind::Hash, 32), (IndexKind::Ordered, 64)] {
        let index_memory_bytes = Some(4 * 64);
        let resources = Resources { kv_index, index_memory_bytes, ..Resources::default() };
        let address = serve(Config { resources, ..config() });
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let mut io = io_queue(address, cntlid, 1, false);
        let most = 4 * 64 / key_bytes;
        let (bytes, ..) = limits(&mut admin, 2);
        assert_eq!(limits(&mut admin, 2), (bytes, 0, most));
        assert_eq!(limits(&mut admin, 3), (bytes, 0, 4));
        // A record takes 64 bytes and its value, in units of 64, and 32 bytes in a checkpoint.
        assert_eq!(io.command_in_capsule(kv(0x01, b"0", 5, 0), b"small").status, 0);
        assert_eq!(limits(&mut admin, 2), (bytes, 160, most));
        let left = u64::from(4 * 64 - key_bytes) / 64;
        assert_eq!(limits(&mut admin, 3), (bytes - 160, 0, left as u32));
        for number in 1..most {
            let store = kv(0x01, &[b'0' + number as u8], 5, 0);
            assert_eq!(io.command_in_capsule(store, b"small").status, 0, "{number}");
        }
        assert_eq!(io.command_in_capsule(kv(0x01, b"more", 5, 0), b"small").status, 0x081);
        assert_eq!(io.command_in_capsule(kv(0x01, b"0", 6, 0), b"second").status, 0);
        assert_eq!(io.command(kv(0x10, b"0", 0, 0), &[], 0).status, 0);
        assert_eq!(io.command_in_capsule(kv(0x01, b"more", 5, 0), b"small").status, 0);
    }
}

#[test]
fn without_a_limit_of_memory_there_is_none_of_keys() {
    let mut admin = Wire::open(serve(config()));
    admin.admin(NQN);
    assert_eq!(limits(&mut admin, 2).2, 0);
}

/// Returns NSFEAT of the structure that all command sets share (CNS 08h).
fn features(admin: &mut Wire, nsid: u32) -> u8 {
    admin.command(Command::new(0x06, nsid).dword(10, 0x08), &[], 4096).data[0]
}

#[test]
fn a_namespace_says_if_its_changes_are_durable_when_they_are_answered() {
    for volatile_cache in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let media = MediaKind::File(folder.path().join("medium"));
        let resources = Resources { volatile_cache, ..Resources::default() };
        let address = serve(Config { media, size_bytes: 128 << 20, resources, ..config() });
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let not_present = |present: bool| if present { 0 } else { 1 << 5 };
        let expected = [not_present(true), not_present(volatile_cache), not_present(false)];
        let found = [1, 2, 3].map(|nsid| features(&mut admin, nsid));
        assert_eq!(found, expected, "--volatile-cache {volatile_cache}");
        let mut io = io_queue(address, cntlid, 1, false);
        assert_eq!(io.command_in_capsule(kv(0x01, b"key", 5, 0), b"value").status, 0);
        for nsid in [1, 2, 3, u32::MAX] {
            assert_eq!(io.command(Command::new(0x00, nsid), &[], 0).status, 0, "Flush of {nsid}");
        }
    }
}
