//! Marks of drives with a volatile cache, without hosts: failing media, clean stops, starts with
//! and without the option in turn, damaged marks. Only the end of the order of answers is lost, and
//! objects are durable when they are answered.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::drive::Core;
use csd_kvlog::check::check;
use csd_kvlog::format::FEATURE_FREED;
use csd_kvlog::mark::{MARK_OFFSETS, Mark};
use csd_kvlog::media::{FaultConfig, Faulty, Media};
use csd_nvme::kv::Key;
use csd_reactor::{Buffer, random_u64, sleep};

use crate::golden::{golden, restore};
use crate::injected::Injections;
use crate::lives::{Lives, NSID, SMALL, content, find, find_in, keys_in, stop, store, together};
use crate::order::Order;
use crate::seeds;

/// Keys of each namespace, spread over all shards.
const KEYS: u64 = 32;
const SHARDS: u64 = 16;
const LIVES: usize = 5;
const OBJECTS: u16 = 3;

type Shared = Rc<RefCell<Order>>;

/// Counts of what the runs have met.
#[derive(Debug, Default)]
struct Met {
    kept: u64,
    lost: u64,
    failed_changes: u64,
    failed_flushes: u64,
    injected: Injections,
    power_cuts: u64,
    kills: u64,
    cuts_in_recovery: u64,
    /// Writes that power cuts tore, and sectors that they lost; in kills all sectors land.
    torn_by_cuts: u64,
    lost_sectors: u64,
    stops: u64,
    cleaned: u64,
}

/// Returns the key of a number: of the users' namespace below [`KEYS`], of objects above.
fn key(number: u64) -> (u16, Key) {
    let nsid = if number < KEYS { NSID } else { OBJECTS };
    let (shard, index) = (number % SHARDS, number % KEYS / SHARDS);
    let mut keys = keys_in(nsid, usize::try_from(shard).unwrap());
    (nsid, keys.nth(usize::try_from(index).unwrap()).unwrap())
}

/// Changes a key, or flushes. The answers of one core have an order, as those of a connection.
async fn change(core: Rc<Core>, number: u64, is_heavy: bool, order: Shared, met: Rc<RefCell<Met>>) {
    let draw = random_u64();
    if draw.is_multiple_of(200) {
        let before = order.borrow_mut().now();
        match core.kv.flush().await {
            Ok(()) => order.borrow_mut().flushed(before),
            Err(_) => met.borrow_mut().failed_flushes += 1,
        }
        return;
    }
    let (nsid, key) = key(number);
    let bytes = match (draw >> 8) % 6 {
        0 => 0,
        5 if is_heavy => 200_000,
        4..6 => 20_000,
        _ => 50,
    };
    let state = (!(draw >> 16).is_multiple_of(6)).then(|| content(draw >> 24, bytes));
    let sent = order.borrow_mut().sent(number, state.clone(), Some(0));
    let done = match &state {
        Some(value) => core.kv.store(nsid, key, vec![Buffer::from_slice(value)], 0).await,
        None => core.kv.delete(nsid, key).await,
    };
    if done.is_err() {
        met.borrow_mut().failed_changes += 1;
        return;
    }
    let mut order = order.borrow_mut();
    order.answered(sent);
    if nsid == OBJECTS || core.shared.segments.epochs.is_none() {
        order.durable(sent);
    }
}

async fn verify(core: &Core, order: &Shared) -> Result<(), String> {
    let mut found = BTreeMap::new();
    let numbers = order.borrow().keys();
    for number in numbers {
        let (nsid, key) = key(number);
        let value = find_in(nsid, core, key).await.map_err(|status| status.to_string())?;
        found.insert(number, value);
    }
    order.borrow_mut().check(&found)
}

/// Puts faults around a disk; those of the life before are gone with the power.
fn with_faults(lives: Lives, seed: u64) -> (Lives, Arc<Faulty>) {
    let slot = Rc::new(RefCell::new(None));
    let place = Rc::clone(&slot);
    let lives = lives.on(move |media| {
        let inner = match &media {
            Media::Faulty(faulty) => faulty.inner().clone(),
            other => other.clone(),
        };
        let faulty = Arc::new(Faulty::new(inner, seed));
        *place.borrow_mut() = Some(Arc::clone(&faulty));
        Media::Faulty(faulty)
    });
    let faulty = slot.borrow_mut().take().expect("just made");
    (lives, faulty)
}

/// Work of one life.
#[derive(Clone, Copy)]
struct Work {
    bursts: u64,
    /// Number of keys: of the users' namespace, then of objects, whose changes close epochs.
    keys: u64,
    is_heavy: bool,
    /// True if it ends in a clean stop.
    stops: bool,
}

/// Changes keys in bursts, and counts what it meets.
async fn work(core: Rc<Core>, work: Work, order: Shared, met: Rc<RefCell<Met>>) {
    for _ in 0..work.bursts {
        let draw = random_u64();
        let numbers = (0..work.keys).filter(|number| draw >> number & 3 == 3);
        let changes = numbers.map(|number| {
            let (order, met) = (Rc::clone(&order), Rc::clone(&met));
            change(Rc::clone(&core), number, work.is_heavy, order, met)
        });
        together(changes.collect::<Vec<_>>()).await;
        if draw >> 60 == 0 {
            sleep(Duration::from_millis(draw >> 8 & 0x7FF)).await;
        }
    }
    if work.stops {
        stop(&core).await;
        let mut order = order.borrow_mut();
        let now = order.now();
        order.flushed(now);
    }
    let mut met = met.borrow_mut();
    met.stops += u64::from(work.stops);
    met.cleaned += core.shared.segments.cleaned_count();
}

/// Cuts the power during recovery, as often as is drawn.
fn cut_recovery(lives: &mut Lives, met: &RefCell<Met>) {
    while lives.draw(3) == 0 {
        let is_open = Rc::new(Cell::new(false));
        let opens = Rc::clone(&is_open);
        drop(lives.begin(move |_| {
            opens.set(true);
            std::future::pending::<()>()
        }));
        lives.world.run_for(Duration::from_micros(lives.draw(30_000)));
        lives.cut_at_random();
        met.borrow_mut().power_cuts += 1;
        met.borrow_mut().cuts_in_recovery += u64::from(!is_open.get());
    }
}

fn run(seed: u64, met: &Rc<RefCell<Met>>) -> Result<(), String> {
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 3).unwrap(), SMALL);
    let order = Shared::default();
    let (is_failing, is_heavy) = (seed % 3 == 1, seed % 3 == 2);
    for life in 0..=LIVES {
        let (faulted, faulty) = with_faults(lives, seed);
        lives = faulted;
        lives.with_cache(life < LIVES && lives.draw(4) > 0);
        if life > 0 {
            cut_recovery(&mut lives, met);
        }
        let faults = FaultConfig {
            failed_writes_ppm: 10_000,
            torn_writes_ppm: 20_000,
            failed_syncs_ppm: if lives.draw(2) == 0 { 10_000 } else { 0 },
            ..FaultConfig::default()
        };
        let ends = if is_failing { 1 + lives.draw(2) } else { lives.draw(3) };
        let (bursts, keys) = (if is_heavy { 40 } else { 20 }, KEYS * (1 + lives.draw(2)));
        let (known, seen, failing) = (Rc::clone(&order), Rc::clone(met), Arc::clone(&faulty));
        let begun = lives.begin(move |core| async move {
            verify(&core, &known).await?;
            if is_failing {
                failing.set(faults);
            }
            let load = Work { bursts, keys, is_heavy, stops: ends == 0 };
            work(core, load, known, seen).await;
            Ok::<(), String>(())
        });
        match ends {
            // The first life also formats the medium, to its end.
            1 if life > 0 => lives.world.run_for(Duration::from_micros(lives.draw(150_000))),
            _ => lives.end(&begun)??,
        }
        if let Some(ended) = begun.borrow_mut().take() {
            ended??;
        }
        let is_kill = lives.draw(4) == 0;
        if is_kill {
            lives.cut(|| 0)
        } else {
            lives.cut_at_random()
        }
        {
            let mut met = met.borrow_mut();
            met.kills += u64::from(is_kill);
            met.power_cuts += u64::from(!is_kill);
            met.injected.add(&faulty.injected);
        }
        // A prefix is no damage.
        let report = lives.inspect(|media| async move { check(&media).await.expect("checked") });
        if !report.damage.is_empty() {
            return Err(report.damage.join("; "));
        }
    }
    let (mut met, order) = (met.borrow_mut(), order.borrow());
    met.kept += order.kept;
    met.lost += order.lost;
    let losses = lives.disk.losses();
    met.torn_by_cuts += losses.torn_writes;
    met.lost_sectors += losses.lost_sectors;
    Ok(())
}

#[test]
fn a_failing_medium_with_a_volatile_cache_loses_the_end_of_the_answers_only() {
    let met = Rc::new(RefCell::new(Met::default()));
    for seed in seeds() {
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &met)));
        let again = seed + 1;
        let run = run.unwrap_or_else(|_| panic!("CSD_SIM_SEEDS={seed}..{again} repeats it"));
        assert_eq!(run, Ok(()), "CSD_SIM_SEEDS={seed}..{again} repeats it");
    }
    let met = met.borrow();
    println!("marks: {} seeds, {met:?}", seeds().count());
    let Injections { failed_writes, torn_writes, failed_syncs, .. } = met.injected;
    let failures =
        [met.failed_changes, met.failed_flushes, failed_writes, torn_writes, failed_syncs];
    let cuts = [met.power_cuts, met.kills, met.cuts_in_recovery, met.torn_by_cuts];
    let others = [met.kept, met.lost, met.stops, met.cleaned];
    let all_met = failures.iter().chain(&cuts).chain(&others).all(|count| *count > 0);
    assert!(all_met || seeds().count() < 50, "{met:?}");
}

fn first() -> Key {
    keys_in(NSID, 4).next().unwrap()
}

/// Stores a value with a volatile cache and flushes, stores another one, and ends as if killed.
fn flushed_once() -> Lives {
    let mut lives = Lives::new(5, 2, SMALL);
    lives.with_cache(true);
    lives
        .live(|core| async move {
            store(&core, first(), b"flushed").await.unwrap();
            core.kv.flush().await.unwrap();
            store(&core, first(), b"answered").await.unwrap();
            assert_eq!(find(&core, first()).await.unwrap().unwrap(), b"answered");
        })
        .unwrap();
    lives.cut(|| 0);
    lives
}

async fn damage(media: Media, copy: usize) {
    media.write(MARK_OFFSETS[copy] + 40, vec![Buffer::from_slice(&[0xA5])]).await.0.unwrap();
}

#[test]
fn one_damaged_copy_of_the_mark_loses_nothing_and_two_are_refused() {
    for damaged in [&[][..], &[0], &[1], &[0, 1]] {
        for is_cached in [true, false] {
            let mut lives = flushed_once();
            for copy in damaged.iter().copied() {
                lives.inspect(move |media| damage(media, copy));
            }
            let report = lives.inspect(|media| async move { check(&media).await.unwrap() });
            assert_eq!(report.damage.len(), damaged.len(), "{:?}", report.damage);
            lives.with_cache(is_cached);
            let found = lives.live(|core| async move { find(&core, first()).await });
            if damaged.len() == 2 {
                assert!(found.unwrap_err().contains("both copies of the mark"));
                continue;
            }
            assert_eq!(found.unwrap().unwrap().unwrap(), b"flushed");
            lives.cut_at_random();
            // The start wrote it again, or it counts no longer.
            let report = lives.inspect(|media| async move { check(&media).await.unwrap() });
            assert_eq!(report.damage, [""; 0]);
            let features = report.superblock.features_needed();
            assert_eq!(features, FEATURE_FREED | u64::from(is_cached));
        }
    }
}

#[test]
fn a_mark_that_no_longer_counts_cuts_nothing() {
    let mut lives = flushed_once();
    for (is_cached, value) in [(false, b"one"), (true, b"two"), (false, b"six")] {
        lives.with_cache(is_cached);
        lives
            .live(move |core| async move {
                store(&core, first(), value).await.unwrap();
                core.kv.flush().await.unwrap();
            })
            .unwrap();
        lives.cut(|| 0);
        let found = lives.live(|core| async move { find(&core, first()).await });
        assert_eq!(found.unwrap().unwrap().unwrap(), value);
        lives.cut(|| 1);
    }
}

#[test]
fn changes_without_a_flush_are_durable_after_a_second() {
    let mut lives = Lives::new(6, 1, SMALL);
    lives.with_cache(true);
    lives
        .live(|core| async move {
            store(&core, first(), b"value").await.unwrap();
            sleep(Duration::from_millis(1_100)).await;
        })
        .unwrap();
    lives.cut(|| 1);
    let found = lives.live(|core| async move { find(&core, first()).await });
    assert_eq!(found.unwrap().unwrap().unwrap(), b"value");
}

#[test]
fn media_of_version_1_are_refused_with_a_volatile_cache() {
    let mut lives = Lives::new(1, 1, SMALL);
    restore(&mut lives, &golden(1));
    lives.with_cache(true);
    let refused = lives.live(|_| std::future::ready(())).unwrap_err();
    assert!(refused.contains("--volatile-cache needs a medium of format version 2"), "{refused}");
    lives.cut_at_random();
    lives.with_cache(false);
    assert_eq!(lives.live(|_| std::future::ready(())), Ok(()));
}

#[test]
fn the_mark_on_the_medium_is_that_of_the_last_flush() {
    let lives = flushed_once();
    let copies = lives.inspect(|media| async move {
        let uuid = csd_kvlog::format::open(&media).await.unwrap().uuid();
        Mark::read(&media, &uuid).await.unwrap()
    });
    assert_eq!(copies[0], copies[1]);
    let mark = copies[0].expect("whole");
    let with_records = mark.positions.iter().filter(|position| position.end > 8192).count();
    assert_eq!(with_records, 1, "{mark:?}");
}
