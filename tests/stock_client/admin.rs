//! Admin commands that hosts use beyond connecting: events, abort, logs, features, several
//! controllers, disconnecting.

use std::io::Read;
use std::path::Path;

use csd_drive::MediaKind;
use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Reply, Wire};

use crate::{NQN, drive, drive_on, io_queue, u32_at, u64_at};

fn log(admin: &mut Wire, id: u32, retain: bool, bytes: usize) -> Reply {
    let dwords = bytes as u32 / 4 - 1;
    let retain = u32::from(retain) << 15;
    admin.command(Command::new(0x02, u32::MAX).dword(10, dwords << 16 | retain | id), &[], bytes)
}

fn set(admin: &mut Wire, nsid: u32, id: u32, value: u32) -> u16 {
    admin.command(Command::new(0x09, nsid).dword(10, id).dword(11, value), &[], 0).status
}

fn get(admin: &mut Wire, nsid: u32, id: u32, select: u32) -> Reply {
    admin.command(Command::new(0x0A, nsid).dword(10, select << 8 | id), &[], 0)
}

fn abort(admin: &mut Wire, sqid: u16, cid: u16) -> u16 {
    admin.post(Command::new(0x08, 0).dword(10, u32::from(cid) << 16 | u32::from(sqid)), &[])
}

#[test]
fn a_changed_namespace_is_told_to_the_other_hosts_once() {
    let address = drive(2, BackendKind::Auto);
    let (mut one, mut two) = (Wire::open(address), Wire::open(address));
    one.admin(NQN);
    two.admin(NQN);
    assert_eq!(set(&mut two, 0, 0x0B, 1 << 8), 0, "namespace notices on");
    let request = two.post(Command::new(0x0C, 0), &[]);
    assert_eq!(set(&mut one, 1, 0x84, 1), 0, "write protection changes an attribute");
    assert_eq!(two.response(), (request, 0, 0x0004_0002), "notice, attribute changed, log 04h");
    let request = two.post(Command::new(0x0C, 0), &[]);
    assert_eq!(set(&mut one, 2, 0x84, 1), 0, "another one, while the log is not read");
    // The event crosses cores: it comes soon, but not with the answer to the host that caused it.
    let listed = |two: &mut Wire| {
        let list = log(two, 4, true, 4096).data;
        [u32_at(&list, 0), u32_at(&list, 4), u32_at(&list, 8)]
    };
    assert!((0..10_000).any(|_| listed(&mut two) == [1, 2, 0]));
    let list = log(&mut two, 4, false, 4096).data;
    assert_eq!([u32_at(&list, 0), u32_at(&list, 4)], [1, 2], "retained");
    assert_eq!(u32_at(&log(&mut two, 4, false, 4096).data, 0), 0, "and gone when read");
    assert_eq!(set(&mut one, 1, 0x84, 0), 0);
    let (cid, status, _) = two.response();
    assert_eq!((cid, status), (request, 0));
    assert_eq!(set(&mut two, 0, 0x0B, 0), 0, "off");
    log(&mut two, 4, false, 4096);
    two.post(Command::new(0x0C, 0), &[]);
    assert_eq!(set(&mut one, 1, 0x84, 1), 0);
    assert_eq!(two.property(0x1C, false) & 1, 1, "nothing comes before this answer");
}

#[test]
fn abort_gives_a_held_request_back_and_is_honest_of_others() {
    let address = drive(1, BackendKind::Auto);
    let mut admin = Wire::open(address);
    admin.admin(NQN);
    let held: Vec<u16> = (0..4).map(|_| admin.post(Command::new(0x0C, 0), &[])).collect();
    let fifth = admin.post(Command::new(0x0C, 0), &[]);
    assert_eq!(admin.response(), (fifth, 0x105, 0), "AERL");
    let asked = abort(&mut admin, 0, held[2]);
    assert_eq!(admin.response(), (held[2], 0x007, 0), "abort requested");
    assert_eq!(admin.response(), (asked, 0, 0), "bit 0 clear: aborted");
    for (sqid, cid) in [(0, held[2]), (0, 999), (1, held[0]), (77, held[0])] {
        let asked = abort(&mut admin, sqid, cid);
        assert_eq!(admin.response(), (asked, 0, 1), "bit 0 set: not aborted");
    }
    let again = admin.post(Command::new(0x0C, 0), &[]);
    let asked = abort(&mut admin, 0, again);
    assert_eq!((admin.response().0, admin.response().0), (again, asked), "room for one again");
}

#[test]
fn a_reset_ends_held_requests_and_leaves_the_queue_usable() {
    let mut admin = Wire::open(drive(1, BackendKind::Auto));
    admin.admin(NQN);
    let held: Vec<u16> = (0..4).map(|_| admin.post(Command::new(0x0C, 0), &[])).collect();
    let configure = |value| Command::new(0x7F, 0).dword(11, 0x14).dword(12, value);
    let reset = admin.post(configure(0), &[]);
    for request in held {
        assert_eq!(admin.response(), (request, 0x007, 0), "abort requested");
    }
    assert_eq!(admin.response(), (reset, 0, 0));
    assert_eq!(admin.property(0x1C, false) & 1, 0, "CSTS.RDY");
    assert_eq!(admin.command(configure(0x0046_0061), &[], 0).status, 0);
    let again: Vec<u16> = (0..4).map(|_| admin.post(Command::new(0x0C, 0), &[])).collect();
    let asked = abort(&mut admin, 0, again[3]);
    assert_eq!(admin.response(), (again[3], 0x007, 0), "all four are held again");
    assert_eq!(admin.response(), (asked, 0, 0));
}

#[test]
fn the_error_log_names_recent_failures_newest_first() {
    let address = drive(2, BackendKind::Auto);
    let (mut admin, mut other) = (Wire::open(address), Wire::open(address));
    let cntlid = admin.admin(NQN);
    other.admin(NQN);
    let mut io = io_queue(address, cntlid, 1, true);
    assert_eq!(u64_at(&log(&mut admin, 1, false, 64).data, 0), 0, "no error yet");
    assert_eq!(admin.command(Command::new(0xC7, 0), &[], 0).status, 0x001);
    for _ in 0..70 {
        let beyond = Command::new(0x02, 1).dword(10, 0x1234).dword(11, 0x55);
        assert_eq!(io.command(beyond, &[], 4096).status, 0x080);
    }
    let entries = log(&mut admin, 1, false, 64 * 64).data;
    assert_eq!((u64_at(&entries, 0), u64_at(&entries, 63 * 64)), (71, 8), "the last 64");
    assert_eq!(u32_at(&entries, 8) & 0xFFFF, 1, "SQID");
    assert_eq!(u32_at(&entries, 12) >> 1 & 0x7FF, 0x080, "status");
    assert_eq!((u64_at(&entries, 16), u32_at(&entries, 24)), (0x55_0000_1234, 1), "LBA, NSID");
    assert_eq!(entries[29], 3, "TCP");
    assert!(entries[30..64].iter().all(|byte| *byte == 0), "reserved in version 2.0");
    assert_eq!(u64_at(&log(&mut admin, 2, false, 512).data, 176), 71, "SMART counts them");
    assert_eq!(u64_at(&log(&mut other, 1, false, 64).data, 0), 0, "of this controller alone");
    assert_eq!(log(&mut admin, 0x0D, false, 64).status, 0x109, "a log that is not there");
    assert_eq!(u64_at(&log(&mut admin, 1, false, 64).data, 16), 0, "Get Log Page has no LBA");
    let exist = Command::new(0x14, 2).dword(10, 7).dword(11, 0x11);
    assert_eq!(io.command(exist, &[], 0).status, 0x002, "a key of 17 bytes");
    assert_eq!(u64_at(&log(&mut admin, 1, false, 64).data, 16), 0, "nor has a key");
}

#[test]
fn the_logs_say_what_is_supported() {
    let address = drive(1, BackendKind::Auto);
    let mut admin = Wire::open(address);
    admin.admin(NQN);
    let supported = log(&mut admin, 0, false, 1024).data;
    let ids: Vec<usize> = (0..256).filter(|id| supported[id * 4] & 1 == 1).collect();
    let vendors = [0xC0, 0xC1, 0xC3, 0xC4];
    let standard = [0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x12, 0x82, 0x83, 0x84];
    assert_eq!(ids, [&standard[..], &vendors].concat());
    let features = log(&mut admin, 0x12, false, 1024).data;
    for id in 0..=255u32 {
        let listed = features[id as usize * 4] & 1 == 1;
        let nsid = if id == 0x20 { 2 } else { u32::from(id == 0x84) };
        let status = admin.command(Command::new(0x0A, nsid).dword(10, id), &[], 4096).status;
        assert_eq!(status == 0, listed, "feature {id:#x}: {status:#x}");
    }
    let scope = |id: usize| u32_at(&features, id * 4) >> 20;
    assert_eq!((scope(0x07), scope(0x20), scope(0x84)), (2, 1, 1), "controller, namespace");
    let identity = admin.command(Command::new(0x06, 0).dword(10, 1), &[], 4096).data;
    assert_eq!(identity[76] & 8, 0, "CMIC: no asymmetric access");
    assert_eq!((u32_at(&identity, 92), u32_at(&identity, 1804) & 1), (1 << 8, 1), "OAES, OFCS");
    let smart = Command::new(0x02, 1).dword(10, 127 << 16 | 2);
    assert_eq!(admin.command(smart, &[], 512).status, 0x002, "no health of a single namespace");
}

#[test]
fn identify_knows_its_structures_and_no_others() {
    let address = drive(1, BackendKind::Auto);
    let (mut admin, mut second) = (Wire::open(address), Wire::open(address));
    let ids = [admin.admin(NQN), second.admin(NQN)].map(u32::from);
    let identify = |admin: &mut Wire, nsid, cns, dword11| {
        admin.command(Command::new(0x06, nsid).dword(10, cns).dword(11, dword11), &[], 4096)
    };
    let active = identify(&mut admin, 0, 0x02, 0).data;
    assert!(identify(&mut admin, 0, 0x10, 0).data == active, "allocated is active");
    assert_eq!(u32_at(&identify(&mut admin, 2, 0x02, 0).data, 0), 3, "ids above NSID");
    let kv = identify(&mut admin, 0, 0x07, 1 << 24).data;
    assert_eq!([0, 4, 8].map(|at| u32_at(&kv, at)), [2, 3, 0], "of the kv command set");
    let namespace = identify(&mut admin, 1, 0x00, 0).data;
    assert!(identify(&mut admin, 1, 0x11, 0).data == namespace);
    for (cns, nsid) in [(0x13, 0), (0x12, 1)] {
        let list = identify(&mut admin, nsid, cns, 0).data;
        assert_eq!(u32_at(&list, 0), ids[0] << 16 | 2, "two controllers, the first");
        let rest = identify(&mut admin, nsid, ids[1] << 16 | cns, 0).data;
        assert_eq!(u32_at(&rest, 0), ids[1] << 16 | 1, "from an id on");
    }
    let sets = identify(&mut admin, 0, 0xFFFF_001C, 0).data;
    assert_eq!((u64_at(&sets, 0), u64_at(&sets, 8)), (0b1_1011, 0), "NVM, KV, SLM, CP together");
    assert_eq!(identify(&mut admin, 1, 0x05, 1 << 24).status, 0x002, "the wrong command set");
    for nsid in [0, 6, 0xFFFF_FFFE, 0xFFFF_FFFF] {
        assert_eq!(identify(&mut admin, nsid, 0x00, 0).status, 0x00B, "nsid {nsid:#x}");
    }
    for cns in [0x04, 0x14, 0x15, 0x16, 0x17, 0x18, 0x20, 0xFF] {
        assert_eq!(identify(&mut admin, 1, cns, 0).status, 0x002, "CNS {cns:#x}");
    }
}

#[test]
fn queues_are_agreed_before_there_are_any() {
    let address = drive(1, BackendKind::Auto);
    let mut admin = Wire::open(address);
    let cntlid = admin.admin(NQN);
    assert_eq!(set(&mut admin, 0, 7, 0x0001_0001), 0);
    let mut io = io_queue(address, cntlid, 1, true);
    assert_eq!(set(&mut admin, 0, 7, 0x0001_0001), 0x00C, "command sequence error");
    assert_eq!(get(&mut admin, 0, 7, 0).result, 0x0001_0001);
    // Disconnect: answered, then the connection closes, and the queue may be created again.
    let wrong = Command::new(0x7F, 0).byte(4, 0x08).byte(40, 1);
    assert_eq!(io.command(wrong, &[], 0).status, 0x180, "record format");
    let property = Command::new(0x7F, 0).byte(4, 0x04);
    assert_eq!(io.command(property, &[], 0).status, 0x185, "invalid queue type");
    assert_eq!(io.command(Command::new(0x7F, 0).byte(4, 0x08), &[], 0).status, 0);
    let mut rest = Vec::new();
    io.stream.read_to_end(&mut rest).expect("the drive closes");
    assert!(rest.is_empty());
    let mut again = io_queue(address, cntlid, 1, true);
    assert_eq!(again.command(Command::new(0x00, 1), &[], 0).status, 0);
    let disconnect = Command::new(0x7F, 0).byte(4, 0x08);
    assert_eq!(admin.command(disconnect, &[], 0).status, 0x185, "not the admin queue");
}

#[test]
fn a_temperature_beyond_a_threshold_is_a_warning_and_one_event_a_crossing() {
    let mut admin = Wire::open(drive(1, BackendKind::Auto));
    admin.admin(NQN);
    let smart = |admin: &mut Wire| log(admin, 2, false, 512).data;
    let data = smart(&mut admin);
    let kelvin = u32_at(&data, 1) & 0xFFFF;
    assert_eq!(data[0] & 2, 0, "not at first");
    assert_eq!(set(&mut admin, 0, 0x0B, 1 << 1), 0, "temperature events on");
    const UNDER: u32 = 1 << 20;
    for (beyond, within) in [(kelvin, kelvin + 1), (UNDER | kelvin, UNDER | (kelvin - 1))] {
        for _ in 0..2 {
            let request = admin.post(Command::new(0x0C, 0), &[]);
            let crossed = admin.post(Command::new(0x09, 0).dword(10, 4).dword(11, beyond), &[]);
            assert_eq!(admin.response(), (crossed, 0, 0));
            assert_eq!(admin.response(), (request, 0, 0x0002_0101), "SMART, temperature, log 02h");
            assert_eq!(smart(&mut admin)[0] & 2, 2, "critical warning");
            let request = admin.post(Command::new(0x0C, 0), &[]);
            assert_eq!(set(&mut admin, 0, 4, beyond), 0, "again: no crossing, and no event");
            assert_eq!(set(&mut admin, 0, 4, within), 0);
            assert_eq!(smart(&mut admin)[0] & 2, 0);
            let asked = abort(&mut admin, 0, request);
            assert_eq!(admin.response().0, request);
            assert_eq!(admin.response(), (asked, 0, 0), "it was still held");
        }
    }
    for (named, status) in [(1 << 16, 0x002), (0xF << 16 | 400, 0), (2 << 20, 0x002)] {
        assert_eq!(set(&mut admin, 0, 4, named), status, "{named:#x}");
    }
    let get = |admin: &mut Wire, named| {
        let reply = admin.command(Command::new(0x0A, 0).dword(10, 4).dword(11, named), &[], 0);
        (reply.status, reply.result)
    };
    assert_eq!(get(&mut admin, 0), (0, 400));
    assert_eq!(get(&mut admin, UNDER), (0, u64::from(kelvin - 1)));
    assert_eq!(get(&mut admin, 1 << 16).0, 0x002, "there are no sensors");
}

#[test]
fn errors_of_deallocated_blocks_cannot_be_asked_for() {
    let mut admin = Wire::open(drive(1, BackendKind::Epoll));
    admin.admin(NQN);
    let block = admin.command(Command::new(0x06, 1).dword(10, 0), &[], 4096).data;
    assert_eq!(block[24] & 4, 0, "NSFEAT bit 2");
    assert_eq!(set(&mut admin, 1, 5, 1 << 16 | 10), 0x002, "DULBE");
    assert_eq!((set(&mut admin, 1, 5, 10), get(&mut admin, 1, 5, 0).result), (0, 10));
}

#[test]
fn saved_features_outlive_the_drive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.img");
    let life = |path: &Path| drive_on(MediaKind::File(path.into()), 4096, 1, BackendKind::Epoll);
    let mut admin = Wire::open(life(&path));
    admin.admin(NQN);
    assert_eq!(get(&mut admin, 0, 4, 3).result & 1, 1, "saveable");
    assert_eq!(set(&mut admin, 0, 1 << 31 | 4, 350), 0, "temperature threshold, saved");
    assert_eq!(set(&mut admin, 0, 4, 351), 0, "and changed, not saved");
    assert_eq!([0, 1, 2].map(|select| get(&mut admin, 0, 4, select).result), [351, 343, 350]);
    assert_eq!(set(&mut admin, 3, 1 << 31 | 0x20, 1), 0, "EDNEK of namespace 3");
    assert_eq!(set(&mut admin, 0, 1 << 31 | 7, 0), 0x10D, "not saveable");
    assert_eq!((set(&mut admin, 1, 0x84, 1), set(&mut admin, 2, 0x84, 2)), (0, 0));
    // The first drive does not end, and has a medium of its own: the second opens a copy of the
    // durable data.
    let copy = folder.path().join("copy.img");
    std::fs::copy(&path, &copy).unwrap();
    let mut admin = Wire::open(life(&copy));
    let cntlid = admin.admin(NQN);
    assert_eq!([0, 1, 2].map(|select| get(&mut admin, 0, 4, select).result), [350, 343, 350]);
    assert_eq!([2, 3].map(|nsid| get(&mut admin, nsid, 0x20, 0).result), [0, 1]);
    let protected = [1, 2].map(|nsid| get(&mut admin, nsid, 0x84, 0).result);
    assert_eq!(protected, [1, 0], "until power cycle has passed");
    let mut io = io_queue(admin.stream.peer_addr().unwrap(), cntlid, 1, true);
    assert_eq!(io.command_in_capsule(Command::new(0x01, 1), &[1; 4096]).status, 0x020);
}

/// Feature C1h and log pages C3h and C4h, as `docs/internals/contracts.md` describes them.
#[test]
fn services_take_orders_by_name_and_refuse_what_they_do_not_know() {
    let address = drive(2, BackendKind::Auto);
    let mut admin = Wire::open(address);
    admin.admin(NQN);
    let order = |name: &[u8], setting: u8, value: u64| {
        let mut data = [0; 64];
        (data[0], data[2]) = (1, setting);
        data[8..8 + name.len()].copy_from_slice(name);
        data[24..32].copy_from_slice(&value.to_le_bytes());
        data
    };
    let give = |admin: &mut Wire, data: &[u8]| {
        admin.command(Command::new(0x09, 0).dword(10, 0xC1), data, 0).status
    };
    assert_eq!(give(&mut admin, &order(b"scrub", 3, 1 << 20)), 0, "rate");
    assert_eq!(give(&mut admin, &order(b"scrub", 4, 25)), 0, "share");
    assert_eq!(give(&mut admin, &order(b"clean", 1, 0)), 0, "pause");
    for wrong in [order(b"peers", 1, 0), order(b"scrub", 4, 0), order(b"scrub", 5, 1)] {
        assert_eq!(give(&mut admin, &wrong), 0x002, "{wrong:?}");
    }
    assert_ne!(give(&mut admin, &order(b"scrub", 1, 0)[..60]), 0, "cut short");
    let page = log(&mut admin, 0xC3, false, 64 + 3 * 512).data;
    assert_eq!((page[0], u32_at(&page, 0) >> 16, u32_at(&page, 4)), (1, 512, 3));
    let entry = |index: usize| &page[64 + index * 512..][..512];
    assert_eq!((&entry(0)[..6], entry(0)[16], entry(0)[18]), (&b"clean\0"[..], 2, 100));
    assert_eq!((&entry(1)[..11], entry(1)[16]), (&b"checkpoint\0"[..], 1));
    assert_eq!((&entry(2)[..6], entry(2)[16], entry(2)[18]), (&b"scrub\0"[..], 2, 25));
    assert_eq!(u64_at(entry(2), 24), 1 << 20);
    assert_eq!(give(&mut admin, &order(b"clean", 2, 0)), 0, "resume");
    let decisions = log(&mut admin, 0xC4, false, 64).data;
    assert_eq!((u32_at(&decisions, 0), u32_at(&decisions, 4)), (64 << 16 | 1, 0), "none yet");
    assert_eq!((decisions[24], decisions[26]), (2, 2), "two cores, each task where it arose");
    let get = admin.command(Command::new(0x0A, 0).dword(10, 0xC1), &[], 0);
    assert_eq!(get.status, 0, "it has no value of its own");
    let save = Command::new(0x09, 0).dword(10, 1 << 31 | 0xC1);
    assert_eq!(admin.command(save, &order(b"clean", 1, 0), 0).status, 0x10D, "not saveable");
}
