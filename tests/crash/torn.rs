//! A group of two records that a power cut tears at a chosen place, and two starts after it: both
//! serve the value acknowledged before, and the medium is sound.

use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Address, Controller, Kv, Options};
use csd_kvlog::shard_of;
use csd_nvme::kv::Key;
use csd_reactor::{Buffer, Class, JoinHandle, now, sleep, spawn};
use rustix::process::Signal;

use crate::drive::Drive;
use crate::harness::signal;
use crate::{can_run, on_host, seeded};

const NSID: u16 = 2;
const SECTOR_BYTES: u64 = crate::cache::SECTOR_BYTES as u64;
const PAGE_BYTES: u64 = 4096;
/// Bytes before the group in its page: the groups of a value of 1,000 bytes and of one of 20 bytes,
/// each padded to a whole sector. The drive writes them again with the group.
const BEFORE_BYTES: u64 = 3 * SECTOR_BYTES + SECTOR_BYTES;
/// Number of tries: two records form a group if the drive is busy with a third, which the test
/// cannot observe.
const TRIES: usize = 20;
const LIMIT: Duration = Duration::from_secs(600);

/// Returns three keys of one shard.
fn keys() -> [Key; 3] {
    let all = (0u32..).map(|number| Key::new(&number.to_be_bytes()).unwrap());
    let mut of_one = all.filter(|key| shard_of(&(NSID, *key)) == 0);
    [(); 3].map(|()| of_one.next().expect("endless"))
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let start = now();
    while !done() {
        assert!(start.elapsed() < LIMIT, "never: {what}");
        sleep(Duration::from_millis(1)).await;
    }
}

fn store(kv: &Rc<Kv>, key: Key, bytes: usize) -> JoinHandle<bool> {
    let kv = Rc::clone(kv);
    let value = vec![Buffer::from_slice(&vec![bytes.to_le_bytes()[0]; bytes])];
    spawn(Class::Foreground, async move { kv.store(&key, value, 0).await.is_ok() })
}

async fn connect(address: &Address) -> (Controller, Rc<Kv>) {
    let controller = Controller::connect(address, &Options::default()).await.unwrap();
    let kv = Rc::new(Kv::open(&controller, NSID.into()).unwrap());
    (controller, kv)
}

/// Makes the drive write a group of two records without a sync, and cuts so that only its first
/// `landing_bytes` are on the medium; returns false if the records did not form a group. One record
/// alone must end before a page that both together reach.
async fn tear(drive: &mut Drive, bytes: usize, landing_bytes: u64) -> bool {
    let [x, a, b] = keys();
    let address = drive.serve().await.unwrap();
    let (_controller, kv) = connect(&address).await;
    assert!(store(&kv, x, 1000).await);
    let medium = std::sync::Arc::clone(&drive.medium);
    medium.hold_syncs(true, 0);
    let first = store(&kv, b, 20);
    until("a sync", || medium.syncing() == 1).await;
    let before = medium.unsynced_writes().keys().next_back().copied();
    let pair = [store(&kv, a, 40), store(&kv, x, bytes)];
    for _ in 0..50 {
        // Each answer takes a turn of the drive, in which it takes all earlier requests.
        assert!(kv.exist(&x).await.unwrap());
    }
    medium.hold_syncs(true, 1);
    assert!(first.await);
    let group = || medium.unsynced_writes().into_iter().find(|(write, _)| Some(*write) > before);
    until("the group", || medium.syncing() == 1 && group().is_some()).await;
    let (write, sectors) = group().expect("just seen");
    // A header has 64 bytes, and records stand at multiples of 64.
    let together = 128 + (64 + bytes as u64).next_multiple_of(64);
    let pages = |bytes: u64| (BEFORE_BYTES + bytes).next_multiple_of(PAGE_BYTES);
    assert!(pages(together - 128) < pages(together), "one record takes as many pages");
    let came_together = sectors * SECTOR_BYTES == pages(together);
    let landing_bytes = BEFORE_BYTES + landing_bytes;
    signal(drive.pid(), Signal::KILL);
    // Before the process ends, because its end waits for the sync that is held.
    medium.cut(|old| old.write == write && old.index < landing_bytes / SECTOR_BYTES);
    drive.kill().unwrap();
    for stored in pair {
        assert!(!stored.await, "nothing of the group was acknowledged");
    }
    came_together
}

async fn serves_what_was_acknowledged(drive: &mut Drive) {
    let [x, a, b] = keys();
    for start in ["first", "second", "third"] {
        let address = drive.serve().await.unwrap_or_else(|text| panic!("{start} start: {text}"));
        let (controller, kv) = connect(&address).await;
        for (key, bytes) in [(x, 1000usize), (b, 20)] {
            let found = kv.retrieve(&key, 1 << 20).await;
            let found = found.unwrap_or_else(|error| panic!("{start} start: {error}"));
            let expected = vec![bytes.to_le_bytes()[0]; bytes];
            let whole = found.is_some_and(|found| found[..] == expected);
            assert!(whole, "{start} start: an acknowledged value is not there");
        }
        // If it landed as a whole it may be there; it was not acknowledged.
        if let Some(found) = kv.retrieve(&a, 100).await.unwrap() {
            assert!(found[..] == [40; 40], "{start} start");
        }
        drop((controller, kv));
        drive.stop().unwrap();
    }
    drive.check().unwrap();
}

fn torn_group_loses_nothing(bytes: usize, landing_bytes: u64) {
    if !can_run() {
        return;
    }
    let ended = on_host(1, move || async move {
        for seed in 0..TRIES as u64 {
            let mut drive = Drive::new(&["--log-level", "warn"], &mut seeded(seed));
            if tear(&mut drive, bytes, landing_bytes).await {
                return serves_what_was_acknowledged(&mut drive).await;
            }
        }
        panic!("the records never came together in {TRIES} tries");
    });
    ended.unwrap_or_else(|text| panic!("{text}"));
}

#[test]
fn a_group_torn_behind_its_first_page_loses_nothing() {
    torn_group_loses_nothing(7 * 4096 + 1984, PAGE_BYTES - BEFORE_BYTES);
}

#[test]
fn a_group_torn_behind_its_first_sector_loses_nothing() {
    torn_group_loses_nothing(1984, SECTOR_BYTES);
}
