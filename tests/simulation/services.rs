//! Services that are paused, resumed and limited at random, and that fail, while hosts work: every
//! command is answered, and nothing acknowledged is lost.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive::Core;
use csd_drive::peers::{Directory, PeerList};
use csd_initiator::{Address, Block, Controller, Kv, Options};
use csd_kvlog::media::{FaultConfig, Faulty, Media};
use csd_nvme::feature::{FeatureId, set_features};
use csd_nvme::kv::Key;
use csd_nvme::nvm::Extent;
use csd_nvme::status::Status;
use csd_nvme::vendor::services::{Order, Setting};
use csd_reactor::{Buffer, Class, join, random_u64, sleep, spawn};

use crate::blocks::{fused_pair, submit};
use crate::inside::{Doors, memory, outside};
use crate::lives::{Lives, NSID, SMALL, content, find, stop, store};
use crate::shared_chunks::OPTIONS;
use crate::workload::{self, Shared, fail};
use crate::{CUTS, Simulation, seeds};

/// Operations of a life. The drive does not end before, so a service that stops it is seen.
const OPERATIONS: u64 = 300;

/// Services of these drives.
const SERVICES: [&str; 6] = ["clean", "checkpoint", "scrub", "dedup", "collect", "peers"];

/// Counts over lives.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    orders: u64,
    cleaned: u64,
    /// Lives that ended while the service was paused.
    ends_paused: u64,
}

fn draw(below: u64) -> u64 {
    random_u64() % below
}

/// Returns an order at random. Rates are from a byte a second to none at all.
fn order() -> Order {
    let name = SERVICES[usize::try_from(draw(SERVICES.len() as u64)).unwrap()].to_owned();
    let setting = match draw(5) {
        0 | 1 => Setting::Pause,
        2 => Setting::Resume,
        3 => Setting::Rate((!draw(4).is_multiple_of(4)).then(|| 1 << draw(34))),
        _ => Setting::Share(u8::try_from(1 + draw(100)).unwrap()),
    };
    Order { name, setting }
}

async fn give(controller: &Controller, order: &Order) -> Result<(), csd_initiator::Error> {
    let sqe = set_features(FeatureId::SERVICES, 0, 0);
    controller.admin(sqe, &order.encode(), 0).await.map(drop)
}

/// Works until the drive is gone, and gives orders meanwhile.
async fn work(address: Address, known: Shared, orders: Rc<Cell<u64>>) {
    let Ok(controller) = Controller::connect(&address, &Options::default()).await else { return };
    let (on_it, of_orders) = (controller.clone(), Rc::clone(&known));
    let giving = spawn(Class::Foreground, async move {
        loop {
            let order = order();
            match give(&on_it, &order).await {
                Ok(()) => orders.set(orders.get() + 1),
                Err(error) if error.status().is_some() => {
                    return fail(&of_orders, format!("{order:?}: {error}"));
                }
                // The drive is gone.
                Err(_) => return,
            }
            sleep(Duration::from_micros(draw(5_000))).await;
        }
    });
    workload::work_until_lost(&controller, &known).await;
    giving.await;
}

fn run(seed: u64) -> Met {
    let mut simulation = Simulation::new(seed);
    // The log of such a life is cleaned before it ends.
    let heavy = seed.is_multiple_of(10);
    simulation.known.borrow_mut().heavy = heavy;
    simulation.resources.dedup = Some(OPTIONS);
    simulation.resources.peers = Some(peers());
    let (orders, mut met) = (Rc::new(Cell::new(0)), Met::default());
    for _ in 0..CUTS {
        let ready = simulation.start_drive();
        simulation.wait("recovery", || ready.get());
        simulation.formatted = true;
        let verified = simulation.on_host(workload::verify);
        simulation.wait("the host", || !simulation.world.is_running(simulation.host));
        assert_eq!(*verified.borrow(), Some(true), "the host could not read");
        let given = Rc::clone(&orders);
        let _ = simulation.on_host(move |address, known| work(address, known, Rc::clone(&given)));
        let most = simulation.known.borrow().operations + OPERATIONS;
        let shared = simulation.shared.borrow().clone().expect("it serves");
        let is_over = || {
            let known = simulation.known.borrow();
            let is_cleaned = !heavy || shared.segments.cleaned_count() > 1;
            let is_done = known.operations >= most && is_cleaned;
            is_done || known.failure.is_some() || known.refused.is_some()
        };
        simulation.wait("operations", is_over);
        met.ends_paused += u64::from(shared.services.clean.is_paused());
        met.ends_paused += u64::from(shared.segments.checkpointing.is_paused());
        drop(shared);
        simulation.cut();
        simulation.world.crash(simulation.host);
        let known = simulation.known.borrow();
        assert_eq!((&known.failure, &known.refused), (&None, &None));
    }
    Met { orders: orders.get(), cleaned: simulation.lived.cleaned, ..met }
}

#[test]
fn services_change_under_load_and_nothing_acknowledged_is_lost() {
    let all = seeds::each(seeds(), run);
    let sum = |of: fn(&Met) -> u64| all.iter().map(of).sum::<u64>();
    let met = Met {
        orders: sum(|met| met.orders),
        cleaned: sum(|met| met.cleaned),
        ends_paused: sum(|met| met.ends_paused),
    };
    println!("services: {} seeds, {met:?}", all.len());
    let is_met = met.orders > 1000 && met.cleaned > 0 && met.ends_paused > 20;
    assert!(is_met || all.len() < 50, "{met:?}");
}

fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).unwrap()
}

fn pause_all(core: &Core) {
    let services = &core.shared.services;
    for control in [&services.clean, &services.scrub, &core.shared.segments.checkpointing] {
        control.pause();
    }
}

/// A clean stop writes the final checkpoints all the same, and the next start finds everything.
#[test]
fn a_drive_stops_cleanly_while_its_services_are_paused() {
    for seed in 0..4 {
        let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), SMALL);
        let written = lives.live(move |core| async move {
            pause_all(&core);
            for number in 0..400 {
                store(&core, key(number), &content(number, 3000)).await.expect("stored");
            }
            let before = core.shared.segments.checkpoint_count();
            stop(&core).await;
            (before, core.shared.segments.checkpoint_count())
        });
        let (before, after) = written.unwrap();
        assert_eq!(before, 0, "seed {seed}: no checkpoint while they are paused");
        assert!(after > 0, "seed {seed}: those of the stop");
        lives.cut_at_random();
        let found = lives.live(|core| async move {
            for number in 0..400 {
                let value = find(&core, key(number)).await.unwrap();
                assert!(value == Some(content(number, 3000)), "key {number}");
            }
        });
        assert_eq!(found, Ok(()), "seed {seed}");
    }
}

/// A cut while checkpoints are paused costs the next start time, and nothing else.
#[test]
fn a_cut_while_checkpoints_are_paused_loses_nothing() {
    for seed in 0..4 {
        let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), SMALL);
        let stored = lives.live(move |core| async move {
            for number in 0..3000 {
                // Some segments begin with checkpoints, and end without.
                match number {
                    500 => core.shared.segments.checkpointing.pause(),
                    2500 => core.shared.segments.checkpointing.resume(),
                    _ => {}
                }
                store(&core, key(number), &content(number, 9000)).await.expect("stored");
            }
        });
        assert_eq!(stored, Ok(()));
        lives.cut_at_random();
        let found = lives.live(|core| async move {
            for number in 0..3000 {
                let value = find(&core, key(number)).await.unwrap();
                assert!(value == Some(content(number, 9000)), "key {number}");
            }
        });
        assert_eq!(found, Ok(()), "seed {seed}");
    }
}

/// Stores values until the drive is full; returns their number.
async fn fill(core: &Core) -> u64 {
    for number in 0.. {
        match core.kv.store(NSID, key(number), vec![Buffer::zeroed(100 << 10)], 0).await {
            Ok(()) => {}
            Err(status) => {
                assert_eq!(status, Status::CAPACITY_EXCEEDED);
                return number;
            }
        }
    }
    unreachable!("a drive is full some day")
}

#[test]
fn a_full_drive_whose_cleaning_is_paused_takes_deletes_and_then_stores() {
    for seed in 0..4 {
        let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), SMALL);
        let lived = lives.live(|core| async move {
            core.shared.services.clean.pause();
            let count = fill(&core).await;
            for round in 0..2 {
                for number in 0..count {
                    core.kv.delete(NSID, key(number)).await.expect("deleting makes room");
                }
                for number in 0..count {
                    let stored = store(&core, key(number), &content(number, 100 << 10)).await;
                    stored.unwrap_or_else(|status| panic!("round {round}, {number}: {status}"));
                }
            }
            let (clean, segments) = (&core.shared.services.clean, &core.shared.segments);
            (clean.steps.load(Relaxed), segments.cleaned_count())
        });
        let (steps, cleaned) = lived.unwrap();
        assert_eq!(steps, 0, "seed {seed}: the service is paused");
        assert!(cleaned > 0, "seed {seed}: commands clean by themselves");
    }
}

/// Waits until a condition holds, at most a minute of simulated time.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("{what}");
}

#[test]
fn cleaning_that_fails_is_paused_and_the_drive_serves_on() {
    let mut faulty = None;
    let mut lives = Lives::new(2, 1, SMALL).on(|disk| {
        let medium = Arc::new(Faulty::new(disk, 2));
        faulty = Some(Arc::clone(&medium));
        Media::Faulty(medium)
    });
    let faulty = faulty.expect("just made");
    let lived = lives.live(move |core| async move {
        let clean = &core.shared.services.clean;
        clean.pause();
        let count = fill(&core).await;
        // Takes the segments that are still free, and leaves some that are worth cleaning.
        for round in 0..3 {
            for number in 0..count / 2 {
                let key = key(number * 2);
                match round {
                    1 => store(&core, key, &content(number, 100 << 10)).await.expect("stored"),
                    _ => core.kv.delete(NSID, key).await.expect("deleted"),
                }
            }
        }
        assert!(core.shared.segments.is_low());
        faulty.set(FaultConfig { failed_writes_ppm: 1_000_000, ..FaultConfig::default() });
        clean.resume();
        core.gate.look();
        until("the service fails", || clean.failure().is_some()).await;
        assert!(clean.is_paused() && clean.failures.load(Relaxed) == 1);
        faulty.set(FaultConfig::default());
        for number in 0..count / 4 {
            store(&core, key(number * 2), &content(number, 100 << 10)).await.expect("it serves on");
        }
        assert!(clean.is_paused(), "until somebody resumes it");
        let steps = clean.steps.load(Relaxed);
        clean.resume();
        core.gate.look();
        for number in 0..count / 4 {
            store(&core, key(number * 2), &content(number, 90 << 10)).await.expect("stored");
        }
        until("the service works again", || clean.steps.load(Relaxed) > steps).await;
    });
    assert_eq!(lived, Ok(()));
}

/// NQN of a drive in the file of peers.
const PEER: &str = "nqn.2026-11.io.csdstore:d1";
const SECOND: Duration = Duration::from_secs(1);

/// Writes a block of zeros by a fused Compare and Write; returns whether both halves succeed.
async fn swap(block: &Block) -> (bool, bool) {
    let extent = Extent { slba: 0, blocks: 1 };
    let (first, second) = fused_pair(1, extent);
    let bytes = vec![0; usize::try_from(block.block_bytes()).unwrap()];
    let ended = join(submit(block, first, &bytes), submit(block, second, &bytes)).await;
    (ended.0.is_ok(), ended.1.is_ok())
}

/// Returns a file with another drive.
fn peers() -> Directory {
    let line = format!("peer nvme+tcp://10.0.0.9:4420/{PEER}");
    Directory::fixed(PeerList::parse(&line).unwrap())
}

/// Stores a value and writes a fused pair as another drive while its commands are paused. Then
/// either a host resumes them, or the drive stops.
fn store_of_a_peer(then_stops: bool) {
    let resources = Resources { peers: Some(peers()), ..Resources::default() };
    let doors = Doors { resources, ..Doors::new(4) };
    doors.serve((&memory(), true), None, move |shared| async move {
        sleep(3 * SECOND).await;
        if then_stops {
            csd_drive::life::drain(&shared, 30 * SECOND).await.expect("it stops");
        }
    });
    doors.host(move || async move {
        let host = Controller::connect(&outside(), &Options::default()).await.unwrap();
        let order = |setting| Order { name: "peers".to_owned(), setting };
        give(&host, &order(Setting::Pause)).await.expect("paused");
        let options = Options { host_nqn: PEER.to_owned(), ..Options::default() };
        let controller = Controller::connect(&outside(), &options).await.unwrap();
        let block = Block::open(&controller, 1).unwrap();
        let storing = spawn(Class::Foreground, async move {
            let value = vec![Buffer::from_slice(&[7; 4096])];
            Kv::open(&controller, 3).unwrap().store(&key(1), value, 0).await
        });
        let swapping = spawn(Class::Foreground, async move { swap(&block).await });
        sleep(2 * SECOND).await;
        assert!(!storing.is_finished(), "commands of other drives are paused");
        assert!(!swapping.is_finished(), "fused ones too");
        if !then_stops {
            give(&host, &order(Setting::Resume)).await.expect("resumed");
        }
        storing.await.expect("the command is answered with success");
        assert_eq!(swapping.await, (true, true), "both halves are answered with success");
    });
}

#[test]
fn commands_of_a_peer_wait_while_they_are_paused() {
    store_of_a_peer(false);
}

#[test]
fn a_drive_that_stops_answers_commands_of_a_peer_that_are_paused() {
    store_of_a_peer(true);
}
