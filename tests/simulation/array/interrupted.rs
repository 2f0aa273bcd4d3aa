//! A host that rebuilds the catalogue of an empty drive is killed at any step, and another one
//! rebuilds it.

use std::time::Duration;

use csd_store::array::GUARDED;
use csd_store::catalogue::rebuild;

use super::Lane;
use super::pace::{EMPTIED, ask, begin, empty, put};

/// Time between two steps at which the host is killed: less than a command takes.
const STEP: Duration = Duration::from_micros(50);

#[test]
fn a_rebuild_that_is_interrupted_at_any_step_can_be_repeated() {
    let mut lane = Lane::new(0, GUARDED);
    lane.start_drives();
    ask(&lane, 0, async |array| put(&array, "object", 1).await);
    let mut interrupted = 0;
    loop {
        empty(&mut lane);
        let told = begin(&lane, 0, async |array| rebuild::rebuild(&array, EMPTIED).await.is_ok());
        lane.world.run_for(STEP * interrupted);
        lane.world.crash(lane.hosts[0]);
        if told.take().is_some() {
            break;
        }
        let repeated = ask(&lane, 1, async |array| rebuild::rebuild(&array, EMPTIED).await);
        let rebuilt = repeated.unwrap_or_else(|error| panic!("step {interrupted}: {error}"));
        assert_eq!(rebuilt.names, 1);
        let votes = ask(&lane, 1, async |array| array.slots()[EMPTIED].vote().is_ok());
        assert!(votes, "step {interrupted}");
        interrupted += 1;
    }
    println!("array: a rebuild was interrupted at {interrupted} steps");
    assert!(interrupted > 20, "{interrupted}");
}
