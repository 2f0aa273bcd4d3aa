//! A drive on a medium that fails, returns wrong data and tears writes: the host gets an error
//! instead of wrong data.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive;
use csd_drive::transport::accept;
use csd_initiator::{Address, Block, Controller, Error, Kv, Options};
use csd_kvlog::format::Split;
use csd_kvlog::media::{FaultConfig, Faulty, Media, Memory};
use csd_nvme::capsule::Sqe;
use csd_nvme::kv::{self, Key};
use csd_nvme::log::{LogId, Smart, get_log_page};
use csd_nvme::opcode::{Admin, Csi};
use csd_nvme::status::Status;
use csd_nvme::vendor::media_errors::MediaErrors;
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{Buffer, Class, CoreId, Listener, sleep, spawn};

use crate::injected::Injections;

const NQN: &str = "nqn.2026-11.io.csdstore:faulty";
const DRIVE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };
const LIMIT: Duration = Duration::from_secs(300);
const ALWAYS: u32 = 1_000_000;

/// Serves a drive on a faulty medium in memory, and runs `work` on a host. Returns the medium.
fn with_drive<F>(seed: u64, work: impl Fn(Controller, Arc<Faulty>) -> F + 'static) -> Arc<Faulty>
where
    F: Future<Output = ()> + 'static,
{
    let world = World::new(seed, WorldConfig::default());
    let cores = 1 + usize::try_from(seed % 2).unwrap();
    let (drive, host) = (world.machine("drive", DRIVE, cores), world.machine("host", HOST, 1));
    let memory = Media::Memory(Arc::new(Memory::new(128 << 20)));
    let faulty = Arc::new(Faulty::new(memory, seed));
    let media = Media::Faulty(Arc::clone(&faulty));
    let ready = Rc::new(RefCell::new(false));
    let told = Rc::clone(&ready);
    world.start(drive, move |core| {
        let (media, told) = (media.clone(), Rc::clone(&told));
        async move {
            if core == CoreId(0) {
                let shared = drive::open(media, true, NQN, &SPLIT, &Resources::default())
                    .await
                    .expect("opens");
                csd_drive::life::start_all(&shared).await.expect("starts");
                let listener = Listener::bind(SocketAddr::from((DRIVE, 4420))).unwrap();
                *told.borrow_mut() = true;
                accept::accept(listener, shared).await;
            }
            std::future::pending().await
        }
    });
    world.run_until(|_| *ready.borrow(), LIMIT).expect("the drive starts");
    let (work, of_host) = (Rc::new(work), Arc::clone(&faulty));
    world.start(host, move |_| {
        let (work, faulty) = (Rc::clone(&work), Arc::clone(&of_host));
        async move {
            let address = Address::new(SocketAddr::from((DRIVE, 4420)), NQN);
            let controller = Controller::connect(&address, &Options::default()).await.unwrap();
            work(controller, faulty).await;
        }
    });
    world.run_until(|world| !world.is_running(host), LIMIT).expect("the host ends");
    faulty
}

/// Adds the faults of media, and prints them.
fn count(lane: &str, media: impl IntoIterator<Item = Arc<Faulty>>) -> Injections {
    let mut all = Injections::default();
    media.into_iter().for_each(|medium| all.add(&medium.injected));
    println!("faulty medium, {lane}: {all:?}");
    all
}

fn status<T>(result: Result<T, Error>) -> Status {
    match result {
        Ok(_) => Status::SUCCESS,
        Err(error) => error.status().unwrap_or_else(|| panic!("lost the drive: {error}")),
    }
}

fn key(number: u32) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

fn content(number: u32, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 509 + number as usize).to_le_bytes()[0]).collect()
}

#[test]
fn media_errors_have_their_status_and_pass_when_the_medium_recovers() {
    let medium = with_drive(1, |controller, faulty| async move {
        let block = Block::open(&controller, 1).unwrap();
        let kv = Kv::open(&controller, 2).unwrap();
        let data = || vec![Buffer::from_slice(&content(1, 8192))];
        block.write(0, data(), true).await.unwrap();
        kv.store(&key(1), data(), 0).await.unwrap();
        let failing = FaultConfig {
            failed_reads_ppm: ALWAYS,
            failed_writes_ppm: ALWAYS,
            latency_us: 100..5000,
            ..FaultConfig::default()
        };
        faulty.set(failing);
        assert_eq!(status(block.read(0, 8192).await), Status::UNRECOVERED_READ_ERROR);
        assert_eq!(status(kv.retrieve(&key(1), 9000).await), Status::UNRECOVERED_ERROR);
        assert_eq!(status(block.write(0, data(), false).await), Status::WRITE_FAULT);
        // The shard's log can not even be sealed: from then on that shard takes no writes.
        assert_eq!(status(kv.store(&key(1), data(), 0).await), Status::WRITE_FAULT);
        faulty.set(FaultConfig::default());
        assert!(block.read(0, 8192).await.unwrap()[..] == content(1, 8192));
        let back = kv.retrieve(&key(1), 9000).await.unwrap().unwrap();
        assert!(back[..] == content(1, 8192), "what was acknowledged is there");
        block.write(0, data(), true).await.unwrap();
    });
    let met = count("errors", [medium]);
    assert!(met.failed_reads > 0 && met.failed_writes > 0, "{met:?}");
}

#[test]
fn a_flipped_bit_in_a_value_is_an_error_and_never_wrong_data() {
    let media = (0..6).map(|seed| {
        with_drive(seed, |controller, faulty| async move {
            let kv = Kv::open(&controller, 3).unwrap();
            let length = |number: u32| [1, 100, 4096, 200_000][number as usize % 4];
            for number in 0..16 {
                let value = vec![Buffer::from_slice(&content(number, length(number)))];
                kv.store(&key(number), value, 0).await.unwrap();
            }
            faulty.set(FaultConfig { flipped_reads_ppm: ALWAYS / 3, ..FaultConfig::default() });
            let (mut right, mut refused) = (0, 0);
            for number in (0..16).cycle().take(96) {
                // A host may want a part of a value only: it is as sure of that.
                let size = u32::try_from(length(number)).unwrap() / (1 + number % 3);
                let sqe = kv::retrieve(3, &key(number), size.max(1), 0);
                match controller.submit(sqe, Vec::new(), size.max(1)).await {
                    Ok(reply) => {
                        let expected = content(number, length(number));
                        assert!(reply.data[..] == expected[..reply.data.len()], "key {number}");
                        right += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.status(), Some(Status::UNRECOVERED_ERROR));
                        refused += 1;
                    }
                }
            }
            assert!(right > 20 && refused > 10, "{right} right, {refused} refused");
            assert!(faulty.injected.flipped_reads.load(Relaxed) >= refused);
        })
    });
    count("flipped bits", media);
}

#[test]
fn a_flipped_bit_in_the_header_of_an_empty_value_is_an_error() {
    let medium = with_drive(4, |controller, faulty| async move {
        let kv = Kv::open(&controller, 2).unwrap();
        kv.store(&key(1), Vec::new(), 0).await.unwrap();
        faulty.set(FaultConfig { flipped_reads_ppm: ALWAYS, ..FaultConfig::default() });
        assert_eq!(status(kv.retrieve(&key(1), 64).await), Status::UNRECOVERED_ERROR);
        faulty.set(FaultConfig::default());
        let found = kv.retrieve(&key(1), 64).await.unwrap().expect("it exists");
        assert!(found.is_empty());
    });
    count("a flipped bit without a value", [medium]);
}

#[test]
fn store_newer_goes_by_the_version_and_replaces_what_it_cannot_read_only_to_mend_it() {
    let versioned = |version: u64, fill: u8| {
        let mut value = vec![fill; 100];
        value[kv::VERSION_OFFSET..][..8].copy_from_slice(&version.to_le_bytes());
        value
    };
    let medium = with_drive(2, move |controller, faulty| async move {
        let kv = Kv::open(&controller, 3).unwrap();
        let store = async |number, value: &[u8], options| {
            let options = kv::STORE_IF_NEWER | options;
            status(kv.store(&key(number), vec![Buffer::from_slice(value)], options).await)
        };
        for (version, fill, expected) in [
            (5, 1, Status::SUCCESS),
            (5, 1, Status::SUCCESS),
            (5, 2, Status::NOT_NEWER),
            (4, 1, Status::NOT_NEWER),
            (6, 1, Status::SUCCESS),
            (5, 1, Status::NOT_NEWER),
        ] {
            assert_eq!(store(1, &versioned(version, fill), 0).await, expected, "{version}");
        }
        assert_eq!(store(1, &[1; 15], 0).await, Status::INVALID_VALUE_SIZE);
        kv.store(&key(2), vec![Buffer::from_slice(b"no version")], 0).await.unwrap();
        assert_eq!(store(2, &versioned(9, 1), 0).await, Status::NOT_NEWER);
        faulty.set(FaultConfig { flipped_reads_ppm: ALWAYS, ..FaultConfig::default() });
        assert_eq!(store(1, &versioned(7, 1), 0).await, Status::UNRECOVERED_ERROR);
        assert_eq!(store(1, &versioned(7, 2), kv::STORE_MENDS).await, Status::SUCCESS);
        faulty.set(FaultConfig::default());
        assert_eq!(store(1, &versioned(6, 1), kv::STORE_MENDS).await, Status::NOT_NEWER);
        let found = kv.retrieve(&key(1), 100).await.unwrap().unwrap();
        assert!(found[..] == versioned(7, 2));
    });
    count("flipped bits below a Store Newer", [medium]);
}

#[test]
fn torn_and_failed_writes_lose_nothing_that_was_acknowledged() {
    let media = (10..16).map(|seed| {
        with_drive(seed, |controller, faulty| async move {
            let kv = Kv::open(&controller, 2).unwrap();
            faulty.set(FaultConfig {
                torn_writes_ppm: ALWAYS / 10,
                failed_writes_ppm: ALWAYS / 50,
                ..FaultConfig::default()
            });
            let mut certain = std::collections::BTreeMap::new();
            for turn in 0u32..200 {
                let value = content(turn, 3000 + 100 * turn as usize);
                let stored = kv.store(&key(turn % 20), vec![Buffer::from_slice(&value)], 0).await;
                match status(stored) {
                    Status::SUCCESS => drop(certain.insert(turn % 20, value)),
                    Status::WRITE_FAULT | Status::NAMESPACE_WRITE_PROTECTED => {}
                    other => panic!("{other}"),
                }
            }
            assert!(faulty.injected.torn_writes.load(Relaxed) > 3);
            assert!(certain.len() > 5, "hardly anything was stored");
            faulty.set(FaultConfig::default());
            for (number, value) in certain {
                let back = kv.retrieve(&key(number), 30_000).await.unwrap().expect("stored");
                assert!(back[..] == value, "key {number}");
            }
        })
    });
    let met = count("torn and failed writes", media);
    assert!(met.failed_writes > 0, "{met:?}");
}

#[test]
fn a_failed_sync_makes_the_drive_read_only_and_hosts_are_told() {
    let medium = with_drive(3, |controller, faulty| async move {
        let block = Block::open(&controller, 1).unwrap();
        let kv = Kv::open(&controller, 2).unwrap();
        let data = |number| vec![Buffer::from_slice(&content(number, 4096))];
        block.write(0, data(1), true).await.unwrap();
        kv.store(&key(1), data(1), 0).await.unwrap();
        let watcher = controller.clone();
        let event = spawn(Class::Foreground, async move {
            let mut request = Sqe::zeroed();
            request.set_opcode(Admin::ASYNC_EVENT_REQUEST.0);
            watcher.admin(request, &[], 0).await
        });
        sleep(Duration::from_millis(10)).await;
        faulty.set(FaultConfig { failed_syncs_ppm: ALWAYS, ..FaultConfig::default() });
        block.write(4096, data(2), false).await.unwrap();
        assert_eq!(status(block.flush().await), Status::WRITE_FAULT);
        faulty.set(FaultConfig::default());

        let dword = event.await.expect("an event").result & 0xFFFF_FFFF;
        // Type SMART / health status, log page 02h.
        assert_eq!((dword & 7, dword >> 16 & 0xFF), (1, 2), "{dword:#x}");
        let mut smart = Sqe::zeroed();
        smart.set_opcode(Admin::GET_LOG_PAGE.0).set_nsid(u32::MAX).set_cdw10(127 << 16 | 2);
        let log = controller.admin(smart, &[], 512).await.unwrap();
        assert_eq!(log.data[0], 0x08, "critical warning: read-only");
        let written = block.write(0, data(3), false).await;
        assert_eq!(status(written), Status::NAMESPACE_WRITE_PROTECTED);
        assert_ne!(status(block.flush().await), Status::SUCCESS, "a second sync would lie");
        for number in 0..40 {
            assert_ne!(status(kv.store(&key(number), data(3), 0).await), Status::SUCCESS);
        }
        assert!(block.read(0, 4096).await.unwrap()[..] == content(1, 4096));
        assert!(kv.retrieve(&key(1), 4096).await.unwrap().unwrap()[..] == content(1, 4096));
    });
    let met = count("a failed sync", [medium]);
    assert_eq!(met.failed_syncs, 1, "a failed sync is the last one");
}

#[test]
fn a_medium_that_is_gone_is_noticed_before_a_store_is_acknowledged() {
    let medium = with_drive(5, |controller, faulty| async move {
        let (block, kv) = (Block::open(&controller, 1).unwrap(), Kv::open(&controller, 2).unwrap());
        let data = |number| vec![Buffer::from_slice(&content(number, 4096))];
        kv.store(&key(1), data(1), 0).await.unwrap();
        faulty.lose("its file was deleted");
        let stored = status(kv.store(&key(2), data(2), 0).await);
        assert_eq!(stored, Status::NAMESPACE_WRITE_PROTECTED);
        assert_eq!(status(block.flush().await), Status::NAMESPACE_WRITE_PROTECTED);
        assert!(kv.retrieve(&key(1), 4096).await.unwrap().unwrap()[..] == content(1, 4096));
        let log = |id: LogId| get_log_page(id, u32::MAX, Csi::NVM, 0, 512);
        let smart = controller.admin(log(LogId::SMART), &[], 512).await.unwrap();
        assert_eq!(smart.data[0], 0x08, "critical warning: read-only");
        assert_eq!(Smart::parse(&smart.data).unwrap().media_errors(), 1);
        let errors = controller.admin(log(LogId::MEDIA_ERRORS), &[], 512).await.unwrap();
        let errors = MediaErrors::parse(&errors.data).unwrap();
        assert_eq!((errors.count(), errors.operation_text()), (1, Some("sync")));
        assert_eq!(errors.reason_text(), "its file was deleted");
    });
    count("a medium that is gone", [medium]);
}

#[test]
fn a_superblock_that_someone_overwrites_is_noticed_by_the_next_store() {
    let medium = with_drive(6, |controller, faulty| async move {
        let kv = Kv::open(&controller, 2).unwrap();
        let data = |number| vec![Buffer::from_slice(&content(number, 4096))];
        kv.store(&key(1), data(1), 0).await.unwrap();
        faulty.inner().write(0, vec![Buffer::zeroed(4096)]).await.0.unwrap();
        sleep(Duration::from_millis(1_100)).await;
        let stored = status(kv.store(&key(2), data(2), 0).await);
        assert_eq!(stored, Status::NAMESPACE_WRITE_PROTECTED);
        assert!(kv.retrieve(&key(1), 4096).await.unwrap().unwrap()[..] == content(1, 4096));
    });
    count("an overwritten superblock", [medium]);
}
