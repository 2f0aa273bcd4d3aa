//! The controller of verifications against every fixed setting, on modelled machines in virtual
//! time: files of each size, and bursts of commands of hosts.

#![allow(clippy::cast_possible_truncation, reason = "times of a model")]

use std::collections::VecDeque;

use csd_kernels::verify::{Adaptive, PARTS_AHEAD, Setting, UNROLL_MAX};

/// A drive: what a unit does, and what binds several.
#[derive(Clone, Copy, Debug)]
struct Machine {
    cores: u16,
    /// Rate of a unit that has its core to itself, by unrolling from 1, GB/s.
    unit: [f64; 8],
    /// Rate of the memory, GB/s.
    memory: f64,
    /// Share of the rate that each unit beyond the useful ones costs.
    crowding: f64,
    /// Cost of a part, ns.
    part_ns: f64,
}

const FLAT: [f64; 8] = [10.0; 8];
const SSE: [f64; 8] = [9.8, 18.9, 25.2, 25.9, 21.3, 20.0, 20.6, 19.9];
const ZEN: [f64; 8] = [22.0, 14.0, 13.0, 14.0, 15.0, 16.0, 16.0, 16.0];
const LATE: [f64; 8] = [4.0, 4.4, 5.0, 5.6, 6.0, 6.6, 7.0, 7.6];

fn machines() -> Vec<Machine> {
    let mut machines = Vec::new();
    for cores in [1, 3, 8, 16] {
        for unit in [FLAT, SSE, ZEN, LATE] {
            for memory in [15.0, 1000.0] {
                for crowding in [0.0, 0.04] {
                    machines.push(Machine { cores, unit, memory, crowding, part_ns: 3000.0 });
                }
            }
        }
    }
    machines
}

impl Machine {
    /// Returns the rate of all units together while hosts leave `free` cores, GB/s.
    fn rate(&self, setting: Setting, free: f64) -> f64 {
        let unit = self.unit[usize::from(setting.unroll) - 1];
        let units = f64::from(setting.units);
        let useful = units.min(free).min((self.memory / unit).max(1.0));
        (unit * useful).min(self.memory) / (1.0 + self.crowding * (units - useful).max(0.0))
    }

    fn settings(&self) -> impl Iterator<Item = Setting> {
        (1..=self.cores)
            .flat_map(|units| (1..=UNROLL_MAX).map(move |unroll| Setting { units, unroll }))
    }

    /// Returns the time of a part of `bytes` bytes, ns; the units' parts end in turn.
    fn part_ns(&self, setting: Setting, bytes: u64, free: f64) -> f64 {
        bytes as f64 / self.rate(setting, free) + self.part_ns / f64::from(setting.units)
    }

    /// Verifies files with a fixed setting; returns the time, ns.
    fn fixed(&self, setting: Setting, bytes: u64, part: u64, free: f64) -> f64 {
        (bytes / part) as f64 * self.part_ns(setting, part, free)
            + self.part_ns(setting, bytes % part, free)
    }

    /// Returns the least time of all fixed settings, ns.
    fn best(&self, bytes: u64, part: u64, free: f64) -> f64 {
        let times = self.settings().map(|setting| self.fixed(setting, bytes, part, free));
        times.fold(f64::INFINITY, f64::min)
    }

    /// Returns the bytes that the best fixed setting verifies in `ns`.
    fn bytes_in(&self, ns: f64, part: u64, free: f64) -> u64 {
        (GIB as f64 * ns / self.best(GIB, part, free)) as u64
    }

    /// Verifies bytes as the controller says; returns the time, ns.
    fn adaptive(&self, run: &mut Run, bytes: u64, part: u64, free: f64) -> f64 {
        let hosts = 1.0 - free / f64::from(self.cores);
        let mut time_ns = 0.0;
        for bytes in parts(bytes, part) {
            // Parts that end now began with the setting of a moment ago.
            let now = run.controller.setting();
            run.under_way.push_back(now);
            while run.under_way.len() > usize::from(PARTS_AHEAD * now.units) {
                run.under_way.pop_front();
            }
            let then = run.under_way.front().copied().unwrap_or(now);
            let ns = self.part_ns(then, bytes, free);
            run.controller.record(bytes, ns as u64, hosts);
            time_ns += ns;
        }
        time_ns
    }
}

/// A controller, and the settings of the parts under way.
struct Run {
    controller: Adaptive,
    under_way: VecDeque<Setting>,
}

impl Run {
    /// Starts with an unrolling that was measured (`knows`), or with none.
    fn new(machine: &Machine, knows: bool) -> Self {
        let of_unit = |unroll: &u8| machine.unit[usize::from(*unroll) - 1];
        let best = (1..=UNROLL_MAX).max_by(|one, other| of_unit(one).total_cmp(&of_unit(other)));
        let unroll = if knows { best.unwrap_or(1) } else { 1 };
        Self { controller: Adaptive::new(machine.cores, unroll), under_way: VecDeque::new() }
    }
}

/// Returns the lengths of the parts of `bytes` bytes.
fn parts(bytes: u64, part: u64) -> impl Iterator<Item = u64> {
    (0..bytes.div_ceil(part)).map(move |index| part.min(bytes - index * part))
}

const PART: u64 = 2 << 20;
const GIB: u64 = 1 << 30;

#[test]
fn every_size_takes_at_most_a_tenth_longer_than_with_the_best_fixed_setting() {
    for machine in machines() {
        // A file of 4 or 60 KiB is one part; there are as many as 1 GiB holds.
        for part in [4 << 10, 60 << 10, PART] {
            let cores = f64::from(machine.cores);
            let best = machine.best(GIB, part, cores);
            for knows in [true, false] {
                // A new drive does not know yet how many units only crowd each other.
                if knows && machine.crowding > 0.0 {
                    continue;
                }
                let mut run = Run::new(&machine, knows);
                if !knows {
                    // The first 0.3 s find the unrolling.
                    machine.adaptive(&mut run, machine.bytes_in(3e8, part, cores), part, cores);
                }
                let time = machine.adaptive(&mut run, GIB, part, cores);
                let said = format!("{machine:?}, parts of {part}: {time}, best {best}");
                assert!(time <= 1.1 * best, "{said}, {:?}", run.controller);
            }
        }
    }
}

#[test]
fn a_burst_of_commands_that_begins_or_ends_costs_at_most_a_tenth() {
    for machine in machines().into_iter().filter(|machine| machine.cores > 1) {
        let (mut run, all) = (Run::new(&machine, false), f64::from(machine.cores));
        machine.adaptive(&mut run, machine.bytes_in(5e8, PART, all), PART, all);
        for taken in [0.5, 0.75] {
            let few = (all * (1.0 - taken)).max(1.0);
            // The first burst of a kind is new to it.
            machine.adaptive(&mut run, machine.bytes_in(5e8, PART, few), PART, few);
            for _ in 0..3 {
                for free in [few, all] {
                    let bytes = machine.bytes_in(5e7, PART, free);
                    let time = machine.adaptive(&mut run, bytes, PART, free);
                    let best = machine.best(bytes, PART, free);
                    let said = format!("{machine:?}, {free} cores free: {time}, best {best}");
                    assert!(time <= 1.1 * best, "{said}, {:?}", run.controller);
                }
            }
        }
    }
}

#[test]
fn a_rate_that_changes_unseen_is_found() {
    // Another program takes the memory's bandwidth, and then more units only crowd each other.
    let wide = Machine { cores: 8, unit: FLAT, memory: 1000.0, crowding: 0.04, part_ns: 3000.0 };
    let narrow = Machine { memory: 15.0, ..wide };
    let mut run = Run::new(&wide, true);
    wide.adaptive(&mut run, 8 * GIB, PART, 8.0);
    assert_eq!(run.controller.setting().units, 8);
    narrow.adaptive(&mut run, 2 * GIB, PART, 8.0);
    let time = narrow.adaptive(&mut run, GIB, PART, 8.0);
    assert!(time <= 1.1 * narrow.best(GIB, PART, 8.0), "{:?}", run.controller);
}

#[test]
fn settings_stay_within_the_cores_whatever_is_reported() {
    let mut controller = Adaptive::new(5, 3);
    let mut state = 1u64;
    for _ in 0..200_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let hosts = [0.0, 0.3, 1.0, 7.5, -1.0, f64::NAN][(state >> 60) as usize % 6];
        controller.record(state >> 40, state >> 45, hosts);
        let Setting { units, unroll } = controller.setting();
        assert!((1..=5).contains(&units) && (1..=UNROLL_MAX).contains(&unroll));
    }
    assert_eq!(Adaptive::new(0, 0).setting(), Setting { units: 1, unroll: 1 });
}
