//! A repair with a rate waits, and the object is removed meanwhile: its blocks belong to another
//! object when the repair goes on.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use csd_kernels::ElementType;
use csd_kvlog::media::{Volatile, VolatileConfig};
use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::{Entry, Extents, Placement, rebuild};
use csd_store::layout::Scheme;
use csd_store::object::{self, On, PutOptions};
use csd_store::repair::{self, Limits, Repaired};
use csd_store::source::Source;

use super::history::CHUNK_BYTES;
use super::host::options;
use super::pieces::Sound;
use super::repair::no_limits;
use super::{Lane, plan};
use crate::DRIVE_BYTES;

/// The drive that comes back empty.
pub(super) const EMPTIED: usize = 2;
/// Chunks of each object: four on each drive.
const CHUNKS: u64 = 24;
/// A drive takes 16 s to store a piece and to read it again.
const BYTES_PER_S: u64 = CHUNK_BYTES / 8;

/// Answer of a host, once it is there.
pub(super) type Told<T> = Rc<RefCell<Option<T>>>;

/// Lets a host work on the array.
pub(super) fn begin<T: 'static>(
    lane: &Lane,
    host: usize,
    work: impl AsyncFnOnce(Array) -> T + 'static,
) -> Told<T> {
    begin_alone(lane, host, async move || {
        work(Array::connect_with(&plan(), &options(), GUARDED).await).await
    })
}

/// Lets a host work that has no connection yet.
pub(super) fn begin_alone<T: 'static>(
    lane: &Lane,
    host: usize,
    work: impl AsyncFnOnce() -> T + 'static,
) -> Told<T> {
    let told = Told::<T>::default();
    let (tell, mut work) = (Rc::clone(&told), Some(work));
    lane.world.start(lane.hosts[host], move |_| {
        let (tell, work) = (Rc::clone(&tell), work.take().expect("a host has one core"));
        async move {
            let done = work().await;
            tell.replace(Some(done));
        }
    });
    told
}

/// Lets a host work, and waits for its answer.
pub(super) fn ask<T: 'static>(
    lane: &Lane,
    host: usize,
    work: impl AsyncFnOnce(Array) -> T + 'static,
) -> T {
    ended(lane, host, &begin(lane, host, work))
}

/// Waits until a host has ended; returns its answer.
pub(super) fn ended<T>(lane: &Lane, host: usize, told: &Told<T>) -> T {
    lane.wait("a host", || !lane.world.is_running(lane.hosts[host]));
    told.take().expect("the host has answered")
}

/// Puts an object on blocks, of chunks that are full of a byte; returns its entry.
pub(super) async fn put(array: &Array, name: &str, byte: u8) -> Entry {
    put_chunks(array, &options_of(name), byte, CHUNKS).await
}

/// Returns the options of an object on blocks that survives the loss of two drives.
pub(super) fn options_of(name: &str) -> PutOptions {
    PutOptions {
        on: On::Block,
        chunk_bytes: Some(CHUNK_BYTES),
        protect: Some(Scheme::new(2, 2).unwrap()),
        ..PutOptions::new(name.to_owned())
    }
}

/// Puts an object of so many chunks that are full of a byte; returns its entry.
pub(super) async fn put_chunks(
    array: &Array,
    options: &PutOptions,
    byte: u8,
    chunks: u64,
) -> Entry {
    let bytes = vec![byte; usize::try_from(chunks * CHUNK_BYTES).unwrap()];
    put_bytes(array, options, bytes).await
}

/// Puts an object of these bytes; returns its entry.
pub(super) async fn put_bytes(array: &Array, options: &PutOptions, bytes: Vec<u8>) -> Entry {
    let source = Source::raw("bytes", Box::new(io::Cursor::new(bytes)), ElementType::Bytes);
    let progress = object::Progress::none();
    object::put(array, source, options, &progress).await.expect("puts").entry
}

/// Brings the drive back empty.
pub(super) fn empty(lane: &mut Lane) {
    empty_drive(lane, EMPTIED);
}

/// Brings a drive back empty.
pub(super) fn empty_drive(lane: &mut Lane, index: usize) {
    lane.world.crash(lane.drives[index].machine);
    lane.replace(index, Volatile::new(DRIVE_BYTES, VolatileConfig::default()), false);
    lane.start_drive(index);
    lane.wait("the empty drive", || lane.drives[index].is_formatted.get());
}

/// Begins a repair of these objects at the rate.
pub(super) fn begin_repair(lane: &Lane, entries: Vec<Entry>) -> Told<Repaired> {
    begin(lane, 0, async move |array| {
        let limits = Limits { bytes_per_s: Some(BYTES_PER_S), ..no_limits(repair::On::Host) };
        repair::repair(&array, &entries, &limits).await
    })
}

/// Returns the blocks of an object on the drive that was emptied.
fn blocks(entry: &Entry) -> &Extents {
    let Placement::Block(extents) = &entry.placement else { panic!("on blocks") };
    let member = entry.members.iter().position(|drive| usize::from(*drive) == EMPTIED);
    &extents[member.expect("on all drives")]
}

#[test]
fn a_repair_that_waits_for_its_rate_writes_to_no_other_object() {
    let mut lane = Lane::new(0, GUARDED);
    lane.start_drives();
    let old = ask(&lane, 0, async |array| put(&array, "old", 1).await);
    empty(&mut lane);
    ask(&lane, 0, async |array| {
        rebuild::rebuild(&array, DriveIndex::new(EMPTIED)).await.expect("rebuilds")
    });
    let repair = begin_repair(&lane, vec![old.clone()]);
    // Its first stripe is repaired; it waits before the next one.
    lane.world.run_for(Duration::from_secs(4));
    let new = ask(&lane, 1, async |array| {
        object::remove(&array, "old").await.expect("removes");
        put(&array, "new", 2).await
    });
    assert!(repair.borrow().is_none(), "the repair did not wait");
    assert_eq!(blocks(&new), blocks(&old), "the new object has other blocks");
    lane.wait("the repair", || !lane.world.is_running(lane.hosts[0]));
    let found = repair.take().expect("the repair has ended");
    assert!(found.rebuilt > 0 && found.objects == 0, "{found:?}");
    let sound = Sound::at_rest(&lane.media_at_rest(), &new).expect("it is protected");
    assert!(sound.is_full(), "the repair has written to its blocks");
}

#[test]
fn a_repair_leaves_stripes_of_an_object_that_was_put_again_since() {
    let mut lane = Lane::new(0, GUARDED);
    lane.start_drives();
    let entries = ask(&lane, 0, async |array| {
        vec![put(&array, "first", 1).await, put(&array, "second", 1).await]
    });
    empty(&mut lane);
    ask(&lane, 0, async |array| {
        rebuild::rebuild(&array, DriveIndex::new(EMPTIED)).await.expect("rebuilds")
    });
    let repair = begin_repair(&lane, entries);
    // It knows the stripes of both, and waits for its rate at the first one.
    lane.world.run_for(Duration::from_secs(4));
    let again = ask(&lane, 1, async |array| {
        object::remove(&array, "second").await.expect("removes");
        put_chunks(&array, &options_of("second"), 2, 1).await
    });
    assert!(repair.borrow().is_none(), "the repair did not wait");
    // At its rate it takes 16 s for a piece.
    lane.world.run_for(Duration::from_secs(1000));
    lane.wait("the repair", || !lane.world.is_running(lane.hosts[0]));
    let found = repair.take().expect("the repair has ended");
    assert!(found.is_whole() && found.objects == 2, "{found:?}");
    let sound = Sound::at_rest(&lane.media_at_rest(), &again).expect("it is protected");
    assert!(sound.is_full());
}
