//! Hosts that send much data to a slow disk and vanish: their data takes memory until it is
//! written, so it counts until then, and the next host waits for it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::HostLimits;
use csd_initiator::{Address, Block, Controller, Kv, Options};
use csd_kvlog::media::{FaultConfig, Faulty, Media, Memory};
use csd_reactor::{Buffer, Class, now, sleep, spawn};

use crate::DRIVE_BYTES;
use crate::served::Served;
use crate::workload::key;

/// Smallest transfer memory of a core.
const TRANSFER_MEMORY_BYTES: u64 = 64 << 20;
const GRANTED_BYTES: u64 = TRANSFER_MEMORY_BYTES / 16 * 7;
const HOSTS: u64 = 12;
/// Bytes that each host sends: four hosts use up all grants.
const SENT_BYTES: u64 = GRANTED_BYTES / 4;
const VALUE_BYTES: u64 = 256 << 10;
const SLOW: Duration = Duration::from_secs(60);

async fn connect(address: &Address, number: u64) -> Controller {
    let options = Options {
        host_nqn: format!("nqn.2026-11.io.csdstore:host-{number}"),
        command_timeout: 8 * SLOW,
        ..Options::default()
    };
    Controller::connect(address, &options).await.expect("connects")
}

/// Sends data, and leaves when the drive has it, or waits before it takes it.
async fn send_and_vanish(address: Address, number: u64, values: bool) {
    let controller = connect(&address, number).await;
    let writing = if values {
        let kv = Kv::open(&controller, 3).expect("a kv namespace");
        let store = |at| {
            let kv = kv.clone();
            spawn(Class::Foreground, async move {
                let value = vec![Buffer::zeroed(usize::try_from(VALUE_BYTES).unwrap())];
                drop(kv.store(&key(at), value, 0).await);
            })
        };
        let first = number * SENT_BYTES / VALUE_BYTES;
        (first..first + SENT_BYTES / VALUE_BYTES).map(store).collect()
    } else {
        let block = Block::open(&controller, 1).expect("a block namespace");
        vec![spawn(Class::Foreground, async move {
            let data = vec![Buffer::zeroed(usize::try_from(SENT_BYTES).unwrap())];
            drop(block.write(0, data, false).await);
        })]
    };
    // Longer than the data is under way, and far shorter than the disk takes.
    sleep(SLOW / 30).await;
    writing.iter().for_each(csd_reactor::JoinHandle::abort);
}

/// Returns the most bytes that were being written at once, and the wait of the last host.
fn run(values: bool) -> (u64, Duration) {
    let served = Served::new(7, 1);
    let memory = Media::Memory(Arc::new(Memory::new(DRIVE_BYTES)));
    let disk = Arc::new(Faulty::new(memory, 7));
    let limits =
        HostLimits { transfer_memory_bytes: TRANSFER_MEMORY_BYTES, ..HostLimits::default() };
    served.start(&Media::Faulty(Arc::clone(&disk)), true, limits);
    let slow_us = u64::try_from(SLOW.as_micros()).unwrap();
    disk.set(FaultConfig { latency_us: slow_us..slow_us + 1, ..FaultConfig::default() });
    let waited = served.host(move |address| async move {
        for number in 0..HOSTS {
            send_and_vanish(address.clone(), number, values).await;
        }
        let begun = now();
        // More than a connection's own share, so the host queues for a grant.
        let data = vec![Buffer::zeroed(256 << 10)];
        let block = Block::open(&connect(&address, HOSTS).await, 1).expect("a block namespace");
        block.write(0, data, false).await.expect("it has its turn");
        begun.elapsed()
    });
    (disk.writing_bytes_most.load(Relaxed), waited)
}

#[test]
fn what_lost_hosts_sent_counts_until_it_is_written() {
    let (most, waited) = run(false);
    assert!(most <= GRANTED_BYTES, "{} MiB at once", most >> 20);
    assert!(most > GRANTED_BYTES / 2, "hardly anything was under way: {most}");
    // Without a wait for memory it would be a disk's access.
    assert!(waited > SLOW + SLOW / 4, "the next host waited {waited:?}");
    let (_, waited) = run(true);
    assert!(waited > SLOW + SLOW / 4, "behind values the next host waited {waited:?}");
}
