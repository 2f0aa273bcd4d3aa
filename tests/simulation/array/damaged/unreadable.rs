//! Copies of an entry whose bits have flipped at rest, so that their drives cannot read them and
//! compare no version. Readers warn of them; scrubs, repairs and writers mend them as long as
//! enough others are sound.

use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::{Entry, accept, forget, key, rebuild};
use csd_store::error::NameError;
use csd_store::object::{self, Error};
use csd_store::repair;
use csd_store::scrub;

use crate::array::claims::with_object;
use crate::array::flips::flip_bit;
use crate::array::host::name_of;
use crate::array::pace::{ask, empty_drive, options_of, put_bytes};
use crate::array::pieces::Sound;
use crate::array::repair::no_limits;
use crate::array::{DRIVES, Lane};
use crate::places::places;

use super::{damage_on, store_copy};

/// Half of the drives: as few copies are left as a reader needs.
const HALF: [usize; 3] = [0, 2, 4];

/// Flips a bit in the copies of the entry of object 0 on these drives.
pub(super) fn flip_on(lane: &Lane, drives: &[usize]) {
    assert_eq!(flip_copies(lane, &name_of(0), drives), drives.len() as u64, "no copy");
}

/// Flips a bit in the copies of an entry on those of these drives that have one. Returns their
/// number.
pub(in crate::array) fn flip_copies(lane: &Lane, name: &str, drives: &[usize]) -> u64 {
    let (media, key) = (lane.media_at_rest(), key(name));
    let mut flipped = 0;
    for drive in drives {
        let Some(value) = media[*drive].value(&key) else { continue };
        let disk = &lane.drives[*drive].disk;
        let found = disk.at_rest(|memory| places(memory, &[&value])).remove(0);
        assert!(!found.is_empty(), "no copy on d{drive}");
        found.into_iter().for_each(|at| flip_bit(disk, at + value.len() as u64 / 2, 3));
        flipped += 1;
    }
    flipped
}

/// Returns a lane with two objects on blocks, of which the last drive has forgotten its pieces.
fn with_two_objects() -> Lane {
    let mut lane = Lane::new(0, GUARDED);
    lane.start_drives();
    ask(&lane, 0, async |array| {
        for name in 0..2 {
            put_bytes(&array, &options_of(&name_of(name)), vec![7; 100_000]).await;
        }
    });
    empty_drive(&mut lane, DRIVES - 1);
    ask(&lane, 0, async |array| {
        rebuild::rebuild(&array, DriveIndex::new(DRIVES - 1)).await.expect("rebuilds")
    });
    lane
}

/// Returns the words in which readers of object 0 were warned.
async fn warnings(array: &Array) -> Vec<String> {
    object::lookup(array, &name_of(0)).await.expect("enough copies are sound");
    array.damage_met()
}

fn is_full(lane: &Lane, entry: &Entry) -> bool {
    Sound::at_rest(&lane.media_at_rest(), entry).is_some_and(|sound| sound.is_full())
}

#[test]
fn readers_warn_of_each_copy_until_it_is_mended() {
    let lane = with_object();
    flip_on(&lane, &HALF);
    ask(&lane, 0, async |array| {
        let warned = warnings(&array).await;
        for drive in HALF {
            let words = format!("drive d{drive}: its copy of name {:?} is damaged", name_of(0));
            assert!(warned.iter().any(|warning| warning.starts_with(&words)), "{warned:?}");
        }
        assert_eq!(warned.len(), HALF.len(), "{warned:?}");
        let listed = object::list(&array).await.expect("lists");
        assert_eq!((listed.sealed.len(), listed.damaged), (1, 0));
        let found = scrub::names(&array, &[], true).await.expect("reads");
        assert!(found.bad.len() == 3 && found.bad.iter().all(|bad| bad.repaired), "{found:?}");
        assert_eq!(warnings(&array).await, [""; 0]);
        assert_eq!(scrub::names(&array, &[], false).await.expect("reads").bad, []);
    });
}

#[test]
fn a_repair_mends_half_of_the_copies_of_an_entry_that_it_changes() {
    let lane = with_two_objects();
    flip_on(&lane, &HALF);
    let entries = ask(&lane, 0, async |array| {
        let entries = object::list(&array).await.expect("lists").sealed;
        let repaired = repair::repair(&array, &entries, &no_limits(repair::On::default())).await;
        assert!(repaired.is_whole() && repaired.rebuilt > 0, "{repaired:?}");
        assert_eq!(scrub::names(&array, &[], false).await.expect("reads").bad, []);
        object::list(&array).await.expect("lists").sealed
    });
    assert!(entries.iter().all(|entry| is_full(&lane, entry)));
}

#[test]
fn a_writer_mends_half_of_the_copies_of_an_entry() {
    let lane = with_object();
    flip_on(&lane, &HALF);
    ask(&lane, 0, async |array| {
        object::remove(&array, &name_of(0)).await.expect("removes");
        assert_eq!(scrub::names(&array, &[], false).await.expect("reads").bad, []);
    });
}

#[test]
fn an_object_that_cannot_be_repaired_keeps_no_other_from_it() {
    let lane = with_two_objects();
    let entries = ask(&lane, 0, async |array| {
        let entries = object::list(&array).await.expect("lists").sealed;
        damage_on(&array, &[0, 1, 2, 3]).await;
        let repaired = repair::repair(&array, &entries, &no_limits(repair::On::default())).await;
        let failed: Vec<&String> = repaired.failed.iter().map(|(name, _)| name).collect();
        assert_eq!(failed, [&name_of(0)], "{repaired:?}");
        assert_eq!(repaired.objects, 1, "{repaired:?}");
        object::list(&array).await.expect("lists").sealed
    });
    assert_eq!(entries.len(), 1);
    assert!(is_full(&lane, &entries[0]), "the other one lacks pieces");
}

/// Most copies, all of the last entry, cannot be read; the other drives have the one before.
#[test]
fn what_is_accepted_is_later_than_copies_that_cannot_be_read() {
    let lane = with_object();
    let last = ask(&lane, 0, async |array| {
        let entry = object::lookup(&array, &name_of(0)).await.expect("it is there");
        let older = Entry { epoch: entry.epoch - 1, writer: [1; 16], ..entry.clone() };
        for drive in [4, 5] {
            store_copy(&array, drive, &older.name, older.encode()).await;
        }
        entry.epoch
    });
    flip_on(&lane, &[0, 1, 2, 3]);
    let accepted =
        || ask(&lane, 0, async |array: Array| accept(&array, &key(&name_of(0)), &name_of(0)).await);
    // The drive that is away may know more.
    lane.world.partition(lane.hosts[0], lane.drives[5].machine);
    let refused = accepted();
    assert!(matches!(refused, Err(Error::Array(_))), "{refused:?}");
    lane.world.heal(lane.hosts[0], lane.drives[5].machine);
    let accepted = accepted().expect("accepts");
    assert!(accepted.epoch > last, "{} is not later than {last}", accepted.epoch);
    ask(&lane, 0, async move |array| {
        let found = scrub::names(&array, &[], false).await.expect("reads");
        assert_eq!((found.bad, found.copies), (Vec::new(), DRIVES as u64));
        let found = object::lookup(&array, &name_of(0)).await.expect("is back");
        assert_eq!(found, accepted);
        object::remove(&array, &name_of(0)).await.expect("removes");
        let found = object::lookup(&array, &name_of(0)).await;
        assert!(matches!(found, Err(Error::Name(NameError::Missing { .. }))), "{found:?}");
    });
}

/// No copy that answers tells its name, and one on a drive that is away would.
#[test]
fn no_name_is_forgotten_while_a_drive_is_away() {
    let lane = with_object();
    flip_on(&lane, &[0, 1, 2, 3, 4]);
    let forgotten = || ask(&lane, 0, async |array: Array| forget(&array, &key(&name_of(0))).await);
    lane.world.partition(lane.hosts[0], lane.drives[5].machine);
    let refused = forgotten();
    assert!(matches!(refused, Err(Error::Array(_))), "{refused:?}");
    lane.world.heal(lane.hosts[0], lane.drives[5].machine);
    let refused = forgotten();
    assert!(matches!(refused, Err(Error::Input { .. })), "{refused:?}");
    flip_on(&lane, &[5]);
    forgotten().expect("nothing tells its name");
    assert!(lane.media_at_rest().iter().all(|medium| medium.value(&key(&name_of(0))).is_none()));
}
