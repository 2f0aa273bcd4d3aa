//! Chunks that a drive counts while hosts store, delete and overwrite, while cleaning moves values,
//! while the counting is paused, sent to other cores by changing policies, or its buffers exceed
//! their bound: every value that stays is counted once, and none twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::controller::CoreCounters;
use csd_drive::core_choice::decisions;
use csd_drive::dedup::Options;
use csd_drive::dedup::table::Counted;
use csd_drive::drive::Core;
use csd_nvme::kv::Key;
use csd_reactor::{Class, CoreId, core_count, core_local, post, random_u64, sleep};
use csd_sched::Policy;

use crate::lives::{Lives, NSID, SMALL, store};
use crate::seeds;

const CHUNK_BYTES: u32 = 4096;
const OPTIONS: Options = Options { chunk_bytes: CHUNK_BYTES, memory_bytes: 64 << 20, share: false };
const KEYS: u64 = 60;
const SELDOM: u64 = 400;

/// Values that were stored, by the number that gives a chunk its bytes.
#[derive(Clone, Debug, Default)]
struct Stored {
    /// Chunks of the value of each key.
    current: BTreeMap<u64, Vec<u64>>,
    /// Chunks of all values, each as often as it was stored, and the different ones.
    chunks: u64,
    different: BTreeSet<u64>,
}

impl Stored {
    fn add(&mut self, key: u64, chunks: Vec<u64>) {
        self.chunks += chunks.len() as u64;
        self.different.extend(&chunks);
        self.current.insert(key, chunks);
    }

    /// Returns the number of chunks of the current values, and of the different ones among them.
    fn left(&self) -> (u64, u64) {
        let all = self.current.values().flatten();
        let different: BTreeSet<&u64> = all.clone().collect();
        (all.count() as u64, different.len() as u64)
    }
}

fn draw(below: u64) -> u64 {
    random_u64() % below
}

fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

/// Returns the bytes of chunks.
fn bytes_of(chunks: &[u64]) -> Vec<u8> {
    let chunk = |number: &u64| number.to_le_bytes().repeat(CHUNK_BYTES as usize / 8);
    chunks.iter().flat_map(chunk).collect()
}

/// Stores and deletes values of 1 to 24 chunks, of which half repeat, or none.
async fn change(core: &Core, stored: &mut Stored, count: u64, repeats: bool) {
    for _ in 0..count {
        // As the transport does, so that windows of requests end.
        CoreCounters::add(&core.counters.writes, 1);
        // Some keys change seldom, so that cleaning finds their values between superseded ones.
        let which = if draw(4) == 0 { KEYS + draw(SELDOM) } else { draw(KEYS) };
        if draw(8) == 0 {
            core.kv.delete(NSID, key(which)).await.expect("deleted");
            stored.current.remove(&which);
            continue;
        }
        let first = (stored.chunks + 1) << 8;
        let chunk = |at| if repeats && draw(2) == 0 { draw(50) } else { first + at };
        let chunks: Vec<u64> = (0..1 + draw(24)).map(chunk).collect();
        store(core, key(which), &bytes_of(&chunks)).await.expect("stored");
        stored.add(which, chunks);
    }
}

/// Lets the counting of every core look at its settings.
fn look() {
    for number in 0..core_count() {
        let sent = post(CoreId(number), Class::System, || {
            core_local::<Core>().expect("the drive runs").gate.look();
        });
        sent.expect("the core runs");
    }
}

/// Waits until the counting has nothing left to do; returns the counts.
async fn counted(core: &Core) -> Counted {
    let control = &core.shared.services.dedup;
    loop {
        let steps = control.steps.load(Relaxed);
        sleep(Duration::from_secs(2)).await;
        if control.steps.load(Relaxed) == steps {
            return core.shared.dedup.as_ref().expect("it counts").counted();
        }
    }
}

/// Totals of some lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    /// Segments that were cleaned.
    cleaned: u64,
    chunks: u64,
    /// Tasks among the latest ones that were done on another core than their data's.
    moved: u64,
}

/// Lets a drive live twice.
fn run(seed: u64) -> Totals {
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 3).unwrap(), SMALL);
    lives.count_chunks(OPTIONS);
    // The log of some lives is cleaned before they end.
    let changes = if seed.is_multiple_of(15) { 600 } else { 40 };
    let repeats = !(seed / 10).is_multiple_of(2);
    let first = lives.live(move |core| async move {
        let mut stored = Stored::default();
        let control = &core.shared.services.dedup;
        for round in 0..6 {
            // Paused, slow, or as fast as it can.
            match (seed + round) % 3 {
                0 => control.pause(),
                1 => control.set_rate(Some(1 << 20)),
                _ => (),
            }
            let policy = Policy::ALL[usize::try_from((seed / 3 + round) % 4).unwrap()];
            core.shared.core_choice.set_policy(policy);
            change(&core, &mut stored, changes, repeats).await;
            control.resume();
            control.set_rate(None);
            look();
        }
        let counted = counted(&core).await;
        let log = decisions(&core.shared.core_choice);
        let steps = core.shared.services.dedup.steps.load(Relaxed);
        assert_eq!(log.decisions, steps, "a choice for each step");
        let moved = log.entries.iter().filter(|entry| entry.core() != entry.origin()).count();
        (stored, counted, core.shared.segments.cleaned_count(), moved as u64)
    });
    let (stored, found, cleaned, moved) = first.expect("it lives");
    // What was superseded before it was counted is not counted.
    let (least, different) = stored.left();
    assert!((least..=stored.chunks).contains(&found.chunks), "{found:?}: {least} chunks at least");
    let unique = found.unique_bytes / u64::from(CHUNK_BYTES);
    assert!((different..=stored.different.len() as u64).contains(&unique), "{found:?}");
    assert!(repeats || found.chunks == unique, "a value was counted twice: {found:?}");
    assert_eq!(found.bytes, found.chunks * u64::from(CHUNK_BYTES));
    // The next life reads everything from the medium, and nothing else is there.
    lives.cut_at_random();
    let again = lives.live(|core| async move { counted(&core).await }).expect("it lives again");
    let unique = again.unique_bytes / u64::from(CHUNK_BYTES);
    assert_eq!((again.chunks, unique), (least, different), "after a start");
    Totals { cleaned, chunks: found.chunks, moved }
}

#[test]
fn every_value_that_stays_is_counted_once() {
    let mut all = Totals::default();
    for one in seeds::each(seeds(), run) {
        all.cleaned += one.cleaned;
        all.chunks += one.chunks;
        all.moved += one.moved;
    }
    let count = seeds().count();
    println!("dedup: {count} seeds, {all:?}");
    assert!(count < 50 || all.cleaned > 0 && all.chunks > 0 && all.moved > 0);
}

/// Stores alone, without a change that supersedes one, are counted exactly.
#[test]
fn stores_are_counted_exactly() {
    for seed in 0..4 {
        let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), SMALL);
        lives.count_chunks(OPTIONS);
        let lived = lives.live(move |core| async move {
            let mut stored = Stored::default();
            for number in 0..KEYS {
                let repeated = number % 7;
                let chunks: Vec<u64> = (0..16).map(|at| (repeated << 8) + at).collect();
                store(&core, key(number), &bytes_of(&chunks)).await.expect("stored");
                stored.add(number, chunks);
            }
            (stored, counted(&core).await)
        });
        let (stored, found) = lived.expect("it lives");
        let unique = found.unique_bytes / u64::from(CHUNK_BYTES);
        assert_eq!((found.chunks, unique), (stored.chunks, stored.different.len() as u64));
        assert!((found.duplicate_share() - (1.0 - 7.0 / 60.0)).abs() < 1e-9, "{found:?}");
    }
}

#[test]
fn equal_seeds_of_counting_have_equal_counts() {
    assert_eq!(run(3), run(3));
}
