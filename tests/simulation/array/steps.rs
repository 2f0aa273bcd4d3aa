//! A host is killed after any send of a change of an object, its own or a drive's, or at any
//! step of a rebuild of an empty drive's catalogue; another one goes on with what it finds. The
//! object's bytes are read throughout, and the repeated change leaves all pieces and no others.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use csd_kernels::ElementType;
use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::{Entry, rebuild};
use csd_store::error::{NameError, ProtectionError};
use csd_store::layout::Scheme;
use csd_store::object::{self, Arrange, Encode, Error, On, PutOptions};
use csd_store::repair;
use csd_store::source::Source;

use super::Lane;
use super::history::bytes_of;
use super::host::read;
use super::pace::{self, EMPTIED, ask, begin, empty, options_of};
use super::pieces::{Sound, left_after_reclaim};
use super::rebalance;
use super::repair::no_limits;
use crate::seeds;

const NAME: &str = "object";
/// The name from which the object is moved.
const FORMER_NAME: &str = "former object";
/// The content of the object: nine chunks, the last one shorter.
const CONTENT: u64 = 8;
/// The content of an object that is replaced.
const OTHER_CONTENT: u64 = 9;
/// One of so many seeds is a run of all changes, with one part of the sends of each.
const SEEDS: u64 = 20;
/// A part is one of so many sends: 2,000 seeds have all parts.
const PARTS: u64 = 100;
/// Distance of the parts of two runs, so that a few of them are spread over the sends.
const NEXT_PART: u64 = 37;
/// Time between two steps of a rebuild of the catalogue: less than a command takes.
const REBUILD_STEP: Duration = Duration::from_micros(50);
/// Longer than a drive goes on with a task of a host that is gone.
const LATE: Duration = Duration::from_secs(15);

/// A change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Put(On),
    Protect(On, Before, Encode),
    Repair(On, repair::On),
    Rebalance(On),
    Remove(On),
    /// Puts the object in place of another one without parity.
    Replace(On),
    /// Gives the object another name, in place of another one without parity.
    Move(On),
}

/// Layout of an object before it is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Spread,
    Whole,
}

impl Change {
    /// Stores the object that is changed.
    async fn prepare(self, array: &Array) {
        let stored = match self {
            Self::Put(_) => return,
            Self::Protect(on, Before::Spread, _) => {
                put(array, on, Arrange::Spread, (None, None)).await
            }
            Self::Protect(on, Before::Whole, _) => {
                put(array, on, Arrange::Whole, (None, None)).await
            }
            Self::Rebalance(on) => {
                put_protected(
                    array,
                    on,
                    Some(rebalance::aligned([0, 1, 3, 4].map(DriveIndex::new).to_vec())),
                )
                .await
            }
            Self::Repair(on, _) | Self::Remove(on) => put_protected(array, on, None).await,
            Self::Replace(on) => put_other(array, on).await,
            Self::Move(on) => {
                put_other(array, on).await.expect("puts");
                put_as((FORMER_NAME, CONTENT), array, on, Arrange::Spread, (Some(scheme()), None))
                    .await
            }
        };
        stored.expect("puts");
    }

    /// Makes the change, which may have been made before.
    async fn make(self, array: &Array) {
        match self {
            Self::Put(on) => match put_protected(array, on, None).await {
                Ok(()) | Err(Error::Name(NameError::Exists { .. })) => {}
                Err(error) => panic!("{error}"),
            },
            Self::Protect(_, _, encode) => {
                let progress = object::Progress::none();
                match object::protect(array, NAME, scheme(), encode, &progress).await {
                    Ok(_) | Err(Error::Protection(ProtectionError::Impossible { .. })) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Self::Repair(_, on) => {
                let entry = object::lookup(array, NAME).await.expect("it is there");
                let limits = no_limits(on);
                let found = repair::repair(array, &[entry], &limits).await;
                assert!(found.is_whole(), "{found:?}");
            }
            Self::Rebalance(_) => {
                let entry = object::lookup(array, NAME).await.expect("it is there");
                let (drives, limits) = (array.voting(), rebalance::no_limits());
                let done = object::rebalance(array, &[entry], &drives, &limits).await;
                assert!(done.failed.is_empty(), "{:?}", done.failed);
            }
            Self::Remove(_) => match object::remove(array, NAME).await {
                Ok(_) | Err(Error::Name(NameError::Missing { .. })) => {}
                Err(error) => panic!("{error}"),
            },
            Self::Replace(on) => {
                let (source, options) = input((NAME, CONTENT), on, Arrange::Spread);
                let options = PutOptions { protect: Some(scheme()), ..options };
                let progress = object::Progress::none();
                object::replace(array, source, &options, &progress).await.expect("replaces");
            }
            Self::Move(_) => match rename(array).await {
                Ok(()) | Err(Error::Name(NameError::Missing { .. })) => {}
                Err(error) => panic!("{error}"),
            },
        }
    }

    /// Reads the object, which may be missing while it is put or removed.
    async fn look(self, array: &Array) {
        match object::lookup(array, NAME).await {
            Ok(entry) => {
                let (bytes, done) = read(array, entry).await;
                done.expect("reads");
                let is_other = bytes == bytes_of(OTHER_CONTENT);
                match self {
                    Self::Replace(_) if is_other => {}
                    Self::Move(_) if is_other => {
                        let former = object::lookup(array, FORMER_NAME).await;
                        let (bytes, done) = read(array, former.expect("it is there")).await;
                        done.expect("reads");
                        assert!(bytes == bytes_of(CONTENT), "other bytes of the former name");
                    }
                    _ => assert!(bytes == bytes_of(CONTENT), "other bytes"),
                }
            }
            Err(Error::Name(NameError::Missing { .. }))
                if matches!(self, Self::Put(_) | Self::Remove(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Compares what the media hold with the change that was made.
    fn check(self, lane: &Lane) {
        let (found, drives) = ask(lane, 1, async move |array| {
            self.look(&array).await;
            (object::lookup(&array, NAME).await, array.voting())
        });
        match found {
            Err(Error::Name(NameError::Missing { .. })) => assert!(matches!(self, Self::Remove(_))),
            Err(error) => panic!("{error}"),
            Ok(entry) => {
                let sound = Sound::at_rest(&lane.media_at_rest(), &entry);
                let sound = sound.expect("it is protected");
                assert!(sound.is_full(), "pieces are lacking");
                assert!(sound.differences(&entry, &bytes_of(CONTENT)).is_empty());
                let is_moved = !matches!(self, Self::Rebalance(_));
                assert!(is_moved || object::lies_on(&entry, &drives), "{:?}", entry.members);
            }
        }
        let left = left_after_reclaim(lane);
        assert!(left.is_empty(), "{left:?}");
    }
}

fn scheme() -> Scheme {
    Scheme::new(2, 2).unwrap()
}

/// Puts the object protected, as another one is placed or on all drives.
async fn put_protected(array: &Array, on: On, align: Option<Entry>) -> Result<(), Error> {
    put(array, on, Arrange::Spread, (Some(scheme()), align)).await
}

/// Puts the object that is replaced.
async fn put_other(array: &Array, on: On) -> Result<(), Error> {
    put_as((NAME, OTHER_CONTENT), array, on, Arrange::Spread, (None, None)).await
}

async fn put(
    array: &Array,
    on: On,
    arrange: Arrange,
    more: (Option<Scheme>, Option<Entry>),
) -> Result<(), Error> {
    put_as((NAME, CONTENT), array, on, arrange, more).await
}

/// Copies the object to its other name, and removes the former one.
async fn rename(array: &Array) -> Result<(), Error> {
    let (progress, never) = (object::Progress::none(), Rc::default());
    let names = (FORMER_NAME, NAME);
    let copied = object::duplicate(array, names, true, &progress, &never).await?;
    object::remove_this(array, &copied.original).await.map(|_| ())
}

/// Returns a source of this content, and the options to put it under this name.
fn input((name, content): (&str, u64), on: On, arrange: Arrange) -> (Source, PutOptions) {
    let source = Box::new(io::Cursor::new(bytes_of(content)));
    let source = Source::raw("bytes", source, ElementType::Bytes);
    let page_bytes = Some(object::PAGE_BYTES);
    (source, PutOptions { on, arrange, page_bytes, ..options_of(name) })
}

async fn put_as(
    object: (&str, u64),
    array: &Array,
    on: On,
    arrange: Arrange,
    (protect, align): (Option<Scheme>, Option<Entry>),
) -> Result<(), Error> {
    let (source, options) = input(object, on, arrange);
    let options = PutOptions { align, protect, ..options };
    let progress = object::Progress::none();
    object::put(array, source, &options, &progress).await.map(|_| ())
}

/// Interruptions of a change.
#[derive(Clone, Copy, Default)]
struct Interrupted {
    /// Number of times that the host was killed.
    kills: u64,
    /// Number of sends after which it was killed last.
    last: u64,
}

/// Returns how often the host and the drives have sent something.
fn sends(lane: &Lane) -> u64 {
    let drives = lane.drives.iter().map(|drive| drive.machine);
    drives.chain([lane.hosts[0]]).map(|machine| lane.world.sends(machine)).sum()
}

/// Kills the host after each send of the seed's part of a change, until the change ends earlier.
fn interrupt(seed: u64, change: Change) -> Interrupted {
    let mut lane = Lane::new(seed, GUARDED);
    lane.start_drives();
    let mut done = Interrupted::default();
    for part in 0.. {
        ask(&lane, 1, async move |array| change.prepare(&array).await);
        if matches!(change, Change::Repair(..)) {
            empty(&mut lane);
            ask(&lane, 1, async |array| {
                rebuild::rebuild(&array, DriveIndex::new(EMPTIED)).await.expect("rebuilds")
            });
        }
        let after = seed / SEEDS * NEXT_PART % PARTS + part * PARTS;
        let is_begun = Rc::new(Cell::new(false));
        let begins = Rc::clone(&is_begun);
        let told = begin(&lane, 0, async move |array| {
            begins.set(true);
            change.make(&array).await;
        });
        lane.wait("the array", || is_begun.get());
        let before = sends(&lane);
        let is_over = || told.borrow().is_some() || sends(&lane) >= before + after;
        lane.wait("the send", is_over);
        lane.world.crash(lane.hosts[0]);
        let is_done = told.take().is_some();
        ask(&lane, 1, async move |array| {
            change.look(&array).await;
            change.make(&array).await;
            change.look(&array).await;
        });
        lane.world.run_for(LATE);
        change.check(&lane);
        ask(&lane, 1, async |array| Change::Remove(On::Kv).make(&array).await);
        if is_done {
            return done;
        }
        done = Interrupted { kills: done.kills + 1, last: after };
    }
    unreachable!("the change ends")
}

#[test]
fn changes_that_are_interrupted_after_any_send_can_be_repeated() {
    let mut changes = Vec::new();
    for on in [On::Kv, On::Block] {
        changes.extend([Change::Put(on), Change::Rebalance(on), Change::Remove(on)]);
        changes.extend([Change::Replace(on), Change::Move(on)]);
        for place in [repair::On::Host, repair::On::Drives] {
            changes.push(Change::Repair(on, place));
        }
        for (before, encode) in [
            (Before::Spread, Encode::Host),
            (Before::Spread, Encode::Drives),
            (Before::Whole, Encode::Host),
            (Before::Whole, Encode::Drives),
        ] {
            changes.push(Change::Protect(on, before, encode));
        }
    }
    let interrupt_all = |seed| changes.iter().map(|change| interrupt(seed, *change)).collect();
    let runs = seeds().step_by(usize::try_from(SEEDS).unwrap());
    let all: Vec<Vec<Interrupted>> = seeds::each(runs, interrupt_all);
    for (index, change) in changes.iter().enumerate() {
        let kills: u64 = all.iter().map(|run| run[index].kills).sum();
        let last = all.iter().map(|run| run[index].last).max().unwrap_or_default();
        println!("array: {change:?} was interrupted after {kills} of {last} sends");
        assert!(kills > 0, "{change:?} was not interrupted");
    }
}

#[test]
fn a_rebuild_that_is_interrupted_at_any_step_can_be_repeated() {
    let mut lane = Lane::new(0, GUARDED);
    lane.start_drives();
    ask(&lane, 0, async |array| pace::put(&array, "object", 1).await);
    let mut interrupted = 0;
    loop {
        empty(&mut lane);
        let told = begin(&lane, 0, async |array| {
            rebuild::rebuild(&array, DriveIndex::new(EMPTIED)).await.is_ok()
        });
        lane.world.run_for(REBUILD_STEP * interrupted);
        lane.world.crash(lane.hosts[0]);
        if told.take().is_some() {
            break;
        }
        let repeated =
            ask(&lane, 1, async |array| rebuild::rebuild(&array, DriveIndex::new(EMPTIED)).await);
        let rebuilt = repeated.unwrap_or_else(|error| panic!("step {interrupted}: {error}"));
        assert_eq!(rebuilt.names, 1);
        let votes = ask(&lane, 1, async |array| array.slots()[EMPTIED].vote().is_ok());
        assert!(votes, "step {interrupted}");
        interrupted += 1;
    }
    println!("array: a rebuild was interrupted at {interrupted} steps");
    assert!(interrupted > 20, "{interrupted}");
}
