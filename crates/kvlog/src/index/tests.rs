//! Tests of both kinds of index against an ordered map of their ranks.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::*;

/// A sequence of pseudo-random numbers (SplitMix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Returns one of `count` keys of all lengths, some of which differ in length alone.
fn key(number: u64, count: u64) -> Key {
    let number = number % count;
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&u32::try_from(number / 16).unwrap().to_be_bytes());
    Key::new(&bytes[..usize::try_from(number % 16).unwrap() + 1]).unwrap()
}

fn pointer(draw: u64) -> RecordPointer {
    let bytes = u32::try_from(draw % (1 << 24)).unwrap();
    let content = match draw % 5 {
        0 => Content::Tombstone,
        1 if bytes > 0 => Content::Indirect(bytes),
        _ => Content::Value(bytes),
    };
    RecordPointer { record: draw >> 26, content }
}

fn rank(index: &Index, key: Key) -> Rank {
    let mut alone = match index {
        Index::Hash(_) => Index::new(IndexKind::Hash),
        Index::Ordered(_) => Index::new(IndexKind::Ordered),
    };
    alone.insert(key, RecordPointer { record: 0, content: Content::Value(0) });
    alone.page(Bound::Unbounded, 1, 1, Content::is_value).keys[0].0
}

fn check(index: &Index) {
    if let Index::Hash(hash) = index {
        hash.check();
    }
}

/// Lists all keys in pages of at most `keys_max` keys and `looks_max` entries.
fn list(index: &Index, keys_max: usize, looks_max: usize) -> Vec<(Rank, Key)> {
    let (mut all, mut from) = (Vec::new(), Bound::Unbounded);
    loop {
        let page = index.page(from, keys_max, looks_max, Content::is_value);
        assert!(page.keys.len() <= keys_max);
        all.extend(page.keys);
        let Some(last) = page.last else { return all };
        from = Bound::Excluded(last);
    }
}

fn listed(model: &BTreeMap<Rank, (Key, RecordPointer)>) -> Vec<(Rank, Key)> {
    let values = model.iter().filter(|(_, (_, pointer))| pointer.content.is_value());
    values.map(|(rank, (key, _))| (*rank, *key)).collect()
}

#[test]
fn both_kinds_do_as_an_ordered_map_does() {
    for (kind, seed) in [(IndexKind::Hash, 1), (IndexKind::Ordered, 2), (IndexKind::Hash, 3)] {
        let (mut index, mut draws) = (Index::new(kind), Draws(seed));
        let mut model: BTreeMap<Rank, (Key, RecordPointer)> = BTreeMap::new();
        let count = 20_000;
        // The index grows, changes, shrinks, grows again, and empties.
        for (steps, removals) in [(40_000, 1), (20_000, 5), (30_000, 8), (20_000, 2), (90_000, 9)] {
            for _ in 0..steps {
                let draw = draws.next();
                let key = key(draw >> 32, count);
                let rank = rank(&index, key);
                let pointer = pointer(draws.next());
                let (is, should) = if draw % 10 < removals {
                    (index.remove(&key), model.remove(&rank))
                } else {
                    (index.insert(key, pointer), model.insert(rank, (key, pointer)))
                };
                assert_eq!(is, should.map(|(_, pointer)| pointer));
                assert_eq!(index.get(&key), model.get(&rank).map(|(_, pointer)| *pointer));
            }
            check(&index);
            assert_eq!(index.len(), model.len());
            assert_eq!(list(&index, 7, 1000), listed(&model));
            assert_eq!(list(&index, 1000, 3), listed(&model), "few looks at once");
        }
    }
}

#[test]
fn a_page_begins_at_any_key_there_or_not() {
    for kind in [IndexKind::Hash, IndexKind::Ordered] {
        let (mut index, mut draws) = (Index::new(kind), Draws(9));
        for _ in 0..3000 {
            index.insert(key(draws.next(), 5000), pointer(draws.next()));
        }
        let all = list(&index, 64, 64);
        for number in 0..5000 {
            let key = key(number, 5000);
            let rank = rank(&index, key);
            let behind = |from, is_in: &dyn Fn(Rank) -> bool| {
                let page = index.page(from, 3, usize::MAX, Content::is_value).keys;
                let should: Vec<_> = all.iter().filter(|(at, _)| is_in(*at)).take(3).collect();
                assert_eq!(page.iter().collect::<Vec<_>>(), should);
            };
            behind(Bound::Included(key), &|at| at >= rank);
            behind(Bound::Excluded(key), &|at| at > rank);
        }
    }
}

#[test]
fn the_order_of_an_ordered_index_is_that_of_keys() {
    let mut index = Index::new(IndexKind::Ordered);
    let mut keys: Vec<Key> = (0..500).map(|number| key(number, 500)).collect();
    for key in keys.iter().rev() {
        index.insert(*key, pointer(1));
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(list(&index, 9, 9).into_iter().map(|(_, key)| key).collect::<Vec<_>>(), keys);
}

/// The order of List by a hashed index, which must not change from version to version.
#[test]
fn the_order_of_a_hashed_index_never_changes() {
    let mut index = Index::new(IndexKind::Hash);
    for key in [&b"a"[..], b"b", b"ab", b"a\0", b"0123456789abcdef", b"\0", b"\0\0"] {
        index.insert(Key::new(key).unwrap(), pointer(1));
    }
    let order: Vec<Vec<u8>> =
        list(&index, 9, 9).iter().map(|(_, key)| key.as_bytes().to_vec()).collect();
    let golden: [&[u8]; 7] = [b"b", b"a", b"a\0", b"0123456789abcdef", b"\0", b"\0\0", b"ab"];
    assert_eq!(order, golden);
}

#[test]
fn a_block_splits_in_halves_when_it_is_full() {
    // Keys of one partition, by the permutation.
    let mut probe = Index::new(IndexKind::Hash);
    let mut same = Vec::new();
    for number in 0.. {
        let key = Key::new(&u32::to_be_bytes(number)).unwrap();
        probe.insert(key, pointer(1));
        if rank(&probe, key).1 >> 120 == 7 {
            same.push(key);
        }
        if same.len() == hash::BLOCK_ENTRIES_MAX + 1 {
            break;
        }
    }
    let mut index = Index::new(IndexKind::Hash);
    let mut sizes = Vec::new();
    for key in &same {
        index.insert(*key, pointer(1));
        check(&index);
        sizes.push(index.allocated_bytes().unwrap());
    }
    let full = sizes[hash::BLOCK_ENTRIES_MAX - 1];
    // One block of 128 entries becomes two of 64, one of which takes the next entry.
    assert_eq!(sizes[hash::BLOCK_ENTRIES_MAX] - full, 8 * 24);
    for key in &same {
        assert!(index.remove(key).is_some());
        check(&index);
    }
    assert!(index.is_empty() && index.allocated_bytes().unwrap() <= sizes[0]);
}

#[test]
fn all_that_a_pointer_can_say_is_kept() {
    let mut index = Index::new(IndexKind::Hash);
    let key = Key::new(b"k").unwrap();
    let values = [0, 1, 16 << 20].map(Content::Value);
    let others = [Content::Tombstone, Content::Indirect(1), Content::Indirect(16 << 20)];
    for content in values.into_iter().chain(others) {
        for record in [0, 1, (1 << 38) - 1] {
            let pointer = RecordPointer { record, content };
            index.insert(key, pointer);
            assert_eq!(index.get(&key), Some(pointer));
        }
    }
    assert_eq!(IndexKind::Hash.log_bytes_max(), 16 << 40);
}

/// Counts the allocated capacity of the sixteen shards of `keys` keys, by arithmetic: capacities of
/// one index with a sixteenth of the keys.
fn bytes_a_key(keys: u32) -> f64 {
    let mut index = Index::new(IndexKind::Hash);
    let shard = keys / 16;
    for number in 0..shard {
        index.insert(Key::new(&number.to_be_bytes()).unwrap(), pointer(1));
    }
    assert_eq!(index.len(), shard as usize);
    f64::from(u32::try_from(index.allocated_bytes().unwrap()).unwrap()) / f64::from(shard)
}

#[test]
fn ten_million_keys_take_at_most_32_bytes_each() {
    let bytes = bytes_a_key(10_000_000);
    println!("{bytes:.2} bytes of capacity a key at 10 million keys");
    assert!(bytes <= 32.0, "{bytes}");
}
