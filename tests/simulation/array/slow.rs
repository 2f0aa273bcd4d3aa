//! Drives that are slow: again and again some of them, more than any code bears, answer a host
//! nothing for 1 to 60 s, and then go on.
//!
//! Or one falls silent, or the connections to half of them end, in the middle of a read.
//!
//! Rules: as long as each answers within the timeout, every object is read, with its bytes, and no
//! piece is called lost. If one is silent for longer, a command ends within a few timeouts; it may
//! fail, and then names the drive's silence. No reader gets other bytes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::Options;
use csd_reactor::now;
use csd_store::array::{Array, GUARDED};
use csd_store::layout::Scheme;
use csd_store::object::{self, On, PutOptions};

use super::history::{CHUNK_BYTES, bytes_of};
use super::host::read;
use super::pace::{ask, begin, options_of, put_bytes};
use super::{DRIVES, Lane, plan};
use crate::seeds;

const OBJECTS: u64 = 6;
/// Half of the drives: more than any of the codes bears.
const HALF: usize = DRIVES / 2;
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest silence of a drive that answers within the timeout, s.
const WITHIN_S: u64 = 25;
/// Longest silence beyond it, s.
const BEYOND_S: u64 = 60;
/// Timeouts after which a read that cannot succeed has ended: to connect and to look the name up;
/// then a command, another connection and a command on that, for as many drives, one after another,
/// as leave too few.
const ENDS_AFTER: u32 = 2 + 3 * 3;

/// Numbers of silences and reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Silences of a drive within the timeout, and beyond it.
    within: u64,
    beyond: u64,
    /// Objects that were read, in the first case and in the second, and reads that failed there.
    read: u64,
    read_beyond: u64,
    failed: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.within += other.within;
        self.beyond += other.beyond;
        self.read += other.read;
        self.read_beyond += other.read_beyond;
        self.failed += other.failed;
    }
}

fn options(reach_timeout: Duration) -> Options {
    let (connect_timeout, command_timeout, keep_alive) = (TIMEOUT, TIMEOUT, TIMEOUT * 2);
    Options { reach_timeout, connect_timeout, command_timeout, keep_alive, ..Options::default() }
}

/// Returns the options of an object, each third one without protection.
fn put_options(object: u64) -> PutOptions {
    let protect = match object % 3 {
        0 => Scheme::new(4, 2),
        1 => Scheme::new(2, 2),
        _ => None,
    };
    let on = if object % 4 < 2 { On::Block } else { On::Kv };
    PutOptions { on, protect, chunk_bytes: Some(CHUNK_BYTES), ..options_of(&object.to_string()) }
}

/// Reads objects; the errors in words.
async fn read_all(options: Options, objects: Vec<u64>) -> Vec<Result<(), String>> {
    let mut told = Vec::new();
    for object in objects {
        let begun = now();
        // As every command does.
        let array = Array::connect_with(&plan(), &options, GUARDED).await;
        let done = match object::lookup(&array, &object.to_string()).await {
            Ok(entry) => {
                let (bytes, done) = read(&array, entry).await;
                assert!(done.is_err() || bytes == bytes_of(object), "other bytes of {object}");
                done.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let went_on = begun.elapsed();
        assert!(done.is_ok() || went_on < TIMEOUT * ENDS_AFTER, "{went_on:?}: {done:?}");
        told.push(done);
    }
    told
}

/// Reads objects while up to half of the drives at a time are silent to the host for up to
/// `longest` seconds. Returns the results, and the number of silences.
fn read_slowly(
    lane: &Lane,
    (reach, objects): (Duration, Vec<u64>),
    longest: u64,
) -> (Vec<Result<(), String>>, u64) {
    let (host, told) = (lane.hosts[0], Rc::<RefCell<Option<_>>>::default());
    let tell = Rc::clone(&told);
    lane.world.start(host, move |_| {
        let (tell, objects) = (Rc::clone(&tell), objects.clone());
        async move {
            let done = read_all(options(reach), objects).await;
            tell.replace(Some(done));
        }
    });
    let (mut silences, mut half) = (0, 0);
    while lane.world.is_running(host) {
        lane.world.run_for(Duration::from_micros(lane.draw(0..2_000)));
        // Halves of the drives take turns: two silences of a drive in a row would be one that is
        // longer than the limit.
        half = (half + HALF) % DRIVES;
        let drives: Vec<_> = (0..usize::try_from(lane.draw(1..HALF as u64 + 1)).unwrap())
            .map(|further| lane.drives[half + further].machine)
            .collect();
        drives.iter().for_each(|drive| lane.world.partition(host, *drive));
        lane.world.run_for(Duration::from_millis(lane.draw(1000..longest * 1000)));
        drives.iter().for_each(|drive| lane.world.heal(host, *drive));
        silences += drives.len() as u64;
    }
    (told.take().expect("the host has ended"), silences)
}

/// Reads an object of many stripes; something happens while it does. Returns how long it took.
fn read_while(seed: u64, happens: impl FnOnce(&Lane)) -> Duration {
    let lane = Lane::new(seed, GUARDED);
    lane.start_drives();
    let bytes = vec![9; usize::try_from(CHUNK_BYTES).unwrap() * 400];
    let (name, put) = ("long", bytes.clone());
    ask(&lane, 0, async move |array| {
        let options = PutOptions { on: On::Kv, chunk_bytes: Some(CHUNK_BYTES), ..options_of(name) };
        put_bytes(&array, &options, put).await;
    });
    let begun = Rc::new(Cell::new(false));
    let told = begin(&lane, 1, {
        let begun = Rc::clone(&begun);
        async move |_| {
            let array = Array::connect_with(&plan(), &options(TIMEOUT), GUARDED).await;
            let entry = object::lookup(&array, name).await.expect("it is there");
            begun.set(true);
            let since = now();
            let (read, done) = read(&array, entry).await;
            done.expect("enough drives answer");
            assert!(read == bytes, "other bytes");
            since.elapsed()
        }
    });
    lane.wait("the host", || begun.get());
    lane.world.run_for(Duration::from_micros(lane.draw(0..500)));
    assert!(lane.world.is_running(lane.hosts[1]), "the read has ended before anything happened");
    happens(&lane);
    lane.wait("the host", || !lane.world.is_running(lane.hosts[1]));
    told.take().expect("the host has ended")
}

#[test]
fn a_drive_that_falls_silent_amid_a_read_holds_it_up_once() {
    let silent = |lane: &Lane| {
        lane.world.partition(lane.hosts[1], lane.drives[lane.draw_drive()].machine);
    };
    for took in seeds::each(seeds(), |seed| read_while(seed, silent)) {
        assert!(took < TIMEOUT * 2, "{took:?}");
    }
}

/// More drives than the code bears: each is connected to once more.
#[test]
fn connections_that_end_amid_a_read_are_made_again() {
    let cut_off = |lane: &Lane| {
        let first = usize::try_from(lane.draw(0..2)).unwrap() * HALF;
        for drive in &lane.drives[first..first + HALF] {
            lane.world.disconnect(lane.hosts[1], drive.machine);
        }
    };
    for took in seeds::each(seeds(), |seed| read_while(seed, cut_off)) {
        assert!(took < TIMEOUT, "{took:?}");
    }
}

fn run(seed: u64) -> Counts {
    let (lane, mut counts) = (Lane::new(seed, GUARDED), Counts::default());
    lane.start_drives();
    ask(&lane, 0, async |array| {
        for object in 0..OBJECTS {
            put_bytes(&array, &put_options(object), bytes_of(object)).await;
        }
    });
    let all: Vec<u64> = (0..OBJECTS).collect();
    let is_protected = |object: &u64| object % 3 < 2;
    let protected: Vec<u64> = all.iter().copied().filter(is_protected).collect();
    // A machine accepts connections for a drive that is slow; this network does not, so the host
    // waits longer for that. Or it takes the drive for down, and tries again when it needs it.
    for (reach, objects) in [(TIMEOUT, all.clone()), (Duration::from_secs(5), protected)] {
        let (told, silences) = read_slowly(&lane, (reach, objects), WITHIN_S);
        counts.within += silences;
        for done in told {
            done.unwrap_or_else(|why| panic!("drives answered within {WITHIN_S} s: {why}"));
            counts.read += 1;
        }
    }
    let (told, silences) = read_slowly(&lane, (TIMEOUT, all), BEYOND_S);
    counts.beyond += silences;
    for done in told {
        match done {
            Ok(()) => counts.read_beyond += 1,
            Err(_) => counts.failed += 1,
        }
    }
    counts
}

#[test]
fn a_slow_drive_is_not_a_lost_one() {
    let mut all = Counts::default();
    seeds::each(seeds(), run).into_iter().for_each(|counts| all.add(counts));
    let count = seeds().count();
    println!("array, slow drives: {count} seeds, {all:?}");
    assert!(count < 50 || all.failed > 0 && all.read_beyond > 0, "{all:?}");
}

#[test]
fn equal_seeds_of_slow_drives_have_equal_counts() {
    assert_eq!(run(2), run(2));
}
