//! Hosts on several cores of a drive with a slow, failing disk: writes fail, syncs fail, and writes
//! are lost between cache and disk, which only one sync reports. Then the power is cut.
//! Acknowledged data is there, whichever core acknowledged it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use csd_drive::HostLimits;
use csd_initiator::{Address, Block, Controller, Error, Kv, Options};
use csd_kvlog::media::{FaultConfig, Faulty, Media, Volatile, VolatileConfig};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, random_u64, spawn};

use crate::injected::Injections;
use crate::model::State;
use crate::served::Served;
use crate::workload::{KEYS_PER_WORKER, SECTOR_BYTES, Shared, content, fail, key, sectors, verify};
use crate::{DRIVE_BYTES, seeds};

/// Number of hosts, each with its own queue: more than there are cores.
const HOSTS: u64 = 5;
const STEPS: u64 = 40;

/// Returns the faults of a seed.
fn faults(seed: u64) -> FaultConfig {
    let calm = FaultConfig::default();
    let slow = FaultConfig { latency_us: 0..3_000, ..calm.clone() };
    match seed % 5 {
        0 => FaultConfig { failed_syncs_ppm: 20_000, ..slow },
        1 => FaultConfig { failed_writes_ppm: 50_000, torn_writes_ppm: 50_000, ..slow },
        2 => FaultConfig { failed_writebacks_ppm: 30_000, ..calm },
        3 => FaultConfig { failed_writebacks_ppm: 30_000, ..slow },
        _ => FaultConfig {
            failed_writebacks_ppm: 15_000,
            failed_writes_ppm: 30_000,
            torn_writes_ppm: 30_000,
            ..slow
        },
    }
}

/// Returns true if the command succeeded, false if it failed with a status; an error if the drive
/// did not answer.
fn answered(known: &Shared, result: Result<(), Error>) -> Result<bool, ()> {
    known.borrow_mut().operations += 1;
    match result.map_err(|error| error.status()) {
        Ok(()) => Ok(true),
        // A key whose last change failed may be unknown until the next start.
        Err(Some(
            Status::WRITE_FAULT | Status::NAMESPACE_WRITE_PROTECTED | Status::UNRECOVERED_ERROR,
        )) => Ok(false),
        Err(status) => {
            fail(known, format!("a write ended in {status:?}"));
            Err(())
        }
    }
}

async fn store_or_delete(kv: &Kv, number: u64, known: &Shared) -> Result<(), ()> {
    let state = (!random_u64().is_multiple_of(5))
        .then(|| content(known, usize::try_from(random_u64() % 20_000).unwrap()));
    known.borrow_mut().kv.asked(number, state.clone());
    let done = match &state {
        Some(value) => kv.store(&key(number), vec![Buffer::from_slice(value)], 0).await,
        None => kv.delete(&key(number)).await.map(drop),
    };
    if answered(known, done)? {
        let mut known = known.borrow_mut();
        known.kv.acknowledged(number, state.clone());
        known.kv.durable(number, state);
    }
    Ok(())
}

async fn write(block: &Block, number: u64, known: &Shared) -> Result<(), ()> {
    let block_bytes = u64::from(block.block_bytes());
    let data = content(known, usize::try_from(block_bytes).unwrap());
    let states: Vec<State> =
        data.chunks(SECTOR_BYTES).map(|sector| Some(sector.to_vec())).collect();
    let states = || sectors(number, block_bytes).zip(states.clone());
    for (sector, state) in states() {
        known.borrow_mut().sectors.asked(sector, state);
    }
    let buffers = vec![Buffer::from_slice(&data)];
    if answered(known, block.write(number * block_bytes, buffers, true).await)? {
        for (sector, state) in states() {
            let mut known = known.borrow_mut();
            known.sectors.acknowledged(sector, state.clone());
            known.sectors.durable(sector, state);
        }
    }
    Ok(())
}

/// Stores, deletes and writes through to the disk.
async fn work(address: Address, number: u64, known: Shared) {
    let controller = Controller::connect(&address, &Options::default()).await.expect("connects");
    let kv = Kv::open(&controller, if number == 0 { 2 } else { 3 }).expect("a kv namespace");
    let block = Block::open(&controller, 1).expect("a block namespace");
    for _ in 0..STEPS {
        let at = number * KEYS_PER_WORKER + random_u64() % KEYS_PER_WORKER;
        let done = match random_u64().is_multiple_of(2) {
            true => store_or_delete(&kv, at, &known).await,
            false => write(&block, at, &known).await,
        };
        if done.is_err() {
            return;
        }
    }
}

/// Runs a life with faults, a power cut, and a life without faults; returns the medium and the
/// number of operations.
fn run(seed: u64) -> (Arc<Faulty>, u64) {
    let served = Served::new(seed, 2 + usize::try_from(seed % 2).unwrap());
    let disk = Arc::new(Volatile::new(DRIVE_BYTES, VolatileConfig::default()));
    let faulty = Arc::new(Faulty::new(Media::Volatile(Arc::clone(&disk)), seed));
    served.start(&Media::Faulty(Arc::clone(&faulty)), true, HostLimits::default());
    faulty.set(faults(seed));
    let known = Shared::default();
    let worked = Rc::clone(&known);
    served.host(move |address| {
        let known = Rc::clone(&worked);
        async move {
            let begin =
                |number| spawn(Class::Foreground, work(address.clone(), number, Rc::clone(&known)));
            for host in (0..HOSTS).map(begin).collect::<Vec<_>>() {
                host.await;
            }
        }
    });
    served.world.crash(served.drive);
    disk.power_cut(|| served.world.random_u64());
    disk.power_on();
    served.start(&Media::Volatile(disk), false, HostLimits::default());
    let found = Rc::clone(&known);
    assert!(served.host(move |address| verify(address, Rc::clone(&found))), "connects");
    let known = known.borrow();
    assert_eq!(known.failure, None);
    (faulty, known.operations)
}

#[test]
fn nothing_acknowledged_is_lost_when_the_disk_fails_under_several_cores() {
    let (mut injected, mut operations, mut overlapping) = (Injections::default(), 0, 0);
    for (faulty, done) in seeds::each(seeds(), run) {
        operations += done;
        overlapping += faulty.injected.overlapping_syncs.load(Relaxed);
        injected.add(&faulty.injected);
    }
    let count = seeds().count() as u64;
    println!("failing disk: {count} seeds, {operations} operations, {injected:?}");
    assert_eq!(overlapping, 0, "syncs of one medium overlapped");
    assert!(operations > 50 * count, "the workload hardly ran");
    let Injections { failed_writes, torn_writes, failed_syncs, failed_writebacks, delays, .. } =
        injected;
    let counts = [failed_writes, torn_writes, failed_syncs, failed_writebacks, delays];
    assert!(counts.iter().all(|faults| *faults > 0) || count < 50, "{injected:?}");
}
