//! Copies of an entry that are damaged inside values which are sound to their drives: a drive
//! refuses an entry of the same version, and a rebuild or a scrub mends it all the same. If too few
//! are sound, nothing counts until a user accepts or drops the name.
//!
//! [`unreadable`] has copies that their drives cannot read, [`accepted`] what a user accepts,
//! [`overtaken`] a writer that is faster than a mend, [`records`] those of membership, [`units`]
//! claims of units of blocks.

mod accepted;
mod overtaken;
mod records;
mod units;
pub(in crate::array) mod unreadable;

use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::{Entry, accept, claim_key, key, read_one, rebuild};
use csd_store::error::NameError;
use csd_store::object::{self, Error};
use csd_store::scrub;

use crate::array::claims::with_object;
use crate::array::host::{name_of, options};
use crate::array::pieces::left_after_reclaim;
use crate::array::plan;

/// The drive with the damaged copy.
const DAMAGED: usize = 2;

/// Replaces the drive's copy by one whose last byte is another.
pub async fn damage(array: Array) {
    damage_on(&array, &[DAMAGED]).await;
}

/// Returns true if the drive's copy is the newest entry.
pub async fn is_sound(array: Array) -> bool {
    let entry = object::lookup(&array, &name_of(0)).await.expect("it is there");
    let drive = array.drive(DriveIndex::new(DAMAGED)).expect("it is up");
    let held = read_one(drive, &key(&entry.name), &entry.name).await;
    held.is_ok_and(|held| held == Some(entry))
}

#[test]
fn a_rebuild_mends_an_entry_that_is_damaged_inside_a_sound_value() {
    let lane = with_object();
    lane.ask(damage);
    assert!(!lane.ask(is_sound));
    let rebuilt =
        lane.ask(|array| async move { rebuild::rebuild(&array, DriveIndex::new(DAMAGED)).await });
    assert_eq!(rebuilt.expect("rebuilds").stored, 1);
    assert!(lane.ask(is_sound), "it is still damaged");
}

/// Replaces copies of the entry on these drives by ones that are damaged.
async fn damage_on(array: &Array, drives: &[usize]) -> Entry {
    let entry = object::lookup(array, &name_of(0)).await.expect("it is there");
    let mut value = entry.encode();
    *value.last_mut().expect("it is not empty") ^= 1;
    for drive in drives {
        store_copy(array, *drive, &entry.name, value.clone()).await;
    }
    entry
}

/// Stores a value as a drive's copy of the entry of a name.
async fn store_copy(array: &Array, drive: usize, name: &str, value: Vec<u8>) {
    let objects = &array.drive(DriveIndex::new(drive)).expect("it is up").objects;
    let stored = objects.store(&key(name), vec![Buffer::from_slice(&value)], 0).await;
    stored.expect("stores");
}

/// Asserts that a name is refused because too few copies are sound.
async fn assert_refused(array: &Array) {
    let found = object::lookup(array, &name_of(0)).await;
    assert!(matches!(found, Err(Error::Name(NameError::Damaged { .. }))), "{found:?}");
    let listed = object::list(array).await.expect("goes on");
    assert_eq!((listed.sealed.len(), listed.damaged), (0, 1));
    assert!(array.damage_met().iter().any(|met| met.contains("--accept-name")));
}

#[test]
fn half_of_the_copies_of_an_entry_are_mended_by_a_scrub() {
    let lane = with_object();
    lane.ask(|array| async move {
        damage_on(&array, &[0, 2, 4]).await;
        let found = scrub::names(&array, &[], true).await.expect("reads");
        assert!(found.bad.len() == 3 && found.bad.iter().all(|bad| bad.repaired), "{found:?}");
        assert_eq!(scrub::names(&array, &[], false).await.expect("reads").bad, []);
    });
    assert!(lane.ask(is_sound), "it is still damaged");
}

#[test]
fn a_name_with_too_few_sound_copies_stays_so_until_it_is_accepted() {
    let lane = with_object();
    let name = name_of(0);
    lane.ask(move |array| {
        let name = name.clone();
        async move {
            let entry = damage_on(&array, &[0, 1, 2, 3]).await;
            assert_refused(&array).await;
            // Neither does a drive that has forgotten the name count once it is rebuilt.
            let drive = array.drive(DriveIndex::new(0)).expect("it is up");
            for forgotten in [key(&name), Key::new(b"\x07lives").unwrap()] {
                drive.objects.delete(&forgotten).await.expect("deletes");
            }
            let plan = plan();
            let again = Array::connect_with(&plan, &options(), GUARDED).await;
            assert!(again.slots()[0].vote().is_err());
            rebuild::rebuild(&again, DriveIndex::new(0)).await.expect("rebuilds");
            let again = Array::connect_with(&plan, &options(), GUARDED).await;
            assert!(again.slots()[0].vote().is_ok());
            assert_refused(&again).await;
            let accepted = accept(&again, &key(&name), &name).await.expect("accepts");
            assert_eq!((accepted.id, accepted.sums), (entry.id, entry.sums));
            assert!(accepted.epoch > entry.epoch);
            assert_eq!(object::lookup(&again, &name).await.expect("is back").epoch, accepted.epoch);
            let found = scrub::names(&again, &[], false).await.expect("reads");
            assert_eq!((found.bad, found.copies), (Vec::new(), 6));
            // What is sound is not accepted or dropped.
            assert!(accept(&again, &key(&name), &name).await.is_err());
            assert!(object::drop_damaged(&again, &name).await.is_err());
        }
    });
}

#[test]
fn a_dropped_name_does_not_come_back_and_leaves_nothing() {
    let lane = with_object();
    let name = name_of(0);
    lane.ask(move |array| {
        let name = name.clone();
        async move {
            damage_on(&array, &[1, 2, 3, 4, 5]).await;
            assert_refused(&array).await;
            object::drop_damaged(&array, &name).await.expect("drops");
            let found = object::lookup(&array, &name).await;
            assert!(matches!(found, Err(Error::Name(NameError::Missing { .. }))), "{found:?}");
            object::reclaim(&array).await.expect("reclaims");
        }
    });
    assert_eq!(left_after_reclaim(&lane), [""; 0]);
}

#[test]
fn damaged_claims_are_found_and_mended() {
    let lane = with_object();
    lane.ask(|array| async move {
        let entry = object::lookup(&array, &name_of(0)).await.expect("it is there");
        let drive = array.drive(DriveIndex::new(DAMAGED)).expect("it is up");
        let claims = [entry.epoch, entry.epoch + 1].map(|epoch| claim_key(&entry.name, epoch));
        let unit = Key::new(b"\x02\0\0\0\0\0\0\0\x01").unwrap();
        for key in claims.into_iter().chain([unit]) {
            let stored = drive.objects.store(&key, vec![Buffer::from_slice(&[7; 40])], 0).await;
            stored.expect("stores");
        }
        let found = scrub::names(&array, &[], false).await.expect("reads");
        assert_eq!(found.bad.iter().filter(|bad| !bad.repaired).count(), 3, "{found:?}");
        let found = scrub::names(&array, &[], true).await.expect("reads");
        assert!(found.bad.iter().all(|bad| bad.repaired), "{found:?}");
        assert_eq!(scrub::names(&array, &[], false).await.expect("reads").bad, []);
        object::remove(&array, &entry.name).await.expect("the name is changed as before");
    });
}
