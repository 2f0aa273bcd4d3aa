//! Limits as the drive announces them: two kv namespaces share the room and the memory for keys,
//! and each can store what it announces.

use std::rc::Rc;

use csd_drive::drive::Core;
use csd_kvlog::IndexKind;
use csd_kvlog::record::Content;
use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, random_u64};

use crate::lives::{Lives, NSID, SMALL, index_of};

const OBJECTS: u16 = 3;

fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

async fn store(core: &Core, nsid: u16, number: u64, bytes: usize) -> Result<(), Status> {
    core.kv.store(nsid, key(number), vec![Buffer::zeroed(bytes)], 0).await
}

/// Returns the bytes that a namespace announces to have room for.
fn room(core: &Core, nsid: u16) -> u64 {
    let segments = &core.shared.segments;
    let used = &segments.namespace(nsid).expect("a kv namespace").used_bytes;
    segments.size_bytes(nsid) - used.load(std::sync::atomic::Ordering::Relaxed)
}

/// Fills both namespaces in turn until what is announced is too little; returns what each has.
async fn fill(core: &Core, first: u64) -> [Vec<u64>; 2] {
    let mut stored = [Vec::new(), Vec::new()];
    for number in first.. {
        let which = usize::try_from(number % 2).unwrap();
        let nsid = [NSID, OBJECTS][which];
        let bytes = [100, 3_000, 20_000, 60_000][usize::try_from(random_u64() % 4).unwrap()];
        let takes = core.shared.segments.space(Content::Value(u32::try_from(bytes).unwrap()));
        let announced = room(core, nsid);
        assert_eq!(announced, room(core, NSID + OBJECTS - nsid), "both share it");
        let result = store(core, nsid, number, bytes).await;
        if takes > announced {
            assert_eq!(result, Err(Status::CAPACITY_EXCEEDED), "{takes} into {announced}");
            return stored;
        }
        assert_eq!(result, Ok(()), "{takes} bytes into {announced}");
        stored[which].push(number);
    }
    unreachable!("a drive is full some day")
}

async fn live(core: Rc<Core>) {
    let stored = fill(&core, 0).await;
    assert!(stored.iter().all(|numbers| numbers.len() > 100), "both take part");
    let (full, beyond) = (room(&core, OBJECTS), 1 << 40);
    for number in &stored[0][..100] {
        core.kv.delete(NSID, key(*number)).await.expect("deleted");
    }
    // What one namespace gives back, the other one announces and takes.
    let again = room(&core, OBJECTS);
    assert!(again >= full + 100 * 192, "{again} after {full}");
    let more = fill(&core, beyond).await;
    assert!(more.iter().map(Vec::len).sum::<usize>() > 0, "nothing more was stored");
}

#[test]
fn two_namespaces_can_store_what_each_announces() {
    for seed in 0..4 {
        let cores = 1 + usize::try_from(seed % 2).unwrap();
        let lived = Lives::new(seed, cores, SMALL).live(live);
        assert_eq!(lived, Ok(()), "seed {seed}");
    }
}

/// Number of keys of the users' namespace that the memory is for.
const KEYS: u64 = 200;

async fn capped(core: Rc<Core>) {
    let segments = &core.shared.segments;
    let most = || segments.keys_max(NSID).expect("limited");
    assert_eq!(most(), KEYS);
    for number in 0..KEYS {
        // The other namespace shares the memory: each of its first keys costs keys of this one.
        if most() == number {
            break;
        }
        store(&core, NSID, number, 10).await.expect("announced");
        if number < 20 {
            store(&core, OBJECTS, number, 10).await.expect("memory is left");
        }
    }
    let count = most();
    assert_eq!(segments.keys_max(OBJECTS), Some(20), "its own keys, and no memory is left");
    let refused = Err(Status::CAPACITY_EXCEEDED);
    assert_eq!(store(&core, NSID, 1 << 40, 10).await, refused);
    assert_eq!(store(&core, OBJECTS, 1 << 40, 10).await, refused);
    assert_eq!(store(&core, NSID, 0, 2000).await, Ok(()), "a key that exists takes no memory");
    let absent = core.kv.store(NSID, key(0), vec![Buffer::zeroed(1)], STORE_IF_ABSENT).await;
    assert_eq!(absent, Err(Status::KEY_EXISTS));
    core.kv.delete(NSID, key(0)).await.expect("deleted");
    assert_eq!(most(), count);
    assert_eq!(store(&core, NSID, 1 << 40, 10).await, Ok(()), "room again");
    assert_eq!(store(&core, NSID, 0, 10).await, refused);
}

#[test]
fn the_memory_of_indexes_limits_the_keys_of_both_namespaces() {
    for kind in [IndexKind::Hash, IndexKind::Ordered] {
        let bytes = KEYS * kind.key_bytes();
        let mut lives = Lives::new(3, 2, SMALL).with_index(kind, Some(bytes));
        assert_eq!(lives.live(capped), Ok(()), "{kind}");
        lives.cut_at_random();
        // A drive that has more keys than a new limit serves them, and takes no others.
        let mut lives = lives.with_index(kind, Some(bytes / 2));
        let lived = lives.live(|core| async move {
            let exists = core.kv.exist(NSID, key(1)).await;
            (exists, store(&core, NSID, 1, 10).await, store(&core, NSID, 2 << 40, 10).await)
        });
        assert_eq!(lived, Ok((Ok(true), Ok(()), Err(Status::CAPACITY_EXCEEDED))), "{kind}");
    }
}

#[test]
fn no_limit_of_memory_is_no_limit_of_keys() {
    let kind = index_of(0);
    let lived = Lives::new(0, 1, SMALL)
        .with_index(kind, None)
        .live(|core| async move { core.shared.segments.keys_max(NSID) });
    assert_eq!(lived, Ok(None));
}
