//! List next to writers, with both kinds of index: a key that exists all the time is returned
//! exactly once, whatever the sizes of the pages; the order survives restarts and does not depend
//! on the number of cores; other commands get their turns.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use csd_drive::drive::Core;
use csd_kvlog::IndexKind;
use csd_nvme::kv::{Key, KeyList};
use csd_nvme::status::Status;
use csd_reactor::{Class, random_u64, sleep, spawn, yield_now};

use crate::lives::{Lives, NSID, SMALL, index_of, store, together};
use crate::seeds;

/// Number of keys that exist all the time.
const STABLE: u32 = 300;
/// Number of keys that come and go.
const FLEETING: u32 = 60;
/// Number of changes of theirs next to which keys are listed.
const CHANGES: u64 = 100;

/// Returns keys of several lengths: the stable ones, then the fleeting ones.
fn key(number: u32) -> Key {
    let bytes = (u64::from(number) * 0x9E37_79B9).to_be_bytes();
    Key::new(&[&bytes[..], &bytes].concat()[3..][..5 + number as usize % 9]).unwrap()
}

/// Lists all keys; `draw` chooses the bytes of each List, and the time between two.
async fn list(core: &Core, mut draw: impl FnMut() -> u64) -> Result<Vec<Key>, Status> {
    let mut all: Vec<Key> = Vec::new();
    loop {
        sleep(Duration::from_micros(draw() % 300)).await;
        let size = u32::try_from(48 + draw() % 2000).unwrap();
        let from = all.last().copied();
        let data = core.kv.list(NSID, from, size).await?;
        let mut keys = KeyList::parse(&data).expect("a list of keys");
        if keys.first() == from.as_ref() && from.is_some() {
            keys.remove(0);
        }
        if keys.is_empty() {
            return Ok(all);
        }
        all.extend(keys);
    }
}

async fn fill(core: &Rc<Core>, numbers: impl Iterator<Item = u32>) {
    let stores = numbers.map(|number| {
        let core = Rc::clone(core);
        async move { store(&core, key(number), b"value").await }
    });
    assert_eq!(together(stores).await.into_iter().collect::<Result<Vec<()>, _>>().err(), None);
}

/// Stores and deletes fleeting keys until it is over.
async fn churn(core: Rc<Core>, is_over: Rc<Cell<bool>>, changes: Rc<Cell<u64>>) {
    while !is_over.get() {
        let draw = random_u64();
        let key = key(STABLE + u32::try_from(draw >> 32).unwrap() % FLEETING);
        let changed = match draw % 2 {
            0 => store(&core, key, b"fleeting").await,
            _ => core.kv.delete(NSID, key).await,
        };
        changed.expect("changed");
        changes.set(changes.get() + 1);
    }
}

/// Lists next to writers until these have made [`CHANGES`]. Returns the number of their changes,
/// and a last list.
async fn listed_next_to_writers(core: Rc<Core>) -> (u64, Vec<Key>) {
    fill(&core, 0..STABLE).await;
    let (is_over, changes) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
    let writer = || churn(Rc::clone(&core), Rc::clone(&is_over), Rc::clone(&changes));
    let writers: Vec<_> = (0..3).map(|_| spawn(Class::Foreground, writer())).collect();
    let stable: BTreeSet<Key> = (0..STABLE).map(key).collect();
    let known: BTreeSet<Key> = (0..STABLE + FLEETING).map(key).collect();
    while changes.get() < CHANGES {
        let all = list(&core, random_u64).await.expect("listed");
        let once: BTreeSet<Key> = all.iter().copied().collect();
        assert_eq!(once.len(), all.len(), "a key twice");
        assert_eq!(stable.difference(&once).next(), None, "a key is missing");
        assert_eq!(once.difference(&known).next(), None, "a key that was never stored");
    }
    is_over.set(true);
    for writer in writers {
        writer.await;
    }
    (changes.get(), list(&core, random_u64).await.expect("listed"))
}

#[test]
fn every_key_is_listed_exactly_once_next_to_writers() {
    let mut changes = 0;
    for seed in seeds() {
        let cores = 1 + usize::try_from(seed % 3).unwrap();
        let mut lives = Lives::new(seed, cores, SMALL).with_index(index_of(seed), None);
        let again = format!("CSD_SIM_SEEDS={seed}..{} repeats it", seed + 1);
        let lived = lives.live(listed_next_to_writers);
        let (count, before) = lived.unwrap_or_else(|why| panic!("{why}: {again}"));
        changes += count;
        lives.cut_at_random();
        let after = lives.live(|core| async move { list(&core, random_u64).await }).unwrap();
        assert!(Ok(before) == after, "another order after a restart: {again}");
    }
    println!("lists: {} seeds, {changes} changes next to them", seeds().count());
}

#[test]
fn the_order_of_a_list_does_not_depend_on_the_number_of_cores() {
    for kind in [IndexKind::Hash, IndexKind::Ordered] {
        let lists = [1, 2, 5].map(|cores| {
            let mut lives = Lives::new(8, cores, SMALL).with_index(kind, None);
            let listed = lives.live(|core| async move {
                fill(&core, 0..STABLE).await;
                list(&core, random_u64).await
            });
            listed.unwrap().unwrap()
        });
        assert!(lists[0] == lists[1] && lists[1] == lists[2], "{kind}");
        assert_eq!(lists[0].is_sorted(), kind == IndexKind::Ordered, "{kind}");
    }
}

/// One List of all keys gives way to other tasks of its core for each page of a shard.
#[test]
fn a_list_gives_way_to_other_commands() {
    for kind in [IndexKind::Hash, IndexKind::Ordered] {
        let lived = Lives::new(1, 1, SMALL).with_index(kind, None).live(|core| async move {
            let count = 4000;
            fill(&core, 0..count).await;
            let turns = Rc::new(RefCell::new(0u32));
            let other = Rc::clone(&turns);
            let counter = spawn(Class::Foreground, async move {
                loop {
                    *other.borrow_mut() += 1;
                    yield_now().await;
                }
            });
            let before = *turns.borrow();
            let data = core.kv.list(NSID, None, 1 << 20).await.expect("listed");
            let turns = *turns.borrow() - before;
            drop(counter);
            (KeyList::parse(&data).expect("a list of keys").len(), turns, count)
        });
        let (listed, turns, count) = lived.unwrap();
        assert_eq!(listed, count as usize);
        assert!(turns >= count / 64, "{kind}: {turns} turns of others next to {count} keys");
    }
}

/// Tombstones fill no turn: a namespace whose keys are all deleted is listed in turns as well.
#[test]
fn deleted_keys_are_passed_over_in_turns() {
    let lived = Lives::new(2, 1, SMALL).with_index(IndexKind::Hash, None).live(|core| async move {
        fill(&core, 0..2000).await;
        for number in (0..2000).filter(|number| *number != 700) {
            core.kv.delete(NSID, key(number)).await.expect("deleted");
        }
        list(&core, || 0).await
    });
    assert_eq!(lived.unwrap(), Ok(vec![key(700)]));
}
