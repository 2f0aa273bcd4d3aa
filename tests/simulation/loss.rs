//! Connections lost at any moment: the host comes back and finds acknowledged data. An unanswered
//! command was executed completely or not at all, and is not executed later.

use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Address, Controller, Options};
use csd_kvlog::media::Losses;
use csd_reactor::sleep;

use crate::workload::{Shared, read_back, work_until_lost};
use crate::{CUTS, Simulation, seeds};

/// Pause before a host tries again to connect.
const PAUSE: Duration = Duration::from_millis(50);
const LOSSES: u64 = 4;
/// Number of seeds in the short form; the long form runs all that are asked for.
const SEEDS_SHORT: usize = 20;

/// Works, and comes back whenever the connection is lost, until it is cut off itself.
pub async fn work(address: Address, known: Shared) {
    loop {
        if let Ok(controller) = Controller::connect(&address, &Options::default()).await
            && read_back(&controller, &known, true).await.is_ok()
        {
            known.borrow_mut().connections += 1;
            work_until_lost(&controller, &known).await;
        } else {
            sleep(PAUSE).await;
        }
    }
}

impl Simulation {
    /// Loses connections at random moments while a host works.
    fn lose_connections(&mut self) {
        let _ = self.on_host(work);
        for _ in 0..LOSSES {
            // Now and then in the middle of connecting or comparing.
            let span = if self.draw(0..4) == 0 { 2_000 } else { 150_000 };
            self.world.run_for(Duration::from_micros(self.draw(100..span)));
            self.world.disconnect(self.drive, self.host);
        }
        self.world.run_for(2 * PAUSE);
    }
}

#[test]
fn nothing_acknowledged_is_lost_with_a_connection() {
    let (mut operations, mut connections, mut losses) = (0, 0, Losses::default());
    let asked = std::env::var_os("CSD_SIM_SEEDS").is_some();
    let most = if asked { usize::MAX } else { SEEDS_SHORT };
    let runs = seeds::each(seeds().take(most), |seed| {
        let mut simulation = Simulation::new(seed);
        simulation.lossy = true;
        let known = Rc::clone(&simulation.known);
        let trace = simulation.run();
        (trace.operations, known.borrow().connections, trace.losses)
    });
    for (done, made, lost) in runs {
        losses.add(lost);
        operations += done;
        connections += made;
    }
    let count = seeds().take(most).count() as u64;
    println!(
        "lost connections: {count} seeds, {operations} operations, {} disconnects, \
         {connections} connections, {losses:?}",
        count * CUTS as u64 * LOSSES
    );
    assert!(connections > 4 * count, "hosts hardly ever came back: {connections}");
    assert!(operations > 20 * count, "the workload hardly ran");
}

#[test]
fn equal_seeds_lose_connections_alike() {
    let run = |seed| {
        let mut simulation = Simulation::new(seed);
        simulation.lossy = true;
        simulation.run()
    };
    for seed in [5, 6] {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

impl Simulation {
    /// Works as a host before the power is cut.
    pub fn work(&mut self) {
        if self.lossy {
            return self.lose_connections();
        }
        let _ = self.on_host(crate::workload::work);
        let most_us = if self.known.borrow().heavy { 800_000 } else { 60_000 };
        self.world.run_for(Duration::from_micros(self.draw(1_000..most_us)));
    }
}
