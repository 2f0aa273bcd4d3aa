//! A host mends a copy while another one, which does not reach its drive, writes a later entry: the
//! host sees it, and brings it to that drive.

use std::time::Duration;

use csd_store::catalogue::key;
use csd_store::object;
use csd_store::scrub;

use super::DAMAGED;
use super::unreadable::flip_on;
use crate::array::at_rest;
use crate::array::claims::with_object;
use crate::array::host::name_of;
use crate::array::pace::{ask, begin};

#[test]
fn a_copy_that_is_mended_is_the_newest_entry_although_another_host_writes() {
    let lane = with_object();
    flip_on(&lane, &[DAMAGED]);
    let [host, other] = [0, 1].map(|host| lane.hosts[host]);
    let mended = begin(&lane, 0, async |array| scrub::names(&array, &[], true).await);
    let name = key(&name_of(0));
    let is_stored = || {
        let media = lane.media_at_rest();
        media[DAMAGED].value(&name).is_some_and(|copy| Some(copy) == media[0].value(&name))
    };
    while !is_stored() {
        lane.world.run_for(Duration::from_micros(5));
    }
    // The host hears nothing of it before the other one has written.
    lane.drives.iter().for_each(|drive| lane.world.partition(host, drive.machine));
    lane.world.partition(other, lane.drives[DAMAGED].machine);
    ask(&lane, 1, async |array| object::remove(&array, &name_of(0)).await).expect("removes");
    for host in [host, other] {
        lane.drives.iter().for_each(|drive| lane.world.heal(host, drive.machine));
    }
    lane.wait("the host", || !lane.world.is_running(host));
    let found = mended.take().expect("it has answered").expect("reads");
    assert!(found.bad.len() == 1 && found.bad[0].repaired, "{found:?}");
    let copies = at_rest::copies(&lane.media_at_rest());
    let epochs: Vec<u64> = copies[&name].iter().map(|entry| entry.epoch).collect();
    assert!(epochs.iter().all(|epoch| *epoch == epochs[DAMAGED]), "{epochs:?}");
}
