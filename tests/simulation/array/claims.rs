//! A writer wins an epoch and is interrupted when one drive alone has its entry. A reclaim follows,
//! and a host that does not reach that drive: no other writer may win the epoch.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_nvme::kv::{STORE_IF_ABSENT, STORE_IF_NEWER};
use csd_reactor::Buffer;
use csd_store::array::{Array, GUARDED};
use csd_store::catalogue::{Entry, accept, claim_key, key};
use csd_store::error::NameError;
use csd_store::object::{self, Error};
use csd_store::scrub;

use super::Lane;
use super::at_rest;
use super::history::{Content, Told};
use super::host::{self, name_of};
use super::pace::ask;

/// A put without parity.
const UNPROTECTED: Content = 2;

/// Stores what a host leaves that protects an object and is interrupted: the claims of the next
/// epoch on a majority of the drives, and its entry on the first one.
pub async fn interrupted(array: Array) {
    let entry = object::lookup(&array, &name_of(0)).await.expect("it is there");
    let next = Entry { epoch: entry.epoch + 1, writer: [1; 16], ..entry };
    let value = || vec![Buffer::from_slice(&next.encode())];
    let (voters, claimed) = (array.voters(), claim_key(&next.name, next.epoch));
    for drive in &voters[..array.quorum().majority()] {
        drive.objects.store(&claimed, value(), STORE_IF_ABSENT).await.expect("stores");
    }
    voters[0].objects.store(&key(&next.name), value(), STORE_IF_NEWER).await.expect("stores");
}

/// Returns true if no two drives hold different entries of one epoch.
fn epochs_are_won_once(lane: &Lane) -> bool {
    let mut held = BTreeMap::new();
    for (key, copies) in at_rest::copies(&lane.media_at_rest()) {
        for entry in copies {
            if *held.entry((key, entry.epoch)).or_insert_with(|| entry.clone()) != entry {
                return false;
            }
        }
    }
    true
}

/// Returns a lane whose drives hold object 0.
pub fn with_object() -> Lane {
    let lane = Lane::new(0, GUARDED);
    lane.start_drives();
    let known = Rc::clone(&lane.known);
    let put = lane.ask(move |array| {
        let known = Rc::clone(&known);
        async move { host::put(&array, 0, UNPROTECTED, &known).await }
    });
    assert_eq!(put, Told::Done);
    lane
}

#[test]
fn a_reclaim_leaves_the_claims_of_an_entry_that_one_drive_alone_holds() {
    let lane = with_object();
    lane.ask(interrupted);
    let reclaim = || lane.ask(|array| async move { object::reclaim(&array).await });
    let reclaimed = reclaim().expect("reclaims").claims;
    let remove = || lane.ask(|array| async move { object::remove(&array, &name_of(0)).await });
    lane.world.partition(lane.hosts[0], lane.drives[0].machine);
    let removed = remove();
    lane.world.heal(lane.hosts[0], lane.drives[0].machine);
    assert!(
        matches!(removed, Err(Error::Name(NameError::Undecided { .. }))),
        "{removed:?}, {reclaimed} claims"
    );
    assert!(epochs_are_won_once(&lane), "two writers have won one epoch");
    // With all drives it is decided.
    remove().expect("removes");
    let found = lane.ask(|array| async move { object::lookup(&array, &name_of(0)).await });
    assert!(matches!(found, Err(Error::Name(NameError::Missing { .. }))), "{found:?}");
    assert!(epochs_are_won_once(&lane), "two writers have won one epoch");
    assert_eq!((reclaimed, reclaim().expect("reclaims").claims), (0, 0));
}

/// A drive's damaged claim may be any writer's. Deleted too early, it would be a vote for another.
#[test]
fn a_scrub_gives_no_epoch_of_damaged_claims_to_another_writer() {
    let lane = with_object();
    lane.ask(interrupted);
    lane.ask(|array| async move {
        let entry = object::lookup(&array, &name_of(0)).await.expect("it is there");
        for drive in &array.voters()[1..3] {
            let (claim, value) =
                (claim_key(&entry.name, entry.epoch), Buffer::from_slice(&[7; 40]));
            drive.objects.store(&claim, vec![value], 0).await.expect("stores");
        }
    });
    lane.world.partition(lane.hosts[0], lane.drives[0].machine);
    let mended = lane.ask(|array| async move { scrub::names(&array, &[], true).await });
    let mended = mended.expect("reads").bad.iter().filter(|bad| bad.repaired).count();
    drop(lane.ask(|array| async move { object::remove(&array, &name_of(0)).await }));
    assert!(epochs_are_won_once(&lane), "two writers have won one epoch");
    assert_eq!(mended, 0, "nobody knows whose they are");
    lane.world.heal(lane.hosts[0], lane.drives[0].machine);
    lane.ask(|array| async move { scrub::names(&array, &[], true).await }).expect("mends");
    lane.ask(|array| async move { object::remove(&array, &name_of(0)).await }).expect("removes");
    assert!(epochs_are_won_once(&lane), "two writers have won one epoch");
}

/// The claims of an epoch by drive: their writers, 0 for one that is damaged.
type Votes = [Option<u8>; 6];

/// Sees that no writer can change a name whose next epoch has these claims until a user says so,
/// that the message tells how, and that everything works afterwards.
fn pass_epoch_of(votes: Votes) {
    let lane = with_object();
    ask(&lane, 0, async move |array| {
        let entry = object::lookup(&array, &name_of(0)).await.expect("it is there");
        let claim = claim_key(&entry.name, entry.epoch + 1);
        let of =
            |writer: u8| Entry { epoch: entry.epoch + 1, writer: [writer; 16], ..entry.clone() };
        for (drive, vote) in array.voters().iter().zip(votes) {
            let Some(writer) = vote else { continue };
            let value = if writer == 0 { vec![7; 40] } else { of(writer).encode() };
            let stored = drive.objects.store(&claim, vec![Buffer::from_slice(&value)], 0).await;
            stored.expect("stores");
        }
        let bad = (0..).zip(votes).filter(|(_, vote)| *vote == Some(0));
        let bad: Vec<String> = bad.map(|(drive, _)| format!("d{drive}")).collect();
        for _ in 0..2 {
            let removed = object::remove(&array, &entry.name).await;
            assert!(
                matches!(&removed, Err(Error::Name(NameError::DamagedClaims { drives, .. }))
                    if *drives == bad),
                "{removed:?}"
            );
        }
        let found = scrub::names(&array, &[], true).await.expect("reads");
        assert!(found.trouble.iter().all(|why| why.contains("--accept-name")), "{found:?}");
        assert!(!found.trouble.is_empty());
        assert_eq!(object::lookup(&array, &entry.name).await.expect("is read"), entry);
        let accepted = accept(&array, &key(&entry.name), &entry.name).await.expect("accepts");
        assert!(accepted.epoch > entry.epoch + 1);
        let found = scrub::names(&array, &[], true).await.expect("reads");
        assert!(found.bad.iter().all(|bad| bad.repaired) && found.trouble.is_empty(), "{found:?}");
        assert_eq!(scrub::names(&array, &[], false).await.expect("reads").bad, []);
        assert!(
            accept(&array, &key(&entry.name), &entry.name).await.is_err(),
            "nothing is damaged"
        );
        object::remove(&array, &entry.name).await.expect("removes");
    });
    assert!(epochs_are_won_once(&lane), "two writers have won one epoch");
}

/// Two writers were cut off with half of the claims of an epoch each, of which one rots: either
/// may have won, and no drive can tell. A user decides.
#[test]
fn an_epoch_whose_winner_a_damaged_claim_hides_is_passed_if_a_user_says_so() {
    pass_epoch_of([Some(1), Some(1), Some(1), Some(2), Some(2), Some(0)]);
}

/// Half of the claims of an epoch or more are damaged: no writer can win it any more.
#[test]
fn an_epoch_that_damage_keeps_everybody_from_winning_is_passed_if_a_user_says_so() {
    pass_epoch_of([Some(0), Some(0), Some(1), Some(0), Some(1), None]);
    pass_epoch_of([None, Some(0), None, Some(0), None, Some(0)]);
    pass_epoch_of([Some(0); 6]);
}
