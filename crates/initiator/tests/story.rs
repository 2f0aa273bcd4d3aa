//! Hosts and a lawful drive, in the simulated world and over loopback: connecting, each command
//! set, long transfers with and without digests, full queues, abandoned commands, keep-alive.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use common::drive::{BLOCK_BYTES, BLOCK_NSID, BLOCKS, Behaviour, COMPUTE_NSID, KV_NSID};
use common::{everywhere, in_worlds};
use csd_initiator::{Block, Compute, Controller, Digests, Error, Kv, NamespaceKind, Options};
use csd_nvme::kv::{Key, STORE_IF_ABSENT, STORE_IF_EXISTS};
use csd_nvme::nvm;
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{Execution, Output, SourceData};
use csd_nvme::wire::text_of;
use csd_reactor::{Buffer, Class, JoinHandle, sleep, spawn, timeout};

const MIB: usize = 1 << 20;

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31) ^ (i >> 9) ^ (seed * 7)) as u8).collect()
}

fn key(text: &str) -> Key {
    Key::new(text.as_bytes()).unwrap()
}

#[test]
fn connecting_tells_what_the_drive_is() {
    everywhere(&Behaviour::default(), |address, drive| {
        Box::pin(async move {
            let options = Options { io_queues: 9, ..Options::default() };
            let controller = Controller::connect(&address, &options).await.unwrap();
            assert_eq!(text_of(&controller.identity().sn()), Some("MEMORY"));
            assert_eq!(controller.transfer_bytes_max(), 1 << 20);
            assert_eq!(controller.in_capsule_bytes_max(), 8192);
            assert_eq!(controller.io_queues(), 4); // the drive allows 4
            assert_eq!(controller.address(), &address);
            let kinds: Vec<_> =
                controller.namespaces().iter().map(|ns| (ns.nsid, ns.csi, ns.kind)).collect();
            let block = NamespaceKind::Block { blocks: BLOCKS as u64, block_bytes: 512 };
            let kv = NamespaceKind::Kv { bytes: 1 << 30, used_bytes: 0, value_bytes_max: 1 << 20 };
            assert_eq!(
                kinds,
                [
                    (BLOCK_NSID, Csi::NVM, block),
                    (KV_NSID, Csi::KV, kv),
                    (COMPUTE_NSID, Csi::CP, NamespaceKind::Compute)
                ]
            );
            assert!(matches!(Kv::open(&controller, 1), Err(Error::Misuse { .. })));
            assert!(matches!(Block::open(&controller, 77), Err(Error::Misuse { .. })));
            let cntlid = controller.identity().cntlid();
            assert!(drive.controllers.borrow()[&cntlid].borrow().ready());
            let other = controller.clone();
            controller.disconnect().await;
            assert!(!drive.controllers.borrow()[&cntlid].borrow().ready(), "shut down in order");
            let kv = Kv::open(&other, KV_NSID).unwrap();
            assert!(matches!(kv.exist(&key("k")).await, Err(Error::Closed { .. })));
            while drive.sessions.get() != (5, 5) {
                sleep(Duration::from_millis(1)).await;
            }
        })
    });
}

#[test]
fn dropping_the_last_clone_closes_the_connections() {
    everywhere(&Behaviour::default(), |address, drive| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &Options::default()).await.unwrap();
            let kv = Kv::open(&controller, KV_NSID).unwrap();
            drop(controller);
            assert!(!kv.exist(&key("k")).await.unwrap());
            assert_eq!(drive.sessions.get(), (2, 0));
            drop(kv);
            while drive.sessions.get() != (2, 2) {
                sleep(Duration::from_millis(1)).await;
            }
        })
    });
}

#[test]
fn keys_and_values() {
    everywhere(&Behaviour::default(), |address, drive| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &Options::default()).await.unwrap();
            let kv = Kv::open(&controller, KV_NSID).unwrap();
            assert!(kv.retrieve(&key("a"), 100).await.unwrap().is_none());
            let value = pattern(5000, 1);
            let parts = vec![Buffer::from_slice(&value[..1]), Buffer::from_slice(&value[1..])];
            kv.store(&key("a"), parts, STORE_IF_ABSENT).await.unwrap();
            let again = kv.store(&key("a"), Vec::new(), STORE_IF_ABSENT).await.unwrap_err();
            assert_eq!(again.status(), Some(Status::KEY_EXISTS));
            assert!(again.to_string().contains("Store failed"), "{again}");
            let absent = kv.store(&key("b"), Vec::new(), STORE_IF_EXISTS).await.unwrap_err();
            assert_eq!(absent.status(), Some(Status::KEY_DOES_NOT_EXIST));
            for size in [5000, 9999, 1, 0] {
                let read = kv.retrieve(&key("a"), size).await.unwrap().unwrap();
                assert_eq!(&*read, &value[..], "asked for {size}");
            }
            kv.store(&key("empty"), Vec::new(), 0).await.unwrap();
            assert!(kv.retrieve(&key("empty"), 10).await.unwrap().unwrap().is_empty());
            assert!(kv.exist(&key("a")).await.unwrap() && !kv.exist(&key("b")).await.unwrap());
            kv.flush().await.unwrap();
            assert!(kv.delete(&key("a")).await.unwrap());
            assert!(!kv.delete(&key("a")).await.unwrap());
            let long = vec![Buffer::zeroed(MIB + 1)];
            let error = kv.store(&key("c"), long, 0).await.unwrap_err();
            assert!(matches!(error, Error::TooLarge { bytes: 1_048_577, .. }), "{error}");
            // A value beyond one transfer, as another host may have stored it.
            drive.values.borrow_mut().insert(key("huge"), vec![1; MIB + 7]);
            let error = kv.retrieve(&key("huge"), 10).await.unwrap_err();
            assert!(matches!(error, Error::TooLarge { bytes: 1_048_583, .. }), "{error}");
        })
    });
}

#[test]
fn all_keys_are_listed_once_over_many_lists() {
    in_worlds(&Behaviour::default(), |address, drive| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &Options::default()).await.unwrap();
            let kv = Kv::open(&controller, KV_NSID).unwrap();
            assert!(kv.list_all(b"").await.unwrap().is_empty());
            let keys: Vec<Key> = (0..9000).map(|i| key(&format!("{}-{i:06}", i % 3))).collect();
            let stored = keys.iter().map(|key| (*key, Vec::new()));
            drive.values.borrow_mut().extend(stored);
            assert_eq!(kv.list_all(b"").await.unwrap().len(), 9000);
            let some = kv.list_all(b"1-").await.unwrap();
            let expected: BTreeSet<Key> = keys.iter().skip(1).step_by(3).copied().collect();
            assert_eq!(some, expected.into_iter().collect::<Vec<_>>());
            let first = kv.list(Some(&some[5]), 64).await.unwrap();
            assert_eq!(first[0], some[5]);
            assert_eq!(first.len(), 5); // 4 + 5 * 12 = 64 bytes
        })
    });
}

fn blocks_with(digests: Digests) {
    let host = if digests.data { blocks_digests } else { blocks_plain };
    everywhere(&Behaviour { mdts: 6, ..Behaviour::default() }, host);
}

fn blocks_plain(
    address: csd_initiator::Address,
    drive: Rc<common::drive::Drive>,
) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(blocks(address, drive, Digests::default()))
}

fn blocks_digests(
    address: csd_initiator::Address,
    drive: Rc<common::drive::Drive>,
) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(blocks(address, drive, Digests { header: true, data: true }))
}

async fn blocks(
    address: csd_initiator::Address,
    drive: Rc<common::drive::Drive>,
    digests: Digests,
) {
    let options = Options { digests, ..Options::default() };
    let controller = Controller::connect(&address, &options).await.unwrap();
    let block = Block::open(&controller, BLOCK_NSID).unwrap();
    assert_eq!((block.block_bytes(), block.bytes()), (512, (BLOCKS * BLOCK_BYTES) as u64));
    let before = controller.traffic();
    // 1 MiB and a block, in odd parts, over an MDTS of 256 KiB.
    let data = pattern(MIB + 512, 5);
    let cuts = [0, 7, 512, 300_000, 300_001, MIB, MIB + 512];
    let parts = cuts.windows(2).map(|cut| Buffer::from_slice(&data[cut[0]..cut[1]])).collect();
    block.write(1024, parts, true).await.unwrap();
    block.flush().await.unwrap();
    assert!(drive.blocks.borrow()[1024..1024 + data.len()] == data[..], "media differs");
    let read = block.read(1024, data.len()).await.unwrap();
    assert!(*read == data[..], "data read back differs");
    let small = block.read(1536, 1024).await.unwrap();
    assert!(*small == data[512..1536]);
    assert!(block.read(0, 0).await.unwrap().is_empty());
    let after = controller.traffic();
    let payload = (MIB + 512) as u64;
    assert_eq!(after.payload_to_drive - before.payload_to_drive, payload);
    assert_eq!(after.payload_to_host - before.payload_to_host, payload + 1024);
    let wire = after.wire_to_host - before.wire_to_host;
    assert!(wire > payload + 1024 && wire < payload + 4096, "{wire} bytes on the wire");
    assert_eq!(controller.bytes_to_drive(), after.payload_to_drive);
    for (offset, len) in [(1, 512), (0, 100), (block.bytes(), 512), (u64::MAX - 511, 512)] {
        let error = block.read(offset, len).await.unwrap_err();
        assert!(matches!(error, Error::Misuse { .. }), "{error}");
    }
    let beyond = nvm::read(BLOCK_NSID, nvm::Extent { slba: 1 << 40, blocks: 1 });
    let error = controller.submit(beyond, Vec::new(), 512).await.unwrap_err();
    assert_eq!(error.status(), Some(Status::LBA_OUT_OF_RANGE));
    assert!(error.to_string().contains("Read failed"), "{error}");
    assert!(*block.read(1536, 1024).await.unwrap() == data[512..1536], "still connected");
}

#[test]
fn blocks_without_digests() {
    blocks_with(Digests::default());
}

#[test]
fn blocks_with_digests() {
    blocks_with(Digests { header: true, data: true });
}

#[test]
fn a_list_of_programs_that_grows_between_two_reads_is_read_again() {
    in_worlds(&Behaviour::default(), |address, drive| {
        Box::pin(async move {
            drive.loads.set(3);
            let controller = Controller::connect(&address, &Options::default()).await.unwrap();
            let compute = Compute::open(&controller, COMPUTE_NSID).unwrap();
            assert_eq!(compute.programs().await.unwrap().len(), 5);
        })
    });
}

#[test]
fn programs_and_executions() {
    everywhere(&Behaviour::default(), |address, _drive| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &Options::default()).await.unwrap();
            let compute = Compute::open(&controller, COMPUTE_NSID).unwrap();
            let programs = compute.programs().await.unwrap();
            let told: Vec<_> = programs.iter().map(|program| program.pid()).collect();
            assert_eq!(told, [1, 7]);
            assert_eq!(text_of(&programs[0].name()), Some("count"));
            let source = SourceData::Blocks { nsid: 1, slba: 0, skip: 0, bytes: 1 }.into();
            let execution = Execution {
                program: 7,
                output: Output::Completion,
                sources: vec![source; 256],
                inline: vec![],
                digests: None,
                parameters: vec![1, 2, 3],
                serial: false,
                cores: 1,
            };
            assert_eq!(compute.execute(0, &execution).await.unwrap(), 7 << 32 | 256);
            let error = compute.execute(9, &execution).await.unwrap_err();
            assert_eq!(error.status(), Some(Status::INVALID_PROGRAM_INDEX));
            assert!(error.to_string().contains("Execute Program failed"), "{error}");
        })
    });
}

#[test]
fn many_commands_wait_for_room_and_spread_over_queues() {
    let behaviour = Behaviour { delay: Duration::from_micros(100), ..Behaviour::default() };
    everywhere(&behaviour, |address, drive| {
        Box::pin(async move {
            let options = Options { io_queues: 2, entries: 4, ..Options::default() };
            let controller = Controller::connect(&address, &options).await.unwrap();
            let kv = Kv::open(&controller, KV_NSID).unwrap();
            let store = |i: usize| {
                let kv = kv.clone();
                async move {
                    // Some in the capsule, some by transfer.
                    let value = pattern(if i.is_multiple_of(2) { 100 } else { 30_000 }, i);
                    let (key, value) = (key(&i.to_string()), Buffer::from_slice(&value));
                    kv.store(&key, vec![value], 0).await
                }
            };
            let tasks: Vec<JoinHandle<_>> =
                (0..100).map(|i| spawn(Class::Foreground, store(i))).collect();
            for task in tasks {
                task.await.unwrap();
            }
            for i in 0..100 {
                let read = kv.retrieve(&key(&i.to_string()), 30_000).await.unwrap().unwrap();
                assert!(*read == pattern(read.len(), i)[..]);
            }
            let commands = drive.commands.borrow();
            assert_eq!(commands.values().sum::<u32>(), 200);
            assert!(commands.values().all(|count| *count > 40), "{commands:?}");
        })
    });
}

#[test]
fn abandoned_commands_end_on_their_own() {
    let behaviour = Behaviour { delay: Duration::from_millis(1), ..Behaviour::default() };
    everywhere(&behaviour, |address, drive| {
        Box::pin(async move {
            let options = Options { entries: 4, ..Options::default() };
            let controller = Controller::connect(&address, &options).await.unwrap();
            let block = Block::open(&controller, BLOCK_NSID).unwrap();
            for round in 0..20 {
                let data = vec![Buffer::from_slice(&pattern(MIB, round))];
                let write = timeout(Duration::from_micros(100), block.write(0, data, false));
                let read = timeout(Duration::from_micros(100), block.read(0, MIB));
                drop((write.await, read.await));
            }
            // Waits behind whatever is still in flight; every slot comes back.
            let last = pattern(MIB, 99);
            block.write(0, vec![Buffer::from_slice(&last)], false).await.unwrap();
            let reads: Vec<_> = (0..8)
                .map(|_| {
                    let block = block.clone();
                    spawn(Class::Foreground, async move { block.read(0, MIB).await })
                })
                .collect();
            for read in reads {
                assert!(*read.await.unwrap() == last[..]);
            }
            assert!(drive.blocks.borrow()[..MIB] == last[..]);
            assert!(controller.closed().is_none());
        })
    });
}

#[test]
fn keep_alives_go_out_while_idle() {
    in_worlds(&Behaviour::default(), |address, drive| {
        Box::pin(async move {
            let keep_alive = Duration::from_secs(2);
            let options = Options { keep_alive, ..Options::default() };
            let controller = Controller::connect(&address, &options).await.unwrap();
            let cntlid = controller.identity().cntlid();
            let told = drive.controllers.borrow()[&cntlid].borrow().keep_alive_ms();
            assert_eq!(told, 2000);
            sleep(Duration::from_millis(10_500)).await;
            assert_eq!(drive.keep_alives.get(), 10);
            drop(controller);
            sleep(Duration::from_secs(10)).await;
            assert_eq!(drive.keep_alives.get(), 10);
        })
    });
}
