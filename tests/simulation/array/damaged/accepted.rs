//! The rest of a catalogue is accepted because a user has said so: the highest copy of a name that
//! can stand for it, or the drives that vote after most were emptied. Nothing else makes too few
//! sound copies count.

use csd_nvme::kv::{STORE_IF_ABSENT, VERSION_OFFSET};
use csd_reactor::Buffer;
use csd_store::array::{DriveIndex, GUARDED, Plan};
use csd_store::catalogue::{Entry, State, accept, claim_key, key, rebuild, shrink};
use csd_store::error::NameError;
use csd_store::layout::Scheme;
use csd_store::object::{self, Error, On, PutOptions};
use csd_store::repair;
use csd_store::scrub;

use crate::array::claims::with_object;
use crate::array::host::{name_of, read};
use crate::array::pace::{ask, empty_drive, options_of, put_bytes};
use crate::array::repair::no_limits;
use crate::array::{DRIVES, Lane, file};

use super::{assert_refused, damage_on, store_copy};

/// Drives that come back empty: more than can be outvoted.
const EMPTIED: [usize; 4] = [1, 2, 4, 5];

#[test]
fn a_version_that_is_damaged_keeps_no_name_from_being_accepted() {
    let lane = with_object();
    ask(&lane, 0, async |array| {
        let entry = damage_on(&array, &[0, 1, 2]).await;
        let mut value = entry.encode();
        // Far above every version that was ever written.
        value[VERSION_OFFSET + 6] ^= 1;
        store_copy(&array, 3, &entry.name, value).await;
        assert_refused(&array).await;
        let accepted = accept(&array, &key(&entry.name), &entry.name).await.expect("accepts");
        let found = scrub::names(&array, &[], false).await.expect("reads");
        assert_eq!((found.bad, found.copies), (Vec::new(), DRIVES as u64));
        assert_eq!(object::lookup(&array, &entry.name).await.expect("is back"), accepted);
    });
}

/// The entry of a put that was under way stands below the sealed one, which is lost.
#[test]
fn an_entry_of_a_put_that_did_not_end_is_not_accepted() {
    let lane = with_object();
    ask(&lane, 0, async |array| {
        let entry = damage_on(&array, &[0, 1, 2, 3]).await;
        let staged = Entry { epoch: entry.epoch - 1, state: State::Staged, ..entry.clone() };
        for drive in [4, 5] {
            store_copy(&array, drive, &staged.name, staged.encode()).await;
        }
        let accepted = accept(&array, &key(&entry.name), &entry.name).await;
        assert!(matches!(accepted, Err(Error::Input { .. })), "{accepted:?}");
        object::drop_damaged(&array, &entry.name).await.expect("drops");
        let found = object::lookup(&array, &entry.name).await;
        assert!(matches!(found, Err(Error::Name(NameError::Missing { .. }))), "{found:?}");
    });
}

/// Returns the plan of an array without some drives, of which the last one comes first.
fn plan_without(drives: &[usize]) -> Plan {
    let mut file = file(DRIVES);
    drives.iter().for_each(|drive| drop(file.remove(*drive)));
    Plan::new(&file)
}

/// Of five drives two have sound copies, which are too few, and of four they would suffice.
#[test]
fn too_few_sound_copies_stay_too_few_in_a_smaller_array() {
    let lane = Lane::new(0, GUARDED);
    lane.start_drives();
    let five = || plan_without(&[5]);
    lane.ask_of(five(), |array| async move {
        put_bytes(&array, &options_of(&name_of(0)), vec![7; 100_000]).await;
        let entry = damage_on(&array, &[0, 1, 2]).await;
        assert_refused(&array).await;
        // A claim of that name has no sound entry to be settled by.
        let next = Entry { epoch: entry.epoch + 1, ..entry };
        let drive = array.drive(DriveIndex::new(4)).expect("it is up");
        let (claim, value) =
            (claim_key(&next.name, next.epoch), Buffer::from_slice(&next.encode()));
        drive.objects.store(&claim, vec![value], STORE_IF_ABSENT).await.expect("stores");
        shrink::gather(&array, DriveIndex::default()).await.expect("gathers");
    });
    lane.world.crash(lane.drives[0].machine);
    lane.ask_of(plan_without(&[5, 0]), |array| async move {
        assert_eq!(array.voters().len(), 4);
        assert_refused(&array).await;
    });
}

/// Returns the options of objects that survive the loss of two drives, and of four.
fn put_options(losses: usize) -> PutOptions {
    let protect = Scheme::new(2, losses);
    PutOptions { on: On::Kv, protect, ..options_of(&format!("survives {losses}")) }
}

#[test]
fn drives_that_are_left_give_votes_to_the_others_if_a_user_says_so() {
    let mut lane = Lane::new(0, GUARDED);
    lane.start_drives();
    ask(&lane, 0, async |array| {
        for losses in [2, 4] {
            put_bytes(&array, &put_options(losses), vec![7; 100_000]).await;
        }
    });
    EMPTIED.iter().for_each(|index| empty_drive(&mut lane, *index));
    let first = DriveIndex::new(EMPTIED[0]);
    // A drive that is away may know more.
    lane.world.partition(lane.hosts[0], lane.drives[0].machine);
    let refused = ask(&lane, 0, async move |array| rebuild::rebuild_from_few(&array, first).await);
    assert!(matches!(refused, Err(Error::Array(_))), "{refused:?}");
    lane.world.heal(lane.hosts[0], lane.drives[0].machine);
    let refused = ask(&lane, 0, async move |array| rebuild::rebuild(&array, first).await);
    assert!(matches!(refused, Err(Error::Array(_))), "too few witnesses: {refused:?}");
    for index in EMPTIED.map(DriveIndex::new) {
        ask(&lane, 0, async move |array| {
            rebuild::rebuild_from_few(&array, index).await.expect("rebuilds")
        });
    }
    ask(&lane, 0, async |array| {
        assert_eq!(array.voters().len(), DRIVES);
        let sealed = object::list(&array).await.expect("lists").sealed;
        assert_eq!(sealed.len(), 2);
        let repaired = repair::repair(&array, &sealed, &no_limits(repair::On::default())).await;
        let lost: Vec<&str> = repaired.lost.iter().map(|lost| &*lost.object).collect();
        assert_eq!((lost, repaired.failed), (vec!["survives 2"], Vec::new()));
        let entry = object::lookup(&array, "survives 4").await.expect("it is there");
        let (bytes, done) = read(&array, entry).await;
        done.expect("reads");
        assert!(bytes == vec![7; 100_000], "other bytes");
        object::remove(&array, "survives 2").await.expect("removes");
        put_bytes(&array, &put_options(2), vec![8; 100_000]).await;
        assert_eq!(scrub::names(&array, &[], false).await.expect("reads").bad, []);
    });
}
