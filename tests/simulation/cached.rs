//! Drives with a volatile cache (`--volatile-cache`) whose power is cut: hosts find no change
//! without those that were answered before it was sent, and everything that was flushed. Hosts on
//! several connections, all shards, cuts during recovery, and starts with and without the option in
//! turn.

use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Controller, Kv, Options};
use csd_kvlog::media::Losses;

use crate::writer::{Changes, Load, compare, write_until_lost};
use crate::{Lived, Simulation, seeds};

const LIVES: usize = 4;

struct Cached {
    simulation: Simulation,
    order: Changes,
    kills: u64,
    cuts_in_recovery: u64,
}

impl Cached {
    fn new(seed: u64) -> Self {
        let simulation = Simulation::new(seed);
        Self { simulation, order: Rc::default(), kills: 0, cuts_in_recovery: 0 }
    }

    /// Starts the drive, perhaps after cuts during recovery, and compares every key.
    fn start(&mut self, load: Load) {
        let simulation = &mut self.simulation;
        simulation.resources.volatile_cache = load.is_cached;
        let mut ready = simulation.start_drive();
        while simulation.formatted && simulation.draw(0..3) == 0 {
            simulation.world.run_for(Duration::from_micros(simulation.draw(0..30_000)));
            self.cuts_in_recovery += u64::from(!ready.get());
            simulation.cut();
            simulation.resources.volatile_cache = simulation.draw(0..2) == 0;
            ready = simulation.start_drive();
            simulation.world.run_for(Duration::from_micros(simulation.draw(0..30_000)));
            self.cuts_in_recovery += u64::from(!ready.get());
            simulation.cut();
            simulation.resources.volatile_cache = load.is_cached;
            ready = simulation.start_drive();
        }
        simulation.wait("recovery", || ready.get());
        simulation.formatted = true;
        let order = Rc::clone(&self.order);
        let compared = simulation.on_host(move |address, _| {
            let order = Rc::clone(&order);
            async move {
                let controller = Controller::connect(&address, &Options::default()).await.unwrap();
                compare(&Kv::open(&controller, 2).unwrap(), &order).await
            }
        });
        simulation.wait("the reader", || compared.borrow().is_some());
        simulation.wait("the host", || !simulation.world.is_running(simulation.host));
        let compared = compared.borrow_mut().take().expect("just seen");
        compared.unwrap_or_else(|text| panic!("{text}"));
    }

    fn live(&mut self) {
        let load = Load {
            is_cached: self.simulation.draw(0..5) > 0,
            is_heavy: self.simulation.draw(0..4) == 0,
            flushes: [8, 40, 1_000][usize::try_from(self.simulation.draw(0..3)).unwrap()],
        };
        self.start(load);
        let (simulation, order) = (&mut self.simulation, Rc::clone(&self.order));
        let _ = simulation
            .on_host(move |address, _| write_until_lost(address, load, Rc::clone(&order), || {}));
        let most_us = if load.is_heavy { 500_000 } else { 80_000 };
        simulation.world.run_for(Duration::from_micros(simulation.draw(1_000..most_us)));
        simulation.count_life();
        // The power goes, or only the process: then every write is there.
        let is_power = simulation.draw(0..4) > 0;
        self.kills += u64::from(!is_power);
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
        let losses = simulation.disk.losses();
        Met {
            kept: order.kept,
            lost: order.lost,
            power_cuts: losses.cuts - self.kills,
            kills: self.kills,
            cuts_in_recovery: self.cuts_in_recovery,
            lived: simulation.lived,
            losses,
        }
    }
}

/// Counts of what a run has met.
#[derive(Debug, Default)]
struct Met {
    kept: u64,
    lost: u64,
    power_cuts: u64,
    kills: u64,
    cuts_in_recovery: u64,
    lived: Lived,
    /// Sectors and writes in power cuts; in kills all sectors land.
    losses: Losses,
}

#[test]
fn hosts_of_a_volatile_cache_find_a_prefix_and_all_that_was_flushed() {
    let mut all = Met::default();
    for met in seeds::each(seeds(), |seed| Cached::new(seed).run()) {
        all.kept += met.kept;
        all.lost += met.lost;
        all.power_cuts += met.power_cuts;
        all.kills += met.kills;
        all.cuts_in_recovery += met.cuts_in_recovery;
        all.lived.add(met.lived);
        all.losses.add(met.losses);
    }
    let count = seeds().count();
    println!("volatile cache: {count} seeds: {all:?}");
    let lived = all.lived;
    let met = [all.kept, all.lost, lived.cleaned, lived.checkpoints, lived.shared_groups];
    assert!(met.iter().all(|count| *count > 20) || count < 50, "{all:?}");
    let faults = [all.power_cuts, all.kills, all.cuts_in_recovery, all.losses.torn_writes];
    let least = u64::try_from(count / 5).unwrap();
    assert!(faults.iter().all(|count| *count > least) || count < 50, "{all:?}");
}
