//! A drive that stops before a pass of its own scrub ends, again and again, still reads all of its
//! values.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use csd_kvlog::format::SHARDS;
use csd_kvlog::scrub::Damage;
use csd_nvme::kv::Key;
use csd_reactor::{Class, sleep, spawn};

use crate::lives::{Lives, NSID, SMALL, keys_of, stop, store};
use crate::places::places;
use crate::seeds;
use crate::words::words;

const VALUES: usize = 64;
const VALUE_BYTES: usize = 128 << 10;
/// A pass takes eight of these, and a life of the drive one.
const LIFE: Duration = Duration::from_secs(1);
const BYTES_PER_S: u64 = 1 << 20;
/// Number of lives that hardly ever misses a value: 7/8 to this power is below 1e-11.
const LIVES_MOST: usize = 200;

/// Returns the keys: of all shards, or of a single one, so that its segments are many.
fn keys(seed: u64) -> Vec<Key> {
    let shards = if seed.is_multiple_of(2) { 1 } else { SHARDS as usize };
    (0..shards).flat_map(|shard| keys_of(shard).take(VALUES / shards)).collect()
}

fn value(number: usize) -> Vec<u8> {
    words((number as u64 + 1) << 20, VALUE_BYTES)
}

/// Damages all values of a drive; returns after how many lives each of them was reported.
fn lives_until_all_are_read(seed: u64) -> usize {
    let mut lives = Lives::new(seed, 1, SMALL);
    let keys = keys(seed);
    let stored = keys.clone();
    let is_stored = lives.live(move |core| async move {
        for (number, key) in stored.into_iter().enumerate() {
            store(&core, key, &value(number)).await.expect("stored");
        }
        // Seals the log: recovery would take a damaged value at an open end for a torn one.
        stop(&core).await;
    });
    assert_eq!(is_stored, Ok(()));
    lives.cut_at_random();
    let values: Vec<Vec<u8>> = (0..VALUES).map(value).collect();
    let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    lives.disk.at_rest(|memory| {
        for (value, places) in values.iter().zip(places(memory, &values)) {
            assert_eq!(places.len(), 1, "no value was moved");
            memory.write(places[0], &[value[0] ^ 1]);
        }
    });
    let damaged: BTreeSet<_> = keys.into_iter().map(|key| (NSID, key)).collect();
    let found = Rc::<RefCell<BTreeSet<_>>>::default();
    for life in 1..=LIVES_MOST {
        let found_now = Rc::clone(&found);
        let is_over = lives.live(move |core| async move {
            drop(spawn(Class::Service, async move {
                let report = |damage: &Damage| {
                    found_now.borrow_mut().insert(damage.entry.expect("the records are sound"));
                };
                csd_drive::scrub::run(&core, BYTES_PER_S, report).await;
            }));
            sleep(LIFE).await;
        });
        assert_eq!(is_over, Ok(()));
        lives.cut_at_random();
        if *found.borrow() == damaged {
            return life;
        }
    }
    panic!("{} of {VALUES} values were read in {LIVES_MOST} lives", found.borrow().len());
}

#[test]
fn a_drive_that_is_often_restarted_checks_all_of_its_values() {
    let lives = seeds::each(seeds(), lives_until_all_are_read);
    let (fewest, most) = (lives.iter().min().unwrap(), lives.iter().max().unwrap());
    println!("scrub and restarts: {} seeds, {fewest} to {most} lives", lives.len());
    assert!(*fewest > 1, "a pass fits into a life");
}
