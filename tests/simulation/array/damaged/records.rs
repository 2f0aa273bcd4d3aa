//! Records of a drive by which hosts agree on the drives that vote, damaged inside values that are
//! sound to the drive: a scrub finds them. It mends rosters; a drive whose lives are damaged has no
//! vote until it is rebuilt.

use csd_nvme::kv::Key;
use csd_reactor::Buffer;
use csd_store::array::{Array, DriveIndex};
use csd_store::catalogue::rebuild;
use csd_store::scrub::{self, Cause};

use crate::array::DRIVES;
use crate::array::claims::with_object;
use crate::array::pace::ask;

const DAMAGED: [(usize, &[u8], Cause); 2] =
    [(1, b"\x07roster", Cause::Roster), (4, b"\x07lives", Cause::Lives)];

async fn damage(array: Array) {
    for (drive, name, _) in &DAMAGED {
        let (objects, key) =
            (&array.slots()[*drive].up().unwrap().objects, Key::new(name).unwrap());
        let mut value = objects.retrieve(&key, 1 << 20).await.expect("reads").expect("has it");
        *value.last_mut().expect("it is not empty") ^= 1;
        let value = Buffer::from_slice(&value);
        objects.store(&key, vec![value], 0).await.expect("stores");
    }
}

#[test]
fn a_damaged_roster_and_damaged_lives_are_found_and_mended() {
    let lane = with_object();
    ask(&lane, 0, damage);
    for mends in [false, true] {
        let found = ask(&lane, 0, async move |array| scrub::names(&array, &[], mends).await);
        let found = found.expect("reads");
        let of = |bad: scrub::Bad| (bad.drive, bad.cause, bad.repaired);
        let bad: Vec<_> = found.bad.into_iter().map(of).collect();
        let expected = DAMAGED.map(|(drive, _, cause)| {
            (Some(format!("d{drive}")), cause, mends && cause == Cause::Roster)
        });
        assert!(expected.iter().all(|it| bad.contains(it)) && bad.len() == 2, "{bad:?}");
    }
    ask(&lane, 0, async |array| {
        let drive = DriveIndex::new(DAMAGED[1].0);
        rebuild::rebuild(&array, drive).await.expect("rebuilds");
    });
    ask(&lane, 0, async |array| {
        assert_eq!(array.voters().len(), DRIVES, "one has no vote");
        assert_eq!(scrub::names(&array, &[], false).await.expect("reads").bad, []);
    });
}
