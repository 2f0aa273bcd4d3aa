//! A repair that writes an emptied drive's blocks again is killed at any step. A run in the drive
//! takes the blocks for the object's own only if they hold its chunks, also if it has read the
//! object's entry before the repair began.

use std::time::Duration;

use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::{Entry, Placement, rebuild};
use csd_store::error::DriveError;
use csd_store::error::Error;
use csd_store::object;
use csd_store::repair::{self, On};

use super::Lane;
use super::history::CHUNK_BYTES;
use super::pace::{EMPTIED, ask, begin, empty, put};
use super::pieces::first_byte;
use super::repair::no_limits;

/// Time until the host is killed at the first step; later ones grow with the square, because units
/// are claimed at the beginning.
const STEP: Duration = Duration::from_micros(100);
/// The byte of which the object's chunks are full.
const BYTE: u8 = 7;

async fn repair(array: &Array, entry: Entry, on: On) {
    let found = repair::repair(array, &[entry], &no_limits(on)).await;
    assert!(found.is_whole(), "{found:?}");
    let by_drives = if on == On::Drives { found.rebuilt } else { 0 };
    assert_eq!(found.by_drives, by_drives, "{found:?}");
}

/// Returns true if a run would read the blocks of the drive that was emptied, which then hold the
/// object's chunks.
async fn counts(array: &Array, entry: &Entry) -> bool {
    let drive = array.drive(DriveIndex::new(EMPTIED)).expect("it is up");
    let is_it = |member: &DriveIndex| *member == DriveIndex::new(EMPTIED);
    let member = entry.members.iter().position(is_it).expect("on all drives");
    match csd_run::check_blocks(std::slice::from_ref(entry), member, drive).await {
        Ok(()) => {}
        Err(csd_run::Error::Store(Error::Drive(DriveError::Corrupt { .. }))) => return false,
        Err(error) => panic!("{error}"),
    }
    let Placement::Block(extents) = &entry.placement else { panic!("on blocks") };
    let layout = entry.layout();
    for chunk in (0..layout.chunks()).filter(|chunk| layout.member(*chunk) == member) {
        let at = first_byte(&layout, extents, chunk);
        let read = drive.block.read(at, usize::try_from(CHUNK_BYTES).unwrap()).await;
        let read = read.expect("blocks are read");
        assert!(read.iter().all(|byte| *byte == BYTE), "chunk {chunk} is not the object's");
    }
    true
}

#[test]
fn blocks_count_as_the_objects_own_only_when_all_are_written() {
    killed_at_each_step(On::Host);
}

#[test]
fn so_do_blocks_that_drives_write_also_after_their_host_was_killed() {
    killed_at_each_step(On::Drives);
}

fn killed_at_each_step(on: On) {
    let mut lane = Lane::new(0, GUARDED);
    lane.start_drives();
    let before = ask(&lane, 0, async |array| put(&array, "object", BYTE).await);
    let (mut step, mut refused, mut counted) = (0, 0, 0);
    loop {
        empty(&mut lane);
        ask(&lane, 0, async |array| {
            rebuild::rebuild(&array, DriveIndex::new(EMPTIED)).await.expect("rebuilds")
        });
        let entry = before.clone();
        let told = begin(&lane, 0, async move |array| repair(&array, entry, on).await);
        lane.world.run_for(STEP * step * step);
        lane.world.crash(lane.hosts[0]);
        let early = before.clone();
        let count = ask(&lane, 1, async move |array| {
            let now = object::lookup(&array, "object").await.expect("it is there");
            [counts(&array, &early).await, counts(&array, &now).await]
        });
        let is_done = told.take().is_some();
        assert!(!is_done || count == [true; 2], "a repair that has ended leaves a mark");
        refused += count.iter().filter(|counts| !**counts).count();
        counted += count.iter().filter(|counts| **counts).count();
        step += 1;
        if is_done {
            break;
        }
    }
    println!("array, {on:?}: blocks were refused at {refused} looks and counted at {counted}");
    assert!(refused > 20 && counted > 1, "{refused}, {counted}");
}
