//! Two drives that work for a host fall silent to each other in the middle of their commands: no
//! byte passes between them any more, and neither sees its connection end. The host's repair or
//! protect ends while they are silent, and no piece is lost or wrong. `peers/silent.rs` looks at
//! single tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_initiator::Options;
use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::{Entry, rebuild};
use csd_store::layout::Scheme;
use csd_store::object::{self, Arrange, Encode, On, PutOptions};
use csd_store::repair::{self, Limits};

use super::history::CHUNK_BYTES;
use super::host::read;
use super::pace::{EMPTIED, Told, ask, begin, empty, options_of, put_bytes};
use super::pieces::{Sound, left_after_reclaim};
use super::repair::no_limits;
use super::{DRIVES, Lane, plan};
use crate::words::words;

const NAME: &str = "object";
/// Chunks of the object: many more stripes than drives work on at once.
const CHUNKS: u64 = 96;
/// Time after which a drive gives up a command to a peer that is silent.
const COMMAND: Duration = Duration::from_secs(10);
/// Longer than drives go on with a task of a host that is gone.
const LATE: Duration = Duration::from_secs(15);

fn content() -> Vec<u8> {
    words(1 << 32, usize::try_from(CHUNKS * CHUNK_BYTES - 100).unwrap())
}

/// Connects as `csd` does: hosts wait longer for drives than those for each other.
async fn connect() -> Array {
    Array::connect_with(&plan(), &Options::default(), GUARDED).await
}

/// Puts the object; protected if it is spread and not `plain`.
fn put(lane: &Lane, on: On, arrange: Arrange, plain: bool) -> Entry {
    ask(lane, 0, async move |array| {
        let mut options = PutOptions { on, arrange, ..options_of(NAME) };
        options.protect = options.protect.filter(|_| !plain);
        put_bytes(&array, &options, content()).await
    })
}

/// Parts a drive from others once the work of host 0 has made some progress, until it ends. Returns
/// its result, and the time for which it went on.
fn part<T: 'static>(
    lane: &Lane,
    (one, others): (usize, &[usize]),
    work: impl AsyncFnOnce(object::Progress) -> T + 'static,
) -> (T, Duration) {
    let done = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&done);
    let progress = object::Progress::new(move |bytes| {
        counted.fetch_add(bytes, Relaxed);
    });
    let told: Told<T> = begin(lane, 0, async move |_| work(progress).await);
    lane.wait("some progress", || done.load(Relaxed) > 0);
    let machine = |drive: &usize| lane.drives[*drive].machine;
    others.iter().for_each(|other| lane.world.partition(machine(&one), machine(other)));
    let begun = lane.world.now();
    lane.wait("the host", || !lane.world.is_running(lane.hosts[0]));
    let went_on = lane.world.now().since(begun);
    others.iter().for_each(|other| lane.world.heal(machine(&one), machine(other)));
    (told.take().expect("the host has answered"), went_on)
}

/// Checks that the media have all pieces, and that nothing that was held back has left others.
fn check(lane: &Lane) {
    lane.world.run_for(LATE);
    let entry = ask(lane, 1, async |array| object::lookup(&array, NAME).await);
    let entry = entry.expect("it is there");
    assert_eq!(missing(&entry), 0, "pieces stand in the entry as missing");
    let sound = Sound::at_rest(&lane.media_at_rest(), &entry).expect("it is protected");
    assert!(sound.is_full(), "pieces are lacking");
    assert!(sound.differences(&entry, &content()).is_empty());
    let left = left_after_reclaim(lane);
    assert!(left.is_empty(), "{left:?}");
}

/// Returns the number of pieces that the entry says are missing.
fn missing(entry: &Entry) -> u64 {
    let (_, parity) = entry.protected().expect("it is protected");
    parity.missing.count()
}

/// Reads the object with another host.
fn reads(lane: &Lane) {
    ask(lane, 1, async |array| {
        let entry = object::lookup(&array, NAME).await.expect("it is there");
        let (bytes, done) = read(&array, entry).await;
        done.expect("reads");
        assert!(bytes == content(), "other bytes");
    });
}

/// Returns each of the drives from which another one is parted, and all of them.
fn others(one: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..DRIVES).filter(|other| *other != one).collect();
    all.iter().map(|other| vec![*other]).chain([all.clone()]).collect()
}

/// Repairs the object on the drive that was emptied, while that is parted from others. Returns true
/// if commands between them have stalled.
fn repair_stalls(seed: u64, on: On, others: &[usize]) -> bool {
    let mut lane = Lane::new(seed, GUARDED);
    lane.start_drives();
    let entry = put(&lane, on, Arrange::Spread, false);
    empty(&mut lane);
    ask(&lane, 0, async |array| {
        rebuild::rebuild(&array, DriveIndex::new(EMPTIED)).await.expect("rebuilds")
    });
    let (found, went_on) = part(&lane, (EMPTIED, others), async |progress| {
        let limits = Limits { progress, ..no_limits(repair::On::Drives) };
        repair::repair(&connect().await, &[entry], &limits).await
    });
    let told = format!("{on:?}, {others:?}: {went_on:?}, {found:?}");
    let has_stalled = went_on >= COMMAND;
    assert!(found.is_whole() && found.by_drives > 0, "{told}");
    // The host has rebuilt the pieces for which the drive lacked others.
    assert_eq!(found.by_drives < found.rebuilt, has_stalled, "{told}");
    reads(&lane);
    check(&lane);
    has_stalled
}

#[test]
fn a_repair_ends_although_drives_stall_to_the_one_that_rebuilds() {
    for on in [On::Kv, On::Block] {
        let stalled = (0..).zip(others(EMPTIED)).map(|(seed, others)| {
            // By its number, a drive is a source of some stripes only.
            usize::from(repair_stalls(seed, on, &others))
        });
        assert!(stalled.sum::<usize>() > 2, "{on:?}: hardly any command was on its way");
    }
}

/// Has drives encode the object while one of them is parted from others. Returns true if commands
/// between them have stalled.
fn protect_stalls(seed: u64, on: On, arrange: Arrange, further: usize) -> bool {
    let lane = Lane::new(seed, GUARDED);
    lane.start_drives();
    let entry = put(&lane, on, arrange, true);
    // The drive of a whole object encodes all of it.
    let one = usize::from(entry.members[0]);
    let others = [(one + further) % DRIVES];
    let (done, went_on) = part(&lane, (one, &others), async |progress| {
        let scheme = Scheme::new(2, 2).unwrap();
        object::protect(&connect().await, NAME, scheme, Encode::Drives, &progress).await
    });
    let done = done.unwrap_or_else(|error| panic!("{on:?}, d{one}, {others:?}: {error}"));
    let told = format!("{on:?}, d{one}, {others:?}: {went_on:?}, {:?}", done.stored.warnings);
    reads(&lane);
    // Pieces that their drives did not acknowledge stand in the entry, for a repair.
    let entry = done.stored.entry;
    if missing(&entry) > 0 {
        assert!(went_on >= COMMAND, "{told}");
        let found = ask(&lane, 1, async move |array| {
            repair::repair(&array, &[entry], &no_limits(repair::On::Drives)).await
        });
        assert!(found.is_whole(), "{told}");
    }
    check(&lane);
    went_on >= COMMAND
}

#[test]
fn a_protect_ends_although_two_of_the_drives_that_encode_stall_to_each_other() {
    for arrange in [Arrange::Spread, Arrange::Whole] {
        let mut stalled = 0;
        for on in [On::Kv, On::Block] {
            for further in 1..DRIVES {
                let seed = further as u64;
                stalled += usize::from(protect_stalls(seed, on, arrange.clone(), further));
            }
        }
        assert!(stalled > 1, "{arrange:?}: hardly any command was on its way: {stalled}");
    }
}
