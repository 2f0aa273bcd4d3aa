//! Puts and gets that go on after their connections ended: a host that was paused for so long that
//! its drives have given it up, and a drive that dies in the middle and is started again.
//!
//! Rules: the put succeeds, another host reads its bytes, and a get returns them. If a drive dies
//! that is written blocks, the put may fail instead, because such a drive may have lost what it had
//! not made durable; it never succeeds with other bytes.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::Options;
use csd_kernels::ElementType;
use csd_store::array::{Array, GUARDED};
use csd_store::layout::Scheme;
use csd_store::object::{self, On, Progress, PutOptions};
use csd_store::source::Source;

use super::history::CHUNK_BYTES;
use super::host::read;
use super::pace::{ask, begin, options_of, put_bytes};
use super::{Lane, plan};
use crate::seeds;
use crate::words::words;

const NAME: &str = "object";
const CHUNKS: u64 = 240;
/// Time of a put and of a get in which something happens, us.
const PUT_US: u64 = 40_000;
const GET_US: u64 = 4_000;
/// Longest time until a drive that died is started again, ms; a host waits for 30 s.
const AWAY_MS: u64 = 15_000;
/// Longer than a drive takes to start.
const STARTED: Duration = Duration::from_secs(2);

/// Kind of an object, and what happens while it is put or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    on: On,
    is_protected: bool,
    /// True if a drive dies, false if all connections of the host end.
    dies: bool,
}

/// Number of commands that were cut off, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    puts: u64,
    gets: u64,
    /// Puts of blocks that failed because a drive was started again.
    failed: u64,
    /// Commands that ended before anything happened.
    spared: u64,
}

fn content() -> Vec<u8> {
    words(7 << 32, usize::try_from(CHUNKS * CHUNK_BYTES - 100).unwrap())
}

fn put_options(case: Case) -> PutOptions {
    let protect = Scheme::new(2, 2).filter(|_| case.is_protected);
    PutOptions { on: case.on, protect, ..options_of(NAME) }
}

/// Connects as `csd` does.
async fn connect() -> Array {
    Array::connect_with(&plan(), &Options::default(), GUARDED).await
}

/// Lets something happen to host 0 at a moment of its work; returns false if it had ended by then.
fn cut_off(lane: &Lane, begun: &Cell<bool>, (within_us, dies): (u64, bool)) -> bool {
    lane.wait("the host", || begun.get());
    lane.world.run_for(Duration::from_micros(lane.draw(0..within_us)));
    if !lane.world.is_running(lane.hosts[0]) {
        return false;
    }
    let struck = lane.draw_drive();
    match dies {
        true => {
            lane.world.crash(lane.drives[struck].machine);
            lane.world.run_for(Duration::from_millis(lane.draw(0..AWAY_MS)));
            lane.start_drive(struck);
        }
        false => {
            for drive in &lane.drives {
                lane.world.disconnect(lane.hosts[0], drive.machine);
            }
        }
    }
    lane.wait("the host", || !lane.world.is_running(lane.hosts[0]));
    // The host may have done without the drive.
    lane.world.run_for(STARTED);
    true
}

fn run(seed: u64, case: Case) -> Counts {
    let (lane, mut counts) = (Lane::new(seed, GUARDED), Counts::default());
    lane.start_drives();
    let begun = Rc::new(Cell::new(false));
    let note = Rc::clone(&begun);
    let told = begin(&lane, 0, async move |_| {
        let array = connect().await;
        note.set(true);
        let bytes = Box::new(std::io::Cursor::new(content()));
        let source = Source::raw("bytes", bytes, ElementType::Bytes);
        object::put(&array, source, &put_options(case), &Progress::none()).await
    });
    let is_cut = cut_off(&lane, &begun, (PUT_US, case.dies));
    counts.puts += u64::from(is_cut);
    counts.spared += u64::from(!is_cut);
    lane.wait("the host", || !lane.world.is_running(lane.hosts[0]));
    match told.take().expect("the host has ended") {
        Ok(_) => {}
        Err(error) if case.dies && case.on == On::Block => {
            assert!(error.is_lost(), "{case:?}: {error}");
            counts.failed += 1;
            ask(&lane, 1, async move |array| {
                put_bytes(&array, &put_options(case), content()).await;
            });
        }
        Err(error) => panic!("seed {seed}, {case:?}: {error}"),
    }
    ask(&lane, 1, async |array| {
        let entry = object::lookup(&array, NAME).await.expect("it is there");
        let (bytes, done) = read(&array, entry).await;
        done.expect("reads");
        assert!(bytes == content(), "other bytes");
    });
    begun.set(false);
    let note = Rc::clone(&begun);
    let told = begin(&lane, 0, async move |_| {
        let array = connect().await;
        let entry = object::lookup(&array, NAME).await.expect("it is there");
        note.set(true);
        let (bytes, done) = read(&array, entry).await;
        done.map(|()| bytes == content())
    });
    let is_cut = cut_off(&lane, &begun, (GET_US, case.dies));
    counts.gets += u64::from(is_cut);
    counts.spared += u64::from(!is_cut);
    lane.wait("the host", || !lane.world.is_running(lane.hosts[0]));
    match told.take().expect("the host has ended") {
        Ok(is_same) => assert!(is_same, "other bytes"),
        Err(error) => panic!("seed {seed}, {case:?}: {error}"),
    }
    counts
}

/// Returns the case of a seed.
fn case(seed: u64) -> Case {
    let on = if seed.is_multiple_of(2) { On::Kv } else { On::Block };
    let is_protected = seed / 2 % 2 == 1;
    Case { on, is_protected, dies: seed / 4 % 2 == 1 }
}

#[test]
fn puts_and_gets_go_on_after_a_pause_and_after_a_drive_was_started_again() {
    let mut all = Counts::default();
    for counts in seeds::each(seeds(), |seed| run(seed, case(seed))) {
        all.puts += counts.puts;
        all.gets += counts.gets;
        all.failed += counts.failed;
        all.spared += counts.spared;
    }
    let count = seeds().count();
    println!("array, connections that end: {count} seeds, {all:?}");
    assert!(count < 50 || all.puts > 0 && all.gets > 0, "{all:?}");
}
