//! The lane: a host has drives copy and add up pieces of each other, while drives lose power and
//! partitions come between them and between them and the host. Every second target is in the
//! users' namespace, and the drives of every second seed have a volatile cache of it.
//!
//! Rules: a piece that a drive has reported as stored is there in the end, and so are the answers
//! of an execution that has succeeded; whatever lies under the name of a piece is that piece,
//! whole, whatever was interrupted; every task succeeds once the faults have ended. A seed is a
//! whole run.

use std::collections::BTreeSet;

use csd_nvme::auth::Group;
use csd_nvme::vendor::NSID_KV;
use csd_reactor::{random_u64, sleep};

use super::*;
use crate::seeds;

const PIECES: u32 = 6;
const SIZE: usize = 5_000;
const FAULTS: u64 = 10;
/// Number of the value that has the answers of task 0.
const ANSWERS: u32 = 100_000;

/// Bytes of source `number`, which every drive has.
fn piece(number: u32) -> Vec<u8> {
    bytes(u64::from(number) + 77, SIZE)
}

/// Bytes of target `number`: the sum of all sources, with the target's number in the factors.
fn sum(number: u32) -> Vec<u8> {
    let all: Vec<Vec<u8>> = (0..PIECES).map(piece).collect();
    let combiner = csd_kernels::erasure::Combiner::new(all.len(), 1, |at, _| factor(number, at));
    let (combiner, mut sum) = (combiner.unwrap(), vec![0; SIZE]);
    for (at, bytes) in all.iter().enumerate() {
        combiner.add(at, bytes, &mut [&mut sum]).unwrap();
    }
    sum
}

fn factor(number: u32, source: usize) -> u8 {
    u8::try_from((number as usize * 7 + source) % 255 + 1).unwrap()
}

/// Returns the namespace of target `number`.
fn nsid_of(number: u32) -> u32 {
    if number.is_multiple_of(2) { NSID_KV } else { NSID_OBJECTS }
}

/// Returns where the answers of the task for target `number` go: for some to the drive itself.
fn output(number: u32) -> Output {
    if !number.is_multiple_of(3) {
        return Output::Completion;
    }
    let (prefix, first) = (PREFIX, ANSWERS + number);
    Output::KvChunks { nsid: NSID_KV, prefix, first, stride: 1, chunk_bytes: 4096 }
}

/// Returns a task of drive `drive` that makes target `number` on drive `to`.
fn task(drive: usize, number: u32, to: usize) -> Task {
    let others: Vec<usize> = (0..3).filter(|other| *other != drive).collect();
    let peer = |of: usize| {
        let place = others.iter().position(|other| *other == of);
        place.map_or(0, |place| u8::try_from(place + 1).unwrap())
    };
    let from = |source: u32| {
        let of = usize::try_from(random_u64() % 3).unwrap();
        expecting(value(peer(of), source, SIZE), &piece(source))
    };
    let sources: Vec<Piece> = (0..PIECES).map(from).collect();
    let location = Location::Value { nsid: nsid_of(number), key: key(1000 + number) };
    let target = Target {
        piece: Piece { location, ..value(peer(to), 0, SIZE) },
        factors: (0..sources.len()).map(|at| factor(number, at)).collect(),
    };
    let peers = others.iter().map(|other| nqn(*other)).collect();
    Task { sources, targets: vec![target], guards: Vec::new(), peers }
}

#[derive(Default)]
struct Known {
    stopping: bool,
    next: u32,
    /// Targets that were reported as stored, with their drives.
    stored: BTreeSet<(u32, usize)>,
    /// Tasks that have left their answers on a drive.
    answered: BTreeSet<(u32, usize)>,
    failed: u64,
}

/// Settings under which a drive that does not answer is given up soon.
fn impatient() -> Options {
    Options {
        keep_alive: Duration::from_secs(2),
        connect_timeout: Duration::from_millis(300),
        command_timeout: Duration::from_secs(20),
        ..Options::default()
    }
}

async fn work(known: Rc<RefCell<Known>>) {
    while !known.borrow().stopping {
        let drive = usize::try_from(random_u64() % 3).unwrap();
        let to = usize::try_from(random_u64() % 3).unwrap();
        let number = {
            let mut known = known.borrow_mut();
            known.next += 1;
            known.next
        };
        let task = task(drive, number, to);
        let done = async {
            let controller = Controller::connect(&address(drive), &impatient()).await.ok()?;
            let compute = Compute::open(&controller, NSID_COMPUTE).ok()?;
            compute.execute(COMBINE, &task.execution(output(number))).await.ok()
        };
        match done.await {
            // With answers elsewhere a target that was not stored is no failure.
            Some(result) => {
                let is_stored = result >> 32 == 1;
                let mut known = known.borrow_mut();
                if output(number) == Output::Completion {
                    assert_eq!(result, 1 << 32 | u64::from(crc32c::crc32c(&sum(number))));
                } else {
                    known.answered.insert((number, drive));
                }
                if is_stored {
                    known.stored.insert((number, to));
                }
            }
            None => known.borrow_mut().failed += 1,
        }
        sleep(Duration::from_millis(random_u64() % 100)).await;
    }
}

/// Cuts the power of a drive for a while, or the network between it and another machine.
fn fault(fleet: &Fleet, met: &mut Met) {
    let draw = |range: std::ops::Range<u64>| {
        range.start + fleet.world.random_u64() % (range.end - range.start)
    };
    fleet.world.run_for(Duration::from_millis(draw(1..800)));
    let index = usize::try_from(draw(0..3)).unwrap();
    let span = Duration::from_millis(draw(1..3000));
    let drive = &fleet.drives[index];
    if draw(0..2) == 0 {
        fleet.world.crash(drive.machine);
        drive.disk.power_cut(|| fleet.world.random_u64());
        drive.disk.power_on();
        fleet.world.run_for(span / 4);
        fleet.start(index);
        met.cuts += 1;
    } else {
        let is_of_host = draw(0..3) == 0;
        let (other, count) = match is_of_host {
            true => (fleet.host, &mut met.partitions_of_host),
            false => (fleet.drives[(index + 1) % 3].machine, &mut met.partitions),
        };
        *count += 1;
        fleet.world.partition(drive.machine, other);
        fleet.world.run_for(span);
        fleet.world.heal(drive.machine, other);
    }
}

/// Faults of each kind that happened, and tasks by outcome.
#[derive(Debug, Default)]
struct Met {
    cuts: u64,
    /// Of two drives, and of a drive and the host.
    partitions: u64,
    partitions_of_host: u64,
    stored: usize,
    answered: usize,
    failed: u64,
}

/// Returns what drives offer to each other: of five seeds that follow each other one has them
/// compute powers, of the cheapest group. Powers would take most of the lane's time.
fn offer(seed: u64) -> Offer {
    let group = if seed.is_multiple_of(5) { Group::Ffdhe2048 } else { Group::Null };
    Offer { groups: vec![group], ..Offer::default() }
}

fn run(seed: u64) -> Met {
    // The lane runs every fifth seed.
    let is_cached = (seed / 5).is_multiple_of(2);
    let fleet =
        Fleet::with(seed, |_| list([Some(1), Some(2), Some(3)]), offer(seed / 5), is_cached);
    fleet.on_host(|| async {
        for drive in 0..3 {
            for number in 0..PIECES {
                store(drive, number, &piece(number)).await;
            }
        }
    });
    let known = Rc::<RefCell<Known>>::default();
    let shared = Rc::clone(&known);
    fleet.world.start(fleet.host, move |_| {
        let known = Rc::clone(&shared);
        async move {
            let all: Vec<_> =
                (0..4).map(|_| spawn(Class::Foreground, work(Rc::clone(&known)))).collect();
            for one in all {
                one.await;
            }
        }
    });
    let mut met = Met::default();
    (0..FAULTS).for_each(|_| fault(&fleet, &mut met));
    known.borrow_mut().stopping = true;
    let ended = fleet.world.run_until(|world| !world.is_running(fleet.host), LIMIT);
    ended.expect("every task ends");
    fleet.wait_for_drives();
    let (next, stored, answered) = {
        let known = known.borrow();
        (known.next, known.stored.clone(), known.answered.clone())
    };
    met.answered = answered.len();
    let sound = stored.clone();
    fleet.on_host(move || {
        let (stored, answered) = (sound.clone(), answered.clone());
        async move {
            for drive in 0..3 {
                for number in 1..=next {
                    let found = retrieve_from(nsid_of(number), drive, 1000 + number).await;
                    let is_there = found.is_some();
                    assert!(found.is_none_or(|found| found == sum(number)), "a wrong {number}");
                    let must = stored.contains(&(number, drive));
                    assert!(is_there || !must, "target {number} of drive {drive} is lost");
                }
            }
            for (number, drive) in answered {
                let found = retrieve_from(NSID_KV, drive, ANSWERS + number).await;
                assert!(found.is_some(), "the answers of task {number} of drive {drive} are lost");
            }
            for drive in 0..3 {
                let number = next + 1;
                let task = task(drive, number, (drive + 1) % 3);
                execute(drive, &task, Output::Completion).await.expect("the faults are over");
            }
        }
    });
    (met.stored, met.failed) = (stored.len(), known.borrow().failed);
    met
}

#[test]
fn what_drives_report_as_stored_is_there_and_whole_over_cuts_and_partitions() {
    let mut all = Met::default();
    // A seed takes as long as five of the other lanes.
    for met in seeds::each(seeds().step_by(5), run) {
        all.cuts += met.cuts;
        all.partitions += met.partitions;
        all.partitions_of_host += met.partitions_of_host;
        all.stored += met.stored;
        all.answered += met.answered;
        all.failed += met.failed;
    }
    println!("peers: {} seeds, {all:?}", seeds().step_by(5).count());
    let faults = [all.cuts, all.partitions, all.partitions_of_host, all.failed];
    let all_met = faults.iter().all(|count| *count > 0);
    assert!(all.stored > 0 && all.answered > 0 && (all_met || seeds().count() < 50), "{all:?}");
}
