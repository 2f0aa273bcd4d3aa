//! Disks that fail under a page cache: acknowledged data is there after a power cut. As on Linux,
//! each descriptor reports a failed sync once, so of two cores that share one only one sees the
//! error.

use std::cell::RefCell;
use std::rc::Rc;

use csd_initiator::{Address, Controller, Kv, Options};
use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use rustix::process::Signal;

use crate::cache::SEGMENT_MAGIC;
use crate::drive::Drive;
use crate::faults::Faults;
use crate::harness::signal;
use crate::round::read_whole;
use crate::workload::{Known, Load, work_until_lost};
use crate::{asked, can_run, on_host, say, seeded};

const ROUNDS_SHORT: u64 = 6;
const SEED: u64 = 100;
const OPERATIONS: u64 = 600;

/// Connects with a queue for each core.
async fn connect(address: &Address) -> Result<Controller, String> {
    let options = Options { io_queues: 2, ..Options::default() };
    let controller = Controller::connect(address, &options).await;
    controller.map_err(|error| format!("a host cannot connect: {error}"))
}

/// Works on a failing disk until the host has nothing left to ask, then kills, cuts, and reads
/// everything back. Returns the number of requests that failed.
async fn fail(seed: u64, cores: &str, faults: Faults) -> Result<u64, String> {
    let mut numbers = seeded(seed);
    let backend = ["uring", "epoll"][usize::from(seed.is_multiple_of(2))];
    let options = ["--cores", cores, "--direct", "off", "--backend", backend];
    let mut drive = Drive::new(&options, &mut numbers);
    let address = drive.serve().await?;
    let pid = drive.pid();
    let known = Rc::new(RefCell::new(Known {
        load: Load { workers: 40, shards: 16, small: true, syncing_max: OPERATIONS },
        when_done: Some(Box::new(move || signal(pid, Signal::KILL))),
        ..Known::default()
    }));
    let controller = connect(&address).await?;
    drive.medium.set_faults(faults);
    work_until_lost(&controller, &known).await;
    drive.medium.set_faults(Faults::default());
    drive.kill()?;
    let errors = drive.medium.counts().errors;
    drive.medium.cut_at_random();
    for _ in 0..2 {
        let address = drive.serve().await?;
        let controller = connect(&address).await?;
        read_whole(&controller, &known, false).await?;
        drop(controller);
        drive.stop()?;
    }
    drive.check()?;
    Ok(errors)
}

fn nothing_is_lost(what: &str, cores: &'static str, faults: Faults) {
    if !can_run() {
        return;
    }
    let rounds = asked("CSD_CRASH_ROUNDS", ROUNDS_SHORT);
    let (mut errors, mut violations) = (0, Vec::new());
    for seed in (asked("CSD_CRASH_SEED", SEED)..).take(usize::try_from(rounds).unwrap()) {
        match on_host(seed, move || fail(seed, cores, faults)).and_then(|ended| ended) {
            Ok(more) => errors += more,
            Err(text) => violations.push(format!("seed {seed}: {text}")),
        }
    }
    let failed = violations.len();
    say(&format!("{what}: {rounds} rounds, {failed} with violations, {errors} errors injected"));
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    assert!(errors > 0, "nothing failed");
}

#[test]
fn writes_that_fail_lose_nothing_that_was_acknowledged() {
    let faults =
        Faults { write_error_in: 60, no_space_in: 200, sync_delay_us: 2000, ..Faults::default() };
    nothing_is_lost("failing writes, two cores", "2", faults);
}

const FAILING_SYNCS: Faults = Faults {
    sync_error_in: 30,
    sync_delay_us: 4000,
    write_error_in: 0,
    no_space_in: 0,
    lands_and_fails: None,
};

#[test]
fn a_sync_that_fails_loses_nothing_that_was_acknowledged() {
    nothing_is_lost("failing syncs, one core", "1", FAILING_SYNCS);
}

#[test]
fn a_sync_that_fails_under_two_cores_loses_nothing_that_was_acknowledged() {
    nothing_is_lost("failing syncs, two cores", "2", FAILING_SYNCS);
}

/// Stores into a segment whose header write ended in an error, and starts again.
async fn fail_a_header() -> Result<(), String> {
    let mut drive = Drive::new(&["--direct", "off"], &mut seeded(SEED));
    let controller = connect(&drive.serve().await?).await?;
    let kv = Kv::open(&controller, 2).map_err(|error| error.to_string())?;
    let key = Key::new(b"key").unwrap();
    let store = async |byte| kv.store(&key, vec![Buffer::from_slice(&[byte; 100])], 0).await;
    let lands_and_fails = Some(SEGMENT_MAGIC);
    drive.medium.set_faults(Faults { lands_and_fails, ..Faults::default() });
    assert!(store(1).await.is_err(), "no header was written");
    store(2).await.map_err(|error| error.to_string())?;
    let status = drive.status();
    for words in ["good, but with media errors", "write of 8192 bytes at", "os error 5"] {
        assert!(status.contains(words), "{words}: {status}");
    }
    drive.kill()?;
    drive.medium.cut(|_| true);
    let controller = connect(&drive.serve().await?).await?;
    let kv = Kv::open(&controller, 2).map_err(|error| error.to_string())?;
    let found = kv.retrieve(&key, 100).await.map_err(|error| error.to_string())?;
    assert!(found.is_some_and(|found| found[..] == [2; 100]), "what was acknowledged is there");
    drive.stop()?;
    drive.check()
}

#[test]
fn a_segment_header_that_landed_with_an_error_does_not_stop_the_next_start() {
    if can_run() {
        let ended = on_host(SEED, fail_a_header).and_then(|ended| ended);
        ended.unwrap_or_else(|text| panic!("{text}"));
    }
}
