//! Whole sectors that are damaged on a medium at rest, in every structure of it: they read as
//! zeros, as random bytes, as a sector of another segment, or as they were before. After a clean
//! stop and after a kill, with a volatile cache and without one, a start refuses the medium in
//! words, or each key reads right or fails; never is one silently older or gone. The next two
//! starts serve what the first one served.
//!
//! After a kill the last group of each shard is left out: it looks like one that the kill has torn.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_drive::drive::Core;
use csd_kvlog::format::{HEAD_BYTES, SHARDS};
use csd_kvlog::hint::HINT_OFFSET;
use csd_kvlog::mark::MARK_OFFSETS;
use csd_kvlog::media::Media;
use csd_kvlog::record::{PAGE_BYTES, RECORDS_OFFSET, SECTOR_BYTES};
use csd_kvlog::recover::by_checkpoints::load;
use csd_kvlog::recover::survey;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, random_u64};

use crate::lives::{Lives, SMALL, content, find, keys_of, segments_of, stop, store, together};
use crate::seeds;

/// Shards with keys. The others have no segment.
pub const WITH_KEYS: [usize; 3] = [1, 4, 7];
const KEYS_PER_SHARD: usize = 12;
/// Damaged sectors for each seed.
const DAMAGES: usize = 24;
/// Every so many seeds one fills its drive with long values, so that segments are freed and used
/// again; of these, headers, seals and free segments are damaged.
const HEAVY: u64 = 10;
const LONG_VALUES: usize = 400;
/// Number of starts after the damage.
pub const STARTS: usize = 3;

const KINDS: [&str; 4] = ["zeros", "random", "another's", "older"];
const STRUCTURES: [&str; 8] =
    ["header", "seal", "hint", "checkpoint", "record", "free", "superblock", "mark"];

/// Number of the version that each key has, by its place among all keys.
type Versions = Vec<u64>;

/// Number of bursts of a life, true if it ends in a clean stop, true if it fills the drive.
type Life = (u64, bool, bool);

fn keys() -> impl Iterator<Item = (usize, Key)> {
    WITH_KEYS.into_iter().flat_map(|shard| keys_of(shard).take(KEYS_PER_SHARD)).enumerate()
}

/// Lengths from 0 to some long ones, so that records lie at all places of sectors.
fn value(index: usize, version: u64) -> Vec<u8> {
    let length = match (index as u64 + version) % 7 {
        0 => 0,
        1 => 40,
        2 => 400,
        3 => 1_000 + index * 37,
        4 => 100,
        5 => 2_500,
        _ => 9_000 * (1 + index % 9),
    };
    content(version << 8 | index as u64, length)
}

/// Overwrites a few keys with long values.
async fn fill(core: &Rc<Core>) {
    let of = |shard: usize| keys_of(shard).skip(KEYS_PER_SHARD + 1).take(5);
    let long: Vec<Key> = WITH_KEYS.into_iter().flat_map(of).collect();
    for number in 0..LONG_VALUES {
        let value = content(number as u64, 200_000);
        store(core, long[number % long.len()], &value).await.expect("stored");
    }
    assert!(core.shared.segments.cleaned_count() > 0, "nothing was freed");
}

/// Overwrites keys in bursts, and leaves one more group at the end of each shard.
async fn life(core: Rc<Core>, versions: Versions, (bursts, stops, is_heavy): Life) -> Versions {
    let mut versions = versions;
    if is_heavy {
        fill(&core).await;
    }
    for _ in 0..bursts {
        let draw = random_u64();
        let some = keys().filter(|(index, _)| draw >> index & 1 == 1);
        let stores = some.map(|(index, key)| {
            versions[index] += 1;
            let (core, value) = (Rc::clone(&core), value(index, versions[index]));
            async move { store(&core, key, &value).await.expect("stored") }
        });
        together(stores.collect::<Vec<_>>()).await;
    }
    core.kv.flush().await.expect("flushed");
    for shard in WITH_KEYS {
        let key = keys_of(shard).nth(KEYS_PER_SHARD).unwrap();
        store(&core, key, b"the last group").await.expect("stored");
    }
    core.kv.flush().await.expect("flushed");
    if stops {
        stop(&core).await;
    }
    versions
}

/// Returns every sector in use with the structure that it belongs to, and the size of a segment.
pub async fn places(media: Media) -> (Vec<(usize, u64)>, u64) {
    let segments = segments_of(&media).await;
    let found = survey(&media, &segments, SHARDS, 0).await.expect("whole");
    let mut places = vec![(6, 0), (6, HEAD_BYTES / 2)];
    places.extend(MARK_OFFSETS.map(|at| (7, at)));
    let free = (0..segments.count).find(|it| found.iter().all(|found| found.number != *it));
    places.extend(free.map(|number| (5, segments.at(number, 0))));
    for found in found {
        let mut of = BTreeMap::from([(0, 0), (PAGE_BYTES, 1), (HINT_OFFSET, 2)]);
        let mut walk = found.walk(&media, &segments);
        while !matches!(walk.next().await.expect("read"), csd_kvlog::walk::Step::End) {}
        let sectors =
            |from: u64, to: u64| (from..to).step_by(usize::try_from(SECTOR_BYTES).unwrap());
        of.extend(sectors(RECORDS_OFFSET, walk.position()).map(|at| (at, 4)));
        let mut next = found.checkpoint(&segments);
        while let Some(range) = next {
            of.extend(sectors(range.offset, range.end()).map(|at| (at, 3)));
            let loaded = load(&media, &segments, &found, range).await.expect("whole");
            next = loaded.header.previous;
        }
        places.extend(
            of.into_iter().map(|(at, structure)| (structure, segments.at(found.number, at))),
        );
    }
    (places, segments.segment_bytes)
}

async fn sector(media: &Media, at: u64) -> Buffer {
    let length = usize::try_from(SECTOR_BYTES).unwrap();
    let (result, bytes) = media.read(at, Buffer::zeroed(length)).await;
    result.expect("read");
    bytes
}

/// Outcomes of damage, counted by structure and kind.
#[derive(Debug, Default)]
struct Met {
    refused: [[u64; KINDS.len()]; STRUCTURES.len()],
    failed_reads: [[u64; KINDS.len()]; STRUCTURES.len()],
    served: [[u64; KINDS.len()]; STRUCTURES.len()],
}

impl Met {
    fn all(&self, structure: usize) -> u64 {
        let all = [&self.refused, &self.failed_reads, &self.served];
        all.iter().flat_map(|counts| counts[structure]).sum()
    }
}

/// Outcome of each key of a start: true if it was right, false if reading it failed.
type Seen = Vec<bool>;

/// Starts the drive and reads every key. The outer error says why it was refused, the inner one
/// what was wrong.
fn look(
    lives: &mut Lives,
    versions: &Versions,
    stops: bool,
) -> Result<Result<Seen, String>, String> {
    let versions = versions.clone();
    let seen = lives.live(move |core| async move {
        let mut seen = Vec::new();
        for (index, key) in keys() {
            let expected = (versions[index] > 0).then(|| value(index, versions[index]));
            seen.push(match find(&core, key).await {
                Ok(found) if found == expected => true,
                Ok(found) => {
                    let found = found.map(|found| found.len());
                    return Err(format!("key {index}: {found:?} bytes that are not its own"));
                }
                Err(Status::UNRECOVERED_ERROR) => false,
                Err(status) => return Err(format!("key {index}: {status}")),
            });
        }
        if stops {
            stop(&core).await;
        }
        Ok(seen)
    });
    lives.cut(|| u64::from(stops));
    seen
}

/// Starts a damaged drive again and again.
fn starts(
    lives: &mut Lives,
    versions: &Versions,
    outcome: (usize, usize),
    met: &mut Met,
) -> Result<(), String> {
    let (structure, kind) = outcome;
    let mut first: Option<Seen> = None;
    for start in 0..STARTS {
        let stops = lives.draw(2) == 0;
        let seen = match (look(lives, versions, stops), &first) {
            (Err(_), None) => {
                met.refused[structure][kind] += 1;
                return Ok(());
            }
            (Err(text), Some(_)) => return Err(format!("start {start} is refused: {text}")),
            (Ok(seen), _) => seen.map_err(|text| format!("start {start}: {text}"))?,
        };
        let first = first.get_or_insert_with(|| seen.clone());
        if first.iter().zip(&seen).any(|(before, now)| *before && !now) {
            return Err(format!("start {start} does not read what the first one has read"));
        }
    }
    let failed = first.is_some_and(|seen| seen.contains(&false));
    let counts = if failed { &mut met.failed_reads } else { &mut met.served };
    counts[structure][kind] += 1;
    Ok(())
}

fn run(seed: u64, met: &mut Met) -> Result<(), String> {
    let (is_clean, is_cached) = (seed & 1 == 0, seed & 2 == 2);
    // Of both parities.
    let is_heavy = seed / 2 % HEAVY == HEAVY - 1;
    let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 3 / 2).unwrap(), SMALL);
    lives.with_cache(is_cached);
    let versions = vec![0; KEYS_PER_SHARD * WITH_KEYS.len()];
    let (bursts, stops) = (4 + lives.draw(12), lives.draw(2) == 0);
    let versions = lives.live(move |core| life(core, versions, (bursts, stops, is_heavy)))?;
    lives.cut(|| u64::from(stops));
    let older = lives.disk.copied();
    let versions =
        lives.live(move |core| life(core, versions, (2 + bursts / 2, is_clean, is_heavy)))?;
    lives.cut(|| u64::from(is_clean));
    let (places, segment_bytes) = lives.inspect(places);
    let segment = |at: u64| at.checked_sub(HEAD_BYTES).map(|at| at / segment_bytes);
    let whole = lives.disk.copied();
    for _ in 0..DAMAGES {
        let with = |structure: usize| places.iter().filter(move |place| place.0 == structure);
        let there = (0..STRUCTURES.len())
            .filter(|it| with(*it).next().is_some() && (!is_heavy || [0, 1, 5].contains(it)));
        let structure = there.min_by_key(|it| met.all(*it)).expect("some");
        let of: Vec<u64> = with(structure).map(|place| place.1).collect();
        let at = of[usize::try_from(lives.draw(of.len() as u64)).unwrap()];
        let kind = usize::try_from(lives.draw(KINDS.len() as u64)).unwrap();
        // Of another segment: within one, a sector with an earlier record of a key at the same
        // place would pass for the later one.
        let is_alike = lives.draw(2) == 0 && with(structure).nth(1).is_some() && structure < 5;
        let far = |place: &&(usize, u64)| {
            let is_wanted = if is_alike { place.0 == structure } else { place.0 < 5 };
            is_wanted && segment(place.1) != segment(at)
        };
        let others: Vec<u64> = places.iter().filter(far).map(|place| place.1).collect();
        let any = usize::try_from(lives.draw(u64::MAX) % others.len().max(1) as u64).unwrap();
        let from = others.get(any).copied().unwrap_or(0);
        lives.on_disk(older.copied());
        let before = lives.inspect(move |media| async move { sector(&media, at).await.to_vec() });
        lives.on_disk(whole.copied());
        let filler = lives.draw(u64::MAX);
        lives.inspect(move |media| {
            let before = before.clone();
            async move {
                let bytes = match kind {
                    0 => Buffer::zeroed(before.len()),
                    1 => Buffer::from_slice(&content(filler, before.len())),
                    2 => sector(&media, from).await,
                    _ => Buffer::from_slice(&before),
                };
                media.write(at, vec![bytes]).await.0.expect("written");
            }
        });
        starts(&mut lives, &versions, (structure, kind), met).map_err(|text| {
            let (structure, kind) = (STRUCTURES[structure], KINDS[kind]);
            format!("{structure} at {at}, {kind}, clean {is_clean}, cached {is_cached}: {text}")
        })?;
    }
    Ok(())
}

#[test]
fn a_damaged_sector_hides_nothing() {
    let mut met = Met::default();
    let mut failures = Vec::new();
    for seed in seeds() {
        if let Err(text) = run(seed, &mut met) {
            failures.push(format!("{text}: CSD_SIM_SEEDS={seed}..{}", seed + 1));
        }
    }
    println!("damaged sectors: {} seeds; refused, failed reads, right:", seeds().count());
    for (number, structure) in STRUCTURES.iter().enumerate() {
        for (kind, name) in KINDS.iter().enumerate() {
            let counts = [&met.refused, &met.failed_reads, &met.served];
            println!("  {structure}, {name}: {:?}", counts.map(|counts| counts[number][kind]));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    let is_met = (0..STRUCTURES.len()).all(|structure| met.all(structure) > 0);
    assert!(is_met || seeds().count() < 50, "{met:?}");
}
