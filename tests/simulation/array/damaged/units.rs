//! Damaged claims of units of blocks: as long as it is not known whose a unit is, its claim stays,
//! so that no other object gets the unit.

use std::time::Duration;

use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use csd_store::array::{Array, GUARDED};
use csd_store::catalogue::{accept, key};
use csd_store::extent::{claimed_units, owner};
use csd_store::object;
use csd_store::scrub;

use crate::array::Lane;
use crate::array::history::CHUNK_BYTES;
use crate::array::host::{name_of, read};
use crate::array::pace::{ask, begin, options_of, put_bytes};

use super::damage_on;

/// First byte of the key of a unit's claim.
const CLAIM: u8 = 2;
/// Puts that are met at other moments.
const PUTS: u64 = 24;

async fn put(array: &Array, name: usize) -> Vec<u8> {
    let bytes = vec![u8::try_from(name).unwrap() + 7; usize::try_from(24 * CHUNK_BYTES).unwrap()];
    put_bytes(array, &options_of(&name_of(name)), bytes.clone()).await;
    bytes
}

/// Damages the claims of all units; returns their number.
async fn damage_claims(array: &Array) -> usize {
    let mut count = 0;
    for drive in array.voters() {
        for unit in claimed_units(&drive).await.expect("lists") {
            let key = [&[CLAIM][..], &u64::from(unit).to_be_bytes()].concat();
            let value = vec![Buffer::from_slice(&[7; 40])];
            let stored = drive.objects.store(&Key::new(&key).unwrap(), value, 0).await;
            stored.expect("stores");
            count += 1;
        }
    }
    count
}

/// Mends the catalogue; returns the number of damaged records, and of those that were mended.
async fn mend(array: &Array) -> (usize, usize) {
    let found = scrub::names(array, &[], true).await.expect("reads");
    let mended = found.bad.iter().filter(|bad| bad.repaired).count();
    (found.bad.len(), mended)
}

/// Returns the number of drives whose claims all are the only object's.
async fn owned(array: &Array) -> usize {
    let id = object::list(array).await.expect("lists").sealed[0].id;
    let mut count = 0;
    for drive in array.voters() {
        let units = claimed_units(&drive).await.expect("lists");
        let mut is_own = !units.is_empty();
        for unit in units {
            is_own &= owner(&drive, unit).await.is_ok_and(|owner| owner == Some(id));
        }
        count += usize::from(is_own);
    }
    count
}

#[test]
fn units_of_a_name_with_too_few_sound_copies_are_given_to_no_other() {
    let lane = Lane::new(0, GUARDED);
    lane.start_drives();
    ask(&lane, 0, async |array| {
        let bytes = put(&array, 0).await;
        damage_on(&array, &[0, 1, 2, 3]).await;
        let claims = damage_claims(&array).await;
        // The copies of the name are not mended either.
        assert_eq!(mend(&array).await, (claims + 4, 0));
        put(&array, 1).await;
        let entry = accept(&array, &key(&name_of(0)), &name_of(0)).await.expect("accepts");
        let (found, done) = read(&array, entry).await;
        done.expect("reads");
        assert!(found == bytes, "other bytes");
        assert_eq!(mend(&array).await, (claims, claims));
    });
}

#[test]
fn units_of_a_put_that_is_under_way_are_given_to_no_other() {
    let mut met = 0;
    for seed in 0..PUTS {
        let lane = Lane::new(seed, GUARDED);
        lane.start_drives();
        let putting = begin(&lane, 0, async |array| put(&array, 0).await);
        lane.world.run_for(Duration::from_micros(seed * 1_500));
        let is_under_way = putting.borrow().is_none();
        let claims = ask(&lane, 1, async |array| {
            let claims = damage_claims(&array).await;
            mend(&array).await;
            claims
        });
        lane.wait("the put", || !lane.world.is_running(lane.hosts[0]));
        let (drives, owned) = ask(&lane, 1, async |array| {
            mend(&array).await;
            (
                object::list(&array).await.expect("lists").sealed[0].members.len(),
                owned(&array).await,
            )
        });
        assert_eq!(owned, drives, "seed {seed}: units of the object are claimed by none");
        met += usize::from(is_under_way && claims > 0);
    }
    println!("array, damaged claims of a put that is under way: {met} of {PUTS}");
    assert!(met > 3, "hardly any put was under way");
}
