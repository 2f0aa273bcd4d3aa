//! Puts and gets that go on after their connections ended: a host that was paused for so long that
//! its drives have given it up, and a drive that dies in the middle and is started again.
//! Connections end up to three times in one command, also while a host still connects and counts
//! the votes, and while it claims a name.
//!
//! Rules: the put succeeds, another host reads its bytes, and a get returns them. If a drive dies
//! that is written blocks, the put may fail instead, because such a drive may have lost what it had
//! not made durable; it never succeeds with other bytes.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::Options;
use csd_kernels::ElementType;
use csd_store::array::{Array, GUARDED, Plan};
use csd_store::layout::Scheme;
use csd_store::object::{self, Error, On, Progress, PutOptions};
use csd_store::source::Source;

use super::history::CHUNK_BYTES;
use super::host::read;
use super::pace::{begin_alone, ended, options_of, put_bytes};
use super::{DRIVES, Lane, file};
use crate::seeds;
use crate::words::words;

const NAME: &str = "object";
const CHUNKS: u64 = 240;
/// Time of a put and of a get in which something happens, us.
const PUT_US: u64 = 40_000;
const GET_US: u64 = 4_000;
/// Times that connections end in a command, at most, and time between two of them, us.
const CUTS: u64 = 3;
const BETWEEN_US: u64 = 3_000;
/// Time in which a host connects, counts votes and claims a name, us.
const EARLY_US: u64 = 10_000;
/// Longest time until a drive that died is started again, ms; a host waits for 30 s.
const AWAY_MS: u64 = 15_000;
/// Longer than a drive takes to start.
const STARTED: Duration = Duration::from_secs(2);

/// Kind of an object, and what happens while it is put or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    on: On,
    is_protected: bool,
    /// Number of drives: as few as the object needs, of which each vote counts, or more.
    drives: usize,
    /// True if a drive dies, false if all connections of the host end.
    dies: bool,
}

/// Number of commands that were cut off, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    puts: u64,
    gets: u64,
    /// Times that connections ended or a drive died.
    times: u64,
    /// Puts of blocks that failed because a drive was started again.
    failed: u64,
    /// Commands that ended before anything happened.
    spared: u64,
}

impl Counts {
    /// Counts how often something happened to a command.
    fn note(&mut self, times: u64) {
        self.times += times;
        self.spared += u64::from(times == 0);
    }
}

fn content() -> Vec<u8> {
    words(7 << 32, usize::try_from(CHUNKS * CHUNK_BYTES - 100).unwrap())
}

fn put_options(case: Case) -> PutOptions {
    let protect = Scheme::new(2, 2).filter(|_| case.is_protected);
    PutOptions { on: case.on, protect, ..options_of(NAME) }
}

/// Connects as `csd` does.
async fn connect(drives: usize) -> Array {
    Array::connect_with(&Plan::new(&file(drives)), &Options::default(), GUARDED).await
}

async fn put(case: Case, begun: Rc<Cell<bool>>) -> Result<(), Error> {
    let array = connect(case.drives).await;
    begun.set(true);
    let bytes = Box::new(std::io::Cursor::new(content()));
    let source = Source::raw("bytes", bytes, ElementType::Bytes);
    object::put(&array, source, &put_options(case), &Progress::none()).await.map(drop)
}

/// Returns true if the bytes are those that were put.
async fn get(case: Case, begun: Rc<Cell<bool>>) -> Result<bool, Error> {
    let array = connect(case.drives).await;
    begun.set(true);
    let entry = object::lookup(&array, NAME).await?;
    let (bytes, done) = read(&array, entry).await;
    done.map(|()| bytes == content())
}

/// Lets the other host work, which nothing happens to.
fn ask<T: 'static>(lane: &Lane, work: impl AsyncFnOnce() -> T + 'static) -> T {
    ended(lane, 1, &begin_alone(lane, 1, work))
}

/// Lets something happen to host 0 at a moment of its work; returns how often it did, which is 0 if
/// the host had ended before.
fn cut_off(lane: &Lane, begun: &Cell<bool>, within_us: u64, case: Case) -> u64 {
    let times = match case.dies {
        true => {
            lane.wait("the host", || begun.get());
            u64::from(die(lane, within_us))
        }
        false => cut(lane, begun, within_us, case.drives),
    };
    lane.wait("the host", || !lane.world.is_running(lane.hosts[0]));
    // The host may have done without the drive.
    lane.world.run_for(STARTED);
    times
}

/// Kills a drive after a time, and starts it again; returns false if host 0 had ended by then.
fn die(lane: &Lane, within_us: u64) -> bool {
    lane.world.run_for(Duration::from_micros(lane.draw(0..within_us)));
    if !lane.world.is_running(lane.hosts[0]) {
        return false;
    }
    let struck = lane.draw_drive();
    lane.world.crash(lane.drives[struck].machine);
    lane.world.run_for(Duration::from_millis(lane.draw(0..AWAY_MS)));
    lane.start_drive(struck);
    true
}

/// Ends connections of host 0, those to all drives or to one, once or more; returns how often.
fn cut(lane: &Lane, begun: &Cell<bool>, within_us: u64, drives: usize) -> u64 {
    let early = lane.draw(0..2) == 0;
    if !early {
        lane.wait("the host", || begun.get());
    }
    let mut after_us = lane.draw(0..if early { EARLY_US } else { within_us });
    let cuts = 1 + lane.draw(0..CUTS);
    for done in 0..cuts {
        lane.world.run_for(Duration::from_micros(after_us));
        if !lane.world.is_running(lane.hosts[0]) {
            return done;
        }
        let all = lane.draw(0..2) == 0;
        let struck = lane.draw(0..drives as u64);
        for (number, drive) in (0..).zip(&lane.drives[..drives]) {
            if all || number == struck {
                lane.world.disconnect(lane.hosts[0], drive.machine);
            }
        }
        after_us = lane.draw(0..BETWEEN_US);
    }
    cuts
}

fn run(seed: u64, case: Case) -> Counts {
    let (lane, mut counts) = (Lane::new(seed, GUARDED), Counts::default());
    lane.start_drives();
    let begun = Rc::new(Cell::new(false));
    let note = Rc::clone(&begun);
    let putting = begin_alone(&lane, 0, async move || put(case, note).await);
    let times = cut_off(&lane, &begun, PUT_US, case);
    counts.puts += u64::from(times > 0);
    counts.note(times);
    match ended(&lane, 0, &putting) {
        Ok(()) => {}
        Err(error) if case.dies && case.on == On::Block => {
            assert!(error.is_lost(), "{case:?}: {error}");
            counts.failed += 1;
            ask(&lane, async move || {
                put_bytes(&connect(case.drives).await, &put_options(case), content()).await;
            });
        }
        Err(error) => panic!("seed {seed}, {case:?}: {error}"),
    }
    let is_same = ask(&lane, async move || get(case, Rc::default()).await);
    assert!(is_same.expect("reads"), "other bytes");
    begun.set(false);
    let note = Rc::clone(&begun);
    let getting = begin_alone(&lane, 0, async move || get(case, note).await);
    let times = cut_off(&lane, &begun, GET_US, case);
    counts.gets += u64::from(times > 0);
    counts.note(times);
    match ended(&lane, 0, &getting) {
        Ok(is_same) => assert!(is_same, "other bytes"),
        Err(error) => panic!("seed {seed}, {case:?}: {error}"),
    }
    counts
}

/// Returns the case of a seed.
fn case(seed: u64) -> Case {
    let on = if seed.is_multiple_of(2) { On::Kv } else { On::Block };
    let is_protected = seed / 2 % 2 == 1;
    let dies = seed / 4 % 2 == 1;
    let few = if is_protected { 4 } else { 2 };
    let drives = if !dies && seed / 8 % 2 == 1 { few } else { DRIVES };
    Case { on, is_protected, drives, dies }
}

#[test]
fn puts_and_gets_go_on_after_a_pause_and_after_a_drive_was_started_again() {
    let mut all = Counts::default();
    for counts in seeds::each(seeds(), |seed| run(seed, case(seed))) {
        all.puts += counts.puts;
        all.gets += counts.gets;
        all.times += counts.times;
        all.failed += counts.failed;
        all.spared += counts.spared;
    }
    let count = seeds().count();
    println!("array, connections that end: {count} seeds, {all:?}");
    assert!(count < 50 || all.puts > 0 && all.gets > 0, "{all:?}");
}
