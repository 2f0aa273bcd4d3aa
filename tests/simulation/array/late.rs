//! Drives wait for chunks that they fetch to their blocks, and the object is removed meanwhile: the
//! blocks belong to another object when the chunks arrive.

use std::sync::Arc;
use std::time::Duration;

use csd_store::array::GUARDED;
use csd_store::layout::Scheme;
use csd_store::object::{self, Arrange, Encode, PutOptions};

use super::pace::{CHUNKS, ask, begin, options_of, put, put_chunks};
use super::pieces::{self, Sound};
use super::{DRIVES, Lane};

/// Times between the beginning of a protect and the moment at which drives no longer reach the one
/// that has the object.
const STEPS: u64 = 24;
const STEP: Duration = Duration::from_millis(1);

#[test]
fn chunks_that_arrive_late_are_not_written_to_blocks_of_another_object() {
    let (mut removed, mut done) = (0, 0);
    for step in 0..STEPS {
        let lane = Lane::new(step, GUARDED);
        lane.start_drives();
        let options = PutOptions { arrange: Arrange::Whole, protect: None, ..options_of("old") };
        let old = ask(&lane, 0, async move |array| put_chunks(&array, &options, 1, CHUNKS).await);
        let origin = usize::from(old.members[0]);
        let others: Vec<usize> = (0..DRIVES).filter(|drive| *drive != origin).collect();
        let ends = |drive: &usize| (lane.drives[origin].machine, lane.drives[*drive].machine);
        let protect = begin(&lane, 0, async |array| {
            let (scheme, progress) = (Scheme::new(2, 2).unwrap(), Arc::new(|_| {}) as _);
            object::protect(&array, "old", scheme, Encode::Drives, &progress).await.is_ok()
        });
        lane.world.run_for(STEP * u32::try_from(step).unwrap());
        others.iter().map(ends).for_each(|(one, other)| lane.world.partition(one, other));
        lane.world.run_for(Duration::from_millis(200));
        let is_early = protect.borrow().is_none();
        let new = ask(&lane, 1, async |array| {
            object::remove(&array, "old").await.expect("removes");
            put(&array, "new", 2).await
        });
        others.iter().map(ends).for_each(|(one, other)| lane.world.heal(one, other));
        lane.wait("the protect", || !lane.world.is_running(lane.hosts[0]));
        let protected = protect.take().expect("the protect has ended");
        removed += u64::from(is_early);
        done += u64::from(protected);
        assert!(!(is_early && protected), "the protect did not wait");
        // Drives may go on after the host has ended.
        lane.world.run_for(Duration::from_secs(30));
        let sound = ask(&lane, 1, async move |_| Sound::read(&pieces::media().await?, &new).await);
        assert!(sound.expect("all drives answer").is_full(), "a drive has written to its blocks");
    }
    println!("array: {removed} protects were overtaken, and {done} were done");
    assert!(removed > STEPS / 4, "{removed}");
}
