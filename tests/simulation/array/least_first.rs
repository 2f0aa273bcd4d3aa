//! A repair makes the pieces of the stripes with the least redundancy first, of whichever object.
//!
//! Two drives are emptied, so stripes of one object lack no piece, one or two, and those of a code
//! with more parity lack two and could still lose two more. The repair has a rate, so that one
//! stripe is whole long before the next one, and another host reads all pieces meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::{Entry, rebuild};
use csd_store::layout::Scheme;
use csd_store::object::{On, PutOptions};

use super::Lane;
use super::pace::{ask, begin_repair, empty_drive, options_of, put_chunks};
use super::pieces::Sound;

const EMPTIED: [usize; 2] = [2, 4];
/// Chunks of each object.
const CHUNKS: u64 = 12;
/// Names, and parity pieces of their codes. By name, and by the number of missing pieces, the
/// object with the most redundancy comes first.
const OBJECTS: [(&str, usize); 3] = [("a", 4), ("b", 2), ("c", 2)];
/// Time between two looks: a drive takes twice as long for a piece.
const LOOK: Duration = Duration::from_secs(8);

/// Pieces that a stripe can lose before bytes are lost, of stripes that lack pieces, by object and
/// number.
type Lacking = BTreeMap<(usize, u32), usize>;

async fn put_all(array: Array) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (name, parity) in OBJECTS {
        let protect = Scheme::new(2, parity);
        let options = PutOptions { on: On::Kv, protect, ..options_of(name) };
        entries.push(put_chunks(&array, &options, 7, CHUNKS).await);
    }
    entries
}

/// Reads all pieces.
fn lacking(lane: &Lane, entries: &[Entry]) -> Lacking {
    let media = lane.media_at_rest();
    let mut lacking = Lacking::new();
    for (object, entry) in entries.iter().enumerate() {
        let sound = Sound::at_rest(&media, entry).expect("it is protected");
        for stripe in 0..sound.stripes.count() {
            let held = sound.pieces.iter().filter(|(of, ..)| *of == stripe).count();
            if held < sound.stripes.pieces(stripe).count() {
                let margin = held - sound.stripes.chunks(stripe).len();
                lacking.insert((object, stripe), margin);
            }
        }
    }
    lacking
}

/// Returns stripes that have become whole while others could lose fewer pieces.
fn early(before: &Lacking, now: &Lacking) -> Vec<(usize, u32)> {
    let least = now.values().min().copied().unwrap_or(usize::MAX);
    let made =
        before.iter().filter(|(stripe, margin)| !now.contains_key(stripe) && **margin > least);
    made.map(|(stripe, _)| *stripe).collect()
}

#[test]
fn stripes_with_the_least_redundancy_are_repaired_first() {
    let mut lane = Lane::new(0, GUARDED);
    lane.start_drives();
    let entries = ask(&lane, 0, put_all);
    for index in EMPTIED {
        empty_drive(&mut lane, index);
        ask(&lane, 0, async move |array| {
            rebuild::rebuild(&array, DriveIndex::new(index)).await.expect("rebuilds")
        });
    }
    let mut before = lacking(&lane, &entries);
    for margin in 0..3 {
        let objects = before.iter().filter(|(_, of)| **of == margin).map(|((object, _), _)| object);
        let objects: BTreeSet<_> = objects.collect();
        assert_eq!(objects.len(), [2, 2, 1][margin], "{before:?}");
    }
    // In no order of names: the repair orders them.
    let reversed: Vec<Entry> = entries.iter().rev().cloned().collect();
    let repair = begin_repair(&lane, reversed);
    let mut looks = 0;
    while !before.is_empty() {
        assert!(repair.borrow().is_none(), "the repair has ended: {before:?}");
        lane.world.run_for(LOOK);
        let now = lacking(&lane, &entries);
        assert_eq!(early(&before, &now), [], "repaired before others of {now:?}");
        looks += usize::from(now.len() < before.len());
        before = now;
    }
    assert!(looks > 10, "only {looks} looks saw stripes become whole");
}
