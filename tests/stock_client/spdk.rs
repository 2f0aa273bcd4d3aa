//! SPDK's host where it differs from Linux's: it queries every namespace as if it had blocks, drops
//! its event requests silently, and its tools connect without a name.

use std::sync::{Arc, Mutex};

use csd_drive::log::{Level, Log};
use csd_reactor::BackendKind;
use csd_tests::wire::{Command, Wire, connect_command};

use crate::{NQN, config, drive, each_backend, io_queue, serve, u32_at, u64_at};

fn identify(admin: &mut Wire, nsid: u32, cns: u32, csi: u8) -> Vec<u8> {
    let command = Command::new(0x06, nsid).dword(10, cns).dword(11, u32::from(csi) << 24);
    let reply = admin.command(command, &[], 4096);
    assert_eq!((reply.status, reply.data.len()), (0, 4096), "CNS {cns:#x}, nsid {nsid}");
    reply.data
}

/// Returns the command set of a namespace, from its descriptors.
fn csi_of(admin: &mut Wire, nsid: u32) -> u8 {
    let data = identify(admin, nsid, 0x03, 0);
    let mut at = 0;
    while data[at + 1] != 0 {
        if data[at] == 4 {
            return data[at + 4];
        }
        at += 4 + usize::from(data[at + 1]);
    }
    panic!("no descriptor of the command set");
}

/// Returns a Store or Retrieve of a value of so many bytes.
fn kv(opcode: u8, nsid: u32, key: [u8; 4], bytes: u32) -> Command {
    let command = Command::new(opcode, nsid).dword(2, u32::from_le_bytes(key));
    command.dword(10, bytes).dword(11, 4)
}

#[test]
fn every_active_namespace_is_found_by_its_capacity_and_then_by_its_command_set() {
    each_backend(|address| {
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let list = identify(&mut admin, 0, 0x02, 0);
        let active: Vec<u32> =
            (0..8).map(|at| u32_at(&list, at * 4)).take_while(|id| *id != 0).collect();
        assert_eq!(active, [1, 2, 3, 4, 5]);
        let mut found = Vec::new();
        for nsid in active {
            // SPDK sends this first, and drops controllers without capacity.
            let namespace = identify(&mut admin, nsid, 0x00, 0);
            let sizes = [0, 8, 16].map(|at| u64_at(&namespace, at));
            assert!(sizes[1] > 0 && sizes[0] == sizes[1] && sizes[2] <= sizes[1], "{sizes:?}");
            let format = u32_at(&namespace, 128 + 4 * usize::from(namespace[26] & 0xF));
            let block = 1u64 << (format >> 16 & 0xFF);
            let descriptors = identify(&mut admin, nsid, 0x03, 0);
            assert_eq!(namespace[104..120], descriptors[4..20], "NGUID");
            assert_eq!(namespace[30] & 1, 1, "NMIC: shared");
            found.push((nsid, csi_of(&mut admin, nsid), sizes[1] * block, block));
        }
        assert_eq!(found.iter().map(|at| at.1).collect::<Vec<_>>(), [0, 1, 1, 3, 4]);
        assert_eq!((found[0].3, found[3].2, found[4].2), (4096, 64 << 20, 16 << 20));
        let mut io = io_queue(address, cntlid, 1, true);
        for (nsid, csi, _, block) in found.into_iter().filter(|at| at.1 == 1) {
            let listed = identify(&mut admin, nsid - 1, 0x07, csi);
            assert_eq!(u32_at(&listed, 0), nsid, "active list of the command set");
            identify(&mut admin, 0, 0x06, csi);
            let own = identify(&mut admin, nsid, 0x05, csi);
            // Less than at first: both kv namespaces share their room.
            let capacity = u64_at(&identify(&mut admin, nsid, 0x00, 0), 8);
            assert_eq!(u64_at(&own, 0) / block, capacity, "NSZE in bytes, and in blocks");
            let used = |admin: &mut Wire| u64_at(&identify(admin, nsid, 0x00, 0), 16);
            let before = used(&mut admin);
            let value = vec![nsid as u8; 100_000];
            assert_eq!(io.command(kv(0x01, nsid, *b"key!", 100_000), &value, 0).status, 0);
            let got = io.command(kv(0x02, nsid, *b"key!", 100_000), &[], 100_000);
            assert!(got.status == 0 && got.data == value);
            assert!(used(&mut admin) >= before + 100_000 / block, "NUSE grows with what is stored");
        }
    });
}

#[test]
fn a_command_takes_over_the_identifier_of_a_parked_event_request() {
    each_backend(|address| {
        let mut admin = Wire::open(address);
        admin.admin(NQN);
        let with_cid = |mut command: Command, cid: u16| {
            command.0[2..4].copy_from_slice(&cid.to_le_bytes());
            command.sgl(0, 0x5A);
            command
        };
        for cid in 100..104u16 {
            admin.send_capsule(&with_cid(Command::new(0x0C, 0), cid), &[]);
        }
        // Property Get of CC, as SPDK sends it when it detaches.
        let get = || with_cid(Command::new(0x7F, 0).byte(4, 0x04).dword(11, 0x14), 103);
        for _ in 0..2 {
            admin.send_capsule(&get(), &[]);
            assert_eq!(admin.response(), (103, 0, 4 << 20 | 6 << 16 | 6 << 4 | 1));
        }
        // The request is dropped: there is room for one more, and not for two.
        admin.send_capsule(&with_cid(Command::new(0x0C, 0), 200), &[]);
        admin.send_capsule(&with_cid(Command::new(0x0C, 0), 201), &[]);
        assert_eq!(admin.response(), (201, 0x105, 0), "AERL");
        // CC.EN = 0 ends the other three, and the one that took the place.
        let reset = Command::new(0x7F, 0).dword(11, 0x14);
        admin.send_capsule(&with_cid(reset, 300), &[]);
        let ended: Vec<u16> = (0..4).map(|_| admin.response().0).collect();
        assert_eq!(ended, [100, 101, 102, 200]);
        assert_eq!(admin.response(), (300, 0, 0));
    });
}

#[test]
fn a_host_without_a_name_may_connect_where_any_host_may() {
    let nameless = |address| {
        let mut wire = Wire::open(address);
        wire.initialise();
        let (command, mut data) = connect_command(NQN, 0, 0xFFFF, 32, true);
        data[512..768].fill(0);
        let reply = wire.command_in_capsule(command, &data);
        (reply.status, reply.result)
    };
    assert_eq!(nameless(drive(1, BackendKind::Epoll)).0, 0);
    let hosts = vec!["nqn.2014-08.org.nvmexpress:uuid:stock-client".to_owned()];
    let access = csd_drive::Access { hosts, ..csd_drive::Access::default() };
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let log = Log::new(Level::Warn, move |record| {
        sink.lock().unwrap().push((record.event, record.fields.to_vec()));
    });
    let named = serve(csd_drive::Config { access, log, ..config() });
    assert_eq!(nameless(named), (0x182, 1 << 16 | 512), "invalid parameter: HOSTNQN, in the data");
    let told = told.lock().unwrap();
    let field = |name: &str| told[0].1.iter().find(|field| field.0 == name).unwrap().1.clone();
    assert_eq!((told[0].0, field("host")), ("connect refused", String::new()));
    assert_eq!(field("field"), "data byte 512");
    assert!(field("peer").starts_with("127.0.0.1:"), "{}", field("peer"));
}

#[test]
fn a_drive_that_exposes_one_kind_has_no_other() {
    use csd_drive::{Expose, Resources};
    for (expose, ids) in [(Expose::Block, &[1][..]), (Expose::Kv, &[2, 3])] {
        let resources = Resources { expose, ..Resources::default() };
        let address = serve(csd_drive::Config { resources, ..config() });
        let mut admin = Wire::open(address);
        let cntlid = admin.admin(NQN);
        let list = identify(&mut admin, 0, 0x02, 0);
        let active: Vec<u32> =
            (0..8).map(|at| u32_at(&list, at * 4)).take_while(|id| *id != 0).collect();
        assert_eq!(active, ids);
        let mut io = io_queue(address, cntlid, 1, true);
        // A read, a write in the capsule, Exist, Memory Read, Execute, and both halves of a pair.
        let answer = |nsid: u32, status: u16| {
            let exposed = ids.contains(&nsid);
            assert_eq!(status == 0x0B, !exposed, "nsid {nsid}: {status:#x}");
        };
        answer(1, io.command(Command::new(0x02, 1), &[], 4096).status);
        answer(1, io.command_in_capsule(Command::new(0x01, 1), &[1; 4096]).status);
        answer(2, io.command(kv(0x14, 2, *b"none", 0), &[], 0).status);
        answer(3, io.command(kv(0x14, 3, *b"none", 0), &[], 0).status);
        answer(4, io.command(Command::new(0x02, 4).dword(12, 4), &[], 4).status);
        answer(5, io.command(Command::new(0x01, 5), &[], 0).status);
        let half = |opcode, flags: u8| Command::new(opcode, 1).byte(1, 0x40 | flags);
        io.post(half(0x05, 1), &[1; 4096]);
        io.post(half(0x01, 2), &[1; 4096]);
        answer(1, io.response().1);
        answer(1, io.response().1);
        for nsid in 1..=5 {
            let status = admin.command(Command::new(0x06, nsid).dword(10, 3), &[], 4096).status;
            answer(nsid, status);
        }
        // Load Program of a drive without a compute namespace.
        assert_eq!(
            admin.command(Command::new(0x85, 5).dword(10, 0xC1 << 16 | 16), &[], 0).status,
            0x0B
        );
    }
}
