//! Drives with a volatile cache (`--volatile-cache`) whose power is cut: hosts find no change
//! without those that were answered before it was sent, and everything that was flushed. Hosts on
//! several connections, all shards, cuts during recovery, and starts with and without the option in
//! turn.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use csd_drive::media::Losses;
use csd_initiator::{Controller, Kv, Options};
use csd_reactor::{Buffer, Class, random_u64, sleep, spawn};

use crate::lives::content;
use crate::order::Order;
use crate::workload::key;
use crate::{Simulation, seeds};

const CONNECTIONS: usize = 3;
const WORKERS: u64 = 5;
const KEYS_PER_WORKER: u64 = 7;
const LIVES: usize = 4;

/// Load of one life.
#[derive(Clone, Copy)]
struct Load {
    is_cached: bool,
    /// True for values so long that segments are sealed and cleaned.
    is_heavy: bool,
    /// One command of so many is a Flush.
    flushes: u64,
}

type Shared = Rc<RefCell<Order>>;

/// Changes keys of its own and flushes until the drive is gone.
///
/// The tasks of a host learn of answers in any order, so only the order of an answer and of what is
/// sent later is compared here; `marked` compares the order of answers.
async fn work(kv: Kv, worker: u64, load: Load, order: Shared) {
    loop {
        let draw = random_u64();
        if draw.is_multiple_of(load.flushes) {
            let before = order.borrow_mut().now();
            if kv.flush().await.is_err() {
                return;
            }
            order.borrow_mut().flushed(before);
            continue;
        }
        let number = worker * KEYS_PER_WORKER + (draw >> 8) % KEYS_PER_WORKER;
        let bytes = match (draw >> 16) % 8 {
            _ if load.is_heavy => (draw >> 20) % (200 << 10),
            0 => 0,
            1..6 => 1 + (draw >> 20) % 300,
            6 => (draw >> 20) % 9_000,
            _ => (draw >> 20) % 60_000,
        };
        let bytes = usize::try_from(bytes).unwrap();
        let state = (!(draw >> 40).is_multiple_of(5)).then(|| content(draw >> 30, bytes));
        let change = order.borrow_mut().sent(number, state.clone(), None);
        let done = match &state {
            Some(value) => kv.store(&key(number), vec![Buffer::from_slice(value)], 0).await,
            None => kv.delete(&key(number)).await.map(drop),
        };
        if done.is_err() {
            return;
        }
        order.borrow_mut().answered(change);
        if !load.is_cached {
            order.borrow_mut().durable(change);
        }
        if draw >> 60 == 0 {
            sleep(Duration::from_micros(random_u64() % 3_000)).await;
        }
    }
}

struct Cached {
    simulation: Simulation,
    order: Shared,
}

impl Cached {
    fn new(seed: u64) -> Self {
        Self { simulation: Simulation::new(seed), order: Rc::default() }
    }

    /// Starts the drive, perhaps after cuts during recovery, and compares every key.
    fn start(&mut self, load: Load) {
        let simulation = &mut self.simulation;
        simulation.volatile_cache = load.is_cached;
        let mut ready = simulation.start_drive();
        while simulation.formatted && simulation.draw(0..3) == 0 {
            simulation.world.run_for(Duration::from_micros(simulation.draw(0..30_000)));
            simulation.cut();
            simulation.volatile_cache = simulation.draw(0..2) == 0;
            drop(simulation.start_drive());
            simulation.world.run_for(Duration::from_micros(simulation.draw(0..30_000)));
            simulation.cut();
            simulation.volatile_cache = load.is_cached;
            ready = simulation.start_drive();
        }
        simulation.wait("recovery", || ready.get());
        simulation.formatted = true;
        let keys = self.order.borrow().keys();
        let found = simulation.on_host(move |address, _| {
            let keys = keys.clone();
            async move {
                let controller = Controller::connect(&address, &Options::default()).await.unwrap();
                let kv = Kv::open(&controller, 2).unwrap();
                let mut found = BTreeMap::new();
                for number in keys {
                    let value = kv.retrieve(&key(number), 1 << 20).await.unwrap();
                    found.insert(number, value.map(|value| value.to_vec()));
                }
                found
            }
        });
        simulation.wait("the reader", || found.borrow().is_some());
        simulation.wait("the host", || !simulation.world.is_running(simulation.host));
        let found = found.borrow_mut().take().unwrap();
        let checked = self.order.borrow_mut().check(&found);
        checked.unwrap_or_else(|text| panic!("{text}"));
    }

    fn live(&mut self) {
        let load = Load {
            is_cached: self.simulation.draw(0..5) > 0,
            is_heavy: self.simulation.draw(0..4) == 0,
            flushes: [8, 40, 1_000][usize::try_from(self.simulation.draw(0..3)).unwrap()],
        };
        self.start(load);
        let (simulation, order) = (&mut self.simulation, Rc::clone(&self.order));
        let _ = simulation.on_host(move |address, _| {
            let order = Rc::clone(&order);
            async move {
                let mut workers = Vec::new();
                for connection in 0..CONNECTIONS {
                    let controller = Controller::connect(&address, &Options::default()).await;
                    let Ok(controller) = controller else { return };
                    for worker in 0..WORKERS {
                        let worker = connection as u64 * WORKERS + worker;
                        let kv = Kv::open(&controller, 2).unwrap();
                        let order = Rc::clone(&order);
                        let work = work(kv, worker, load, order);
                        workers.push(spawn(Class::Foreground, work));
                    }
                }
                for worker in workers {
                    worker.await;
                }
            }
        });
        let most_us = if load.is_heavy { 500_000 } else { 80_000 };
        simulation.world.run_for(Duration::from_micros(simulation.draw(1_000..most_us)));
        let shared = simulation.shared.take().expect("the drive ran");
        simulation.cleaned += shared.segments.cleaned_count();
        simulation.checkpoints += shared.segments.checkpoint_count();
        simulation.shared_groups += shared.segments.shared_group_count();
        // The power goes, or only the process: then every write is there.
        let is_power = simulation.draw(0..4) > 0;
        simulation.world.crash(simulation.drive);
        simulation.disk.power_cut(|| if is_power { simulation.world.random_u64() } else { 0 });
        simulation.disk.power_on();
        simulation.world.crash(simulation.host);
    }

    fn run(mut self) -> Met {
        for _ in 0..LIVES {
            self.live();
        }
        self.start(Load { is_cached: false, is_heavy: false, flushes: 1 });
        let (order, simulation) = (self.order.borrow(), &self.simulation);
        Met {
            kept: order.kept,
            lost: order.lost,
            cleaned: simulation.cleaned,
            checkpoints: simulation.checkpoints,
            shared_groups: simulation.shared_groups,
            losses: simulation.disk.losses(),
        }
    }
}

/// Counts of what a run has met.
#[derive(Debug, Default)]
struct Met {
    kept: u64,
    lost: u64,
    cleaned: u64,
    checkpoints: u64,
    shared_groups: u64,
    losses: Losses,
}

#[test]
fn hosts_of_a_volatile_cache_find_a_prefix_and_all_that_was_flushed() {
    let mut all = Met::default();
    for seed in seeds() {
        let run = std::panic::catch_unwind(|| Cached::new(seed).run());
        let met = run.unwrap_or_else(|_| panic!("CSD_SIM_SEEDS={seed}..{} repeats it", seed + 1));
        all.kept += met.kept;
        all.lost += met.lost;
        all.cleaned += met.cleaned;
        all.checkpoints += met.checkpoints;
        all.shared_groups += met.shared_groups;
        all.losses.add(met.losses);
    }
    let count = seeds().count();
    println!("{count} seeds with a volatile cache: {all:?}");
    let met = [all.kept, all.lost, all.cleaned, all.checkpoints, all.shared_groups];
    assert!(met.iter().all(|count| *count > 20) || count < 50, "{all:?}");
}
