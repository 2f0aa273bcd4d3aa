//! A copy of an entry that is damaged inside a value which is sound to its drive: the drive refuses
//! an entry of the same version, and a rebuild mends it all the same.

use csd_reactor::Buffer;
use csd_store::array::{Array, DriveIndex};
use csd_store::catalogue::{key, read_one, rebuild};
use csd_store::object;

use super::claims::with_object;
use super::host::name_of;

/// The drive with the damaged copy.
const DAMAGED: usize = 2;

/// Replaces the drive's copy by one whose last byte is another.
pub async fn damage(array: Array) {
    let entry = object::lookup(&array, &name_of(0)).await.expect("it is there");
    let mut value = entry.encode();
    *value.last_mut().expect("it is not empty") ^= 1;
    let objects = &array.drive(DriveIndex::new(DAMAGED)).expect("it is up").objects;
    let stored = objects.store(&key(&entry.name), vec![Buffer::from_slice(&value)], 0).await;
    stored.expect("stores");
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
