//! A medium is lost, a repair begins on the empty one in its place, and then the former one is
//! back: pieces that entries list as missing are there. Meanwhile bits have flipped in pieces of
//! two other drives, so objects need the pieces that are back: for a read, and for a repair.

use std::time::Duration;

use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::{Entry, rebuild};
use csd_store::layout::Scheme;
use csd_store::object::{self, PutOptions};
use csd_store::repair;

use crate::array::flips::flip_bit;
use crate::array::history::bytes_of;
use crate::array::host::read;
use crate::array::pace::{ask, begin_repair, empty_drive, options_of, put_bytes};
use crate::array::pieces::Sound;
use crate::array::repair::no_limits;
use crate::array::{DRIVES, Lane, at_rest};
use crate::seeds;

/// As many as have room on blocks.
const OBJECTS: u64 = 2;

/// Pieces that entries listed as missing while they were there, and flipped bits.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    listed: u64,
    flips: u64,
}

fn name_of(object: u64) -> String {
    format!("object {object}")
}

async fn put(array: &Array, object: u64) {
    let protect = Scheme::new([4, 2][usize::try_from(object).unwrap()], 2);
    let options = PutOptions { protect, ..options_of(&name_of(object)) };
    put_bytes(array, &options, bytes_of(object + 7)).await;
}

/// Gives a drive its vote.
fn rebuilt(lane: &Lane, index: usize) {
    ask(lane, 0, async move |array| {
        rebuild::rebuild(&array, DriveIndex::new(index)).await.expect("rebuilds")
    });
}

fn sealed(lane: &Lane) -> Vec<Entry> {
    ask(lane, 0, async |array| object::list(&array).await.expect("lists").sealed)
}

/// Flips a bit of every piece that its stripe can miss on two drives other than this one; returns
/// the number of bits.
fn flip(lane: &Lane, place: usize) -> u64 {
    let media = lane.media_at_rest();
    let mut flips = 0;
    for entry in at_rest::sealed(&media) {
        for piece in Sound::spare(&media, &entry) {
            if [1, 2].contains(&((piece.drive + DRIVES - place) % DRIVES))
                && let Some(at) = media[piece.drive].place_of(&piece)
            {
                let at = at + lane.draw(0..piece.bytes as u64);
                flip_bit(&lane.drives[piece.drive].disk, at, lane.draw(0..8));
                flips += 1;
            }
        }
    }
    flips
}

fn run(seed: u64) -> Counts {
    let mut lane = Lane::new(seed, GUARDED);
    lane.start_drives();
    ask(&lane, 0, async |array| {
        for object in 0..OBJECTS {
            put(&array, object).await;
        }
    });
    let place = lane.draw_drive();
    let former = lane.drives[place].disk.copied();
    empty_drive(&mut lane, place);
    rebuilt(&lane, place);
    let _interrupted = begin_repair(&lane, sealed(&lane));
    lane.world.run_for(Duration::from_millis(lane.draw(1..40_000)));
    lane.world.crash(lane.hosts[0]);
    lane.world.crash(lane.drives[place].machine);
    lane.replace(place, former, true);
    lane.start_drive(place);
    lane.world.run_for(Duration::from_secs(2));
    rebuilt(&lane, place);
    let entries = sealed(&lane);
    let listed = entries.iter().filter_map(|entry| entry.protected());
    let listed = listed.map(|(_, parity)| parity.missing.count()).sum();
    let flips = flip(&lane, place);
    ask(&lane, 0, async |array| {
        for object in 0..OBJECTS {
            let entry = object::lookup(&array, &name_of(object)).await.expect("it is there");
            let (bytes, done) = read(&array, entry).await;
            done.unwrap_or_else(|error| panic!("{}: {error}", name_of(object)));
            assert!(bytes == bytes_of(object + 7), "other bytes");
        }
    });
    let repaired = ask(&lane, 0, async move |array| {
        repair::repair(&array, &entries, &no_limits(repair::On::default())).await
    });
    assert!(repaired.is_whole(), "{repaired:?}");
    let media = lane.media_at_rest();
    for entry in at_rest::sealed(&media) {
        let sound = Sound::at_rest(&media, &entry).expect("it is protected");
        assert!(sound.is_full(), "{} lacks pieces", entry.name);
    }
    Counts { listed, flips }
}

#[test]
fn pieces_that_are_listed_as_missing_and_are_back_repair_others() {
    let mut all = Counts::default();
    for counts in seeds::each(seeds(), run) {
        all.listed += counts.listed;
        all.flips += counts.flips;
    }
    let count = seeds().count() as u64;
    println!("array, a lost medium is back: {count} seeds, {all:?}");
    assert!(count < 50 || all.listed.min(all.flips) > count, "{all:?}");
}

/// Lists that are older than the objects, as those of a command that others overtake.
#[test]
fn an_object_that_is_removed_or_put_again_meanwhile_is_in_no_danger() {
    let lane = Lane::new(1, GUARDED);
    lane.start_drives();
    ask(&lane, 0, async |array| {
        for object in 0..OBJECTS {
            put(&array, object).await;
        }
        let listed = object::list(&array).await.expect("lists").sealed;
        assert_eq!(listed.len() as u64, OBJECTS);
        for object in 0..OBJECTS {
            object::remove(&array, &name_of(object)).await.expect("removes");
        }
        put(&array, 0).await;
        for drive in 0..DRIVES {
            let limits = no_limits(repair::On::default());
            let place = DriveIndex::new(drive);
            let named = repair::endangered(&array, &listed, place, &limits).await;
            assert_eq!(named, Vec::<String>::new(), "without drive {drive}");
        }
    });
}
