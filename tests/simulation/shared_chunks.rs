//! Values that share chunks while hosts store, delete and overwrite, cleaning moves what they have,
//! chunks that no value has are deleted, and the power fails at any time: each key has the value
//! that was acknowledged last, and in the end nothing is left of what was deleted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::dedup::Options;
use csd_drive::drive::Core;
use csd_kvlog::check::check;
use csd_kvlog::media::{Faulty, Media};
use csd_kvlog::parts::pool_of;
use csd_nvme::kv::Key;
use csd_reactor::{Class, random_u64, sleep, spawn};

use crate::lives::{Lives, NSID, SMALL, find, stop, store, together};
use crate::seeds;

pub const CHUNK_BYTES: usize = 4096;
pub const OPTIONS: Options = Options { chunk_bytes: 4096, memory_bytes: 64 << 20, share: true };
const KEYS: u64 = 60;
/// Chunks that several values have.
const COMMON: u64 = 30;

/// Chunks of a value, by the numbers that give them their bytes; `None` for no value.
type Chunks = Option<Vec<u64>>;

/// Values that a key may have: the acknowledged one, and behind it those that may have come since.
type Model = Rc<RefCell<BTreeMap<u64, Vec<Chunks>>>>;

fn draw(below: u64) -> u64 {
    random_u64() % below
}

fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

/// Returns the bytes of a value: its chunks, and a short end.
fn bytes_of(chunks: &[u64]) -> Vec<u8> {
    let chunk = |number: &u64| number.to_le_bytes().repeat(CHUNK_BYTES / 8);
    let mut bytes: Vec<u8> = chunks.iter().flat_map(chunk).collect();
    let end = chunks.iter().sum::<u64>() % 100;
    bytes.extend(std::iter::repeat_n(7, usize::try_from(end).unwrap()));
    bytes
}

/// Stores and deletes values, and notes what is acknowledged.
async fn change(core: &Rc<Core>, model: &Model, count: u64) {
    for _ in 0..count {
        let which = draw(KEYS);
        let chunk = |_| if draw(3) > 0 { draw(COMMON) } else { COMMON + draw(1 << 40) };
        let new: Chunks = (draw(6) > 0).then(|| (0..1 + draw(12)).map(chunk).collect());
        let none = || vec![None];
        model.borrow_mut().entry(which).or_insert_with(none).push(new.clone());
        match &new {
            Some(chunks) => store(core, key(which), &bytes_of(chunks)).await.expect("stored"),
            None => core.kv.delete(NSID, key(which)).await.expect("deleted"),
        }
        model.borrow_mut().insert(which, vec![new]);
        if draw(4) == 0 {
            sleep(Duration::from_millis(draw(40))).await;
        }
    }
}

/// Compares all values with the model, which then has what was found.
async fn compare(core: &Core, model: &Model) {
    for number in 0..KEYS {
        let found = find(core, key(number)).await.expect("readable");
        let allowed = model.borrow().get(&number).cloned().unwrap_or_else(|| vec![None]);
        let same = |chunks: &Chunks| chunks.as_deref().map(bytes_of) == found;
        let same = allowed.iter().rfind(|chunks| same(chunks)).cloned();
        let same = same.unwrap_or_else(|| panic!("key {number} has none of {allowed:?}"));
        model.borrow_mut().insert(number, vec![same]);
    }
}

/// Returns the number of shared chunks.
pub fn pool_keys(core: &Core) -> u64 {
    core.shared.segments.namespace(pool_of(NSID)).expect("a pool").keys.load(Relaxed)
}

/// Waits until nothing is left to share or to delete.
pub async fn settle(core: &Core) {
    let services = &core.shared.services;
    let steps = || services.dedup.steps.load(Relaxed) + services.collect.steps.load(Relaxed);
    let mut before = u64::MAX;
    while before != steps() {
        before = steps();
        sleep(Duration::from_secs(3)).await;
    }
    for service in [&services.dedup, &services.collect] {
        assert_eq!(service.failure(), None);
    }
}

/// Deletes everything, and waits until nothing is left of it.
async fn delete_all(core: &Rc<Core>) {
    let delete = |number| {
        let core = Rc::clone(core);
        async move { core.kv.delete(NSID, key(number)).await.expect("deleted") }
    };
    together((0..KEYS).map(delete)).await;
    settle(core).await;
    // A mark may be another chunk's, and each pass draws others.
    for _ in 0..20 {
        if pool_keys(core) == 0 {
            break;
        }
        for number in [0, 1] {
            store(core, key(number), &bytes_of(&[1, 2, 3])).await.expect("stored");
        }
        settle(core).await;
        together([0, 1].map(delete)).await;
        settle(core).await;
    }
    assert_eq!((pool_keys(core), core.shared.segments.used_bytes(NSID)), (0, 0));
}

/// Totals of some lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    /// Segments that were cleaned in all lives but the last.
    cleaned: u64,
    /// Shared chunks in the end, before everything was deleted.
    shared: u64,
    /// Bytes in use then, and those of the values.
    used_bytes: u64,
    value_bytes: u64,
}

fn run(seed: u64) -> Totals {
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 3).unwrap(), SMALL);
    lives.count_chunks(OPTIONS);
    let is_cached = seed % 4 == 1;
    lives.with_cache(is_cached);
    let model = Model::default();
    // Some drives are written so much that they clean.
    let (changes, life_ms) = if seed.is_multiple_of(10) { (1800, 30_000) } else { (150, 4000) };
    let mut cleaned = 0;
    for _ in 0..4 {
        let of_life = Rc::clone(&model);
        let lived = lives.live(move |core| async move {
            compare(&core, &of_life).await;
            if is_cached {
                // What is flushed stays, whatever happens to it meanwhile.
                change(&core, &of_life, changes).await;
                core.kv.flush().await.expect("flushed");
            } else {
                let core = Rc::clone(&core);
                let changing = async move { change(&core, &of_life, changes).await };
                drop(spawn(Class::Foreground, changing));
            }
            sleep(Duration::from_millis(draw(life_ms))).await;
            core.shared.segments.cleaned_count()
        });
        cleaned += lived.expect("it lives");
        lives.cut_at_random();
    }
    let last = Rc::clone(&model);
    let lived = lives.live(move |core| async move {
        compare(&core, &last).await;
        settle(&core).await;
        compare(&core, &last).await;
        let lengths =
            last.borrow().values().map(|it| it[0].as_deref().map_or(0, bytes_length)).sum();
        let totals = Totals {
            cleaned,
            shared: pool_keys(&core),
            used_bytes: core.shared.segments.used_bytes(NSID),
            value_bytes: lengths,
        };
        delete_all(&core).await;
        totals
    });
    let totals = lived.expect("it lives");
    lives.cut_at_random();
    let damage = lives.inspect(|media| async move { check(&media).await.expect("read").damage });
    assert!(damage.is_empty(), "{damage:?}");
    totals
}

fn bytes_length(chunks: &[u64]) -> u64 {
    bytes_of(chunks).len() as u64
}

#[test]
fn every_key_has_its_value_and_nothing_is_left_of_what_was_deleted() {
    let mut all = Totals::default();
    for one in seeds::each(seeds(), run) {
        all.cleaned += one.cleaned;
        all.shared += one.shared;
        all.used_bytes += one.used_bytes;
        all.value_bytes += one.value_bytes;
    }
    let count = seeds().count();
    println!("shared chunks: {count} seeds, {all:?}");
    assert!(count < 10 || all.cleaned > 0 && all.shared > 0);
    assert!(all.used_bytes < all.value_bytes, "sharing saves space: {all:?}");
}

/// Stores two values that come to share chunks, replaces one and deletes the other, each when the
/// drive has done what followed from the change before.
async fn few_changes(core: Rc<Core>, model: Model) {
    let change = async |which: u64, new: Chunks| {
        model.borrow_mut().entry(which).or_insert_with(|| vec![None]).push(new.clone());
        match &new {
            Some(chunks) => store(&core, key(which), &bytes_of(chunks)).await.expect("stored"),
            None => core.kv.delete(NSID, key(which)).await.expect("deleted"),
        }
        model.borrow_mut().insert(which, vec![new]);
    };
    change(0, Some(vec![1, 2, 3])).await;
    change(1, Some(vec![4, 2, 1])).await;
    settle(&core).await;
    assert_eq!(pool_keys(&core), 2);
    change(0, Some(vec![5, 2])).await;
    settle(&core).await;
    change(1, None).await;
    settle(&core).await;
    compare(&core, &model).await;
}

/// Cuts the power when so many accesses of the medium have begun; returns true if the changes had
/// ended before.
fn cut_after(accesses: usize) -> bool {
    let mut faulty = None;
    let mut lives = Lives::new(7, 1 + accesses % 2, SMALL).on(|media| {
        let medium = Arc::new(Faulty::new(media, 7));
        faulty = Some(Arc::clone(&medium));
        Media::Faulty(medium)
    });
    let faulty = faulty.expect("made");
    lives.count_chunks(OPTIONS);
    // A drive that is not formatted to its end is none.
    lives.live(|_| async {}).expect("it lives");
    let before = faulty.begun().len();
    let model = Model::default();
    let of_life = Rc::clone(&model);
    lives.cut_at_random();
    let working = lives.begin(move |core| few_changes(core, of_life));
    lives.cut_after(&faulty, before + accesses, &working);
    let has_ended = working.borrow().is_some();
    let last = Rc::clone(&model);
    let lived = lives.live(move |core| async move {
        compare(&core, &last).await;
        settle(&core).await;
        compare(&core, &last).await;
        delete_all(&core).await;
    });
    lived.expect("it lives");
    has_ended
}

#[test]
fn the_power_fails_at_each_access_of_the_medium() {
    let ended = (1..).find(|accesses| cut_after(*accesses)).expect("the changes end");
    assert!(ended > 100, "{ended} accesses");
    println!("shared chunks: the power failed at each of {ended} accesses");
}

/// Keys with one value, whose chunks they share.
const SHARERS: u64 = 64;

/// Deletes keys with one value one after the other, and kills the drive between any two: those that
/// are left have the value, and in the end nothing is left of it.
fn kill_between_deletions(seed: u64) {
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 3).unwrap(), SMALL);
    lives.count_chunks(OPTIONS);
    let stored = lives.live(|core| async move {
        for number in 0..SHARERS {
            store(&core, key(number), &bytes_of(&[1, 2])).await.expect("stored");
        }
        settle(&core).await;
        pool_keys(&core)
    });
    assert_eq!(stored, Ok(2), "all of them share both chunks");
    for gone in 0..=SHARERS {
        lives.cut_at_random();
        let lived = lives.live(move |core| async move {
            // A pass over all lists is at any place when the key is deleted, and at the cut.
            sleep(Duration::from_micros(draw(2_000_000))).await;
            for number in 0..SHARERS {
                let found = find(&core, key(number)).await.expect("readable");
                let wanted = (number >= gone).then(|| bytes_of(&[1, 2]));
                assert!(found == wanted, "key {number} after {gone} deletions");
            }
            if gone < SHARERS {
                core.kv.delete(NSID, key(gone)).await.expect("deleted");
                sleep(Duration::from_micros(draw(2_000_000))).await;
            } else {
                settle(&core).await;
                assert_eq!((pool_keys(&core), core.shared.segments.used_bytes(NSID)), (0, 0));
            }
        });
        assert_eq!(lived, Ok(()));
    }
}

#[test]
fn a_value_of_64_keys_outlives_63_of_them_with_a_kill_between_any_two_deletions() {
    // A kill falls into each of 65 lives, so that every tenth seed is enough.
    let seeds = seeds();
    seeds::each(seeds.start..seeds.start + (seeds.end - seeds.start).div_ceil(10), |seed| {
        kill_between_deletions(seed);
    });
}

/// Stops a drive while its values come to share chunks, or are deleted.
fn stop_meanwhile(seed: u64) {
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 3).unwrap(), SMALL);
    lives.count_chunks(OPTIONS);
    let model = Model::default();
    for _ in 0..3 {
        let of_life = Rc::clone(&model);
        let lived = lives.live(move |core| async move {
            compare(&core, &of_life).await;
            change(&core, &of_life, 60).await;
            sleep(Duration::from_micros(draw(200_000))).await;
            stop(&core).await;
        });
        lived.expect("it lives");
        lives.cut(|| 0);
        let damage =
            lives.inspect(|media| async move { check(&media).await.expect("read").damage });
        assert!(damage.is_empty(), "{damage:?}");
    }
}

#[test]
fn a_stop_meanwhile_leaves_a_sound_medium() {
    seeds::each(seeds(), stop_meanwhile);
}
