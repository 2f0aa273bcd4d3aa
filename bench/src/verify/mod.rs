//! Verify by combination: pages of a unit, units, and unrolling, next to the sequential unit.
//!
//! The combinations of a size take turns in rounds, so that what the machine does besides meets all
//! of them. Gains are ratios within a round: of instructions (one unit against the sequential one,
//! which takes byte after byte) and of parallel work (all units against one of the same unrolling).
//! [`rtl`] computes the same sizes by the cycles of the circuit.

pub mod cycles;
mod units;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use csd_kernels::verify::{Adaptive, Plan, Version, scalar};
use serde_json::{Value, json};

use crate::frame::{Step, Stop};
use crate::report::{SPREAD_MAX, quartiles};
use crate::{Error, random};
use cycles::{CLOCK_HZ, Circuit};
use units::Units;

/// Sizes of files, bytes: the paper's.
pub const SIZES: [usize; 3] = [4 << 10, 60 << 10, 1 << 30];
const PAGE_BYTES: u32 = 4096;
/// Unrollings of the matrix.
const UNROLLS: [u8; 4] = [1, 2, 4, 8];
/// Numbers of pages of a unit.
const PAGES: [u32; 3] = [1, 24, 240];
/// Most bytes of a run of the sequential unit, which is slow.
const SEQUENTIAL_BYTES: usize = 16 << 20;
/// Bits of a page that a step of the circuit takes.
const LANE_BITS: [u64; 4] = [1, 2, 4, 8];

/// Way to verify a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Page after page and byte after byte, in one unit.
    Sequential,
    /// A fixed plan.
    Fixed(Plan),
    /// As the controller of drives says.
    Adaptive,
}

impl Way {
    /// Returns pages of a unit, units and unrolling of a fixed plan.
    fn plan(&self) -> Option<Plan> {
        match self {
            Self::Fixed(plan) => Some(*plan),
            Self::Sequential | Self::Adaptive => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Fixed(_) => "fixed",
            Self::Adaptive => "adaptive",
        }
    }
}

/// One combination on files of one size.
#[derive(Clone, Debug)]
pub struct Row {
    /// Size of a file, bytes.
    pub bytes: usize,
    /// Combination.
    pub way: Way,
    /// Quartiles of the rate, bytes per second.
    pub rate: [f64; 3],
    /// Quartiles of the rate over that of the sequential unit, if one unit works.
    pub instruction_gain: Option<[f64; 3]>,
    /// Quartiles of the rate over that of one unit of the same unrolling and pages.
    pub parallel_gain: Option<[f64; 3]>,
    /// Quartiles of the rate over that of the best fixed plan of the size.
    pub of_best: Option<[f64; 3]>,
}

impl Row {
    /// Returns true if the rates scatter by more than [`SPREAD_MAX`].
    pub fn is_inconclusive(&self) -> bool {
        (self.rate[2] - self.rate[0]) / self.rate[1] > SPREAD_MAX
    }

    /// Returns the row as records and JSON output have it.
    pub fn describe(&self) -> Value {
        let plan = self.way.plan();
        json!({
            "engine": "cpu",
            "bytes": self.bytes,
            "way": self.way.name(),
            "pages_per_unit": plan.map(|plan| plan.pages_per_unit()),
            "units": plan.map(|plan| plan.units()),
            "unroll": plan.map(|plan| plan.unroll()),
            "rate_quartiles": self.rate,
            "instruction_gain": self.instruction_gain,
            "parallel_gain": self.parallel_gain,
            "of_best": self.of_best,
            "inconclusive": self.is_inconclusive(),
        })
    }
}

/// Settings of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Rounds.
    pub rounds: usize,
    /// Shortest length of one run.
    pub run: Duration,
    /// True for all combinations; else the sequential unit, the usual plan and the adaptive one.
    pub matrix: bool,
    /// Number of cores.
    pub cores: u16,
}

impl Settings {
    /// Returns the ways to measure.
    fn ways(&self) -> Vec<Way> {
        let mut ways = vec![Way::Sequential, Way::Adaptive];
        let plan = |pages, units, unroll| Plan::new(PAGE_BYTES, pages, units, unroll);
        if !self.matrix {
            ways.extend(plan(240, self.cores, 1).map(Way::Fixed));
            return ways;
        }
        let doubled = std::iter::successors(Some(1u16), |units| units.checked_mul(2));
        let units = doubled.take_while(|units| *units < self.cores).chain([self.cores]);
        for units in units {
            for unroll in UNROLLS {
                let fits = |pages: &u32| *pages >= unroll.into();
                let plans = PAGES.into_iter().filter(fits).map(|pages| plan(pages, units, unroll));
                ways.extend(plans.flatten().map(Way::Fixed));
            }
        }
        ways
    }
}

/// Measures all ways on files of every size.
///
/// # Errors
/// [`Error::Usage`] without rounds, [`Error::Interrupted`], or a failure to start a thread.
pub fn measure(
    settings: Settings,
    sizes: &[usize],
    stop: &Stop,
    progress: &dyn Fn(Step<'_>),
) -> Result<Vec<Row>, Error> {
    let (units, ways) = (Units::start(usize::from(settings.cores))?, settings.ways());
    let unroll = Version::available().next().map_or(1, Version::unroll);
    let mut controller = Adaptive::new(settings.cores, unroll);
    let of = sizes.len() * settings.rounds * ways.len();
    let (mut rows, mut done) = (Vec::new(), 0);
    for bytes in sizes {
        let file = Arc::new(random::bytes(*bytes, 1));
        let mut rates = vec![Vec::new(); ways.len()];
        // The first round warms up: it wakes threads, and the controller learns.
        for round in 0..=settings.rounds {
            for (way, rates) in ways.iter().zip(&mut rates) {
                stop.check()?;
                let rate = run(&units, &file, *way, &mut controller, settings.run)?;
                if round > 0 {
                    done += 1;
                    rates.push(rate);
                }
                progress(Step { done, of, what: &format!("{} KiB", bytes >> 10) });
            }
        }
        rows.extend(summarize(*bytes, &ways, &rates)?);
    }
    Ok(rows)
}

/// Verifies a file again and again for at least `least`; returns bytes per second.
fn run(
    units: &Units,
    file: &Arc<Vec<u8>>,
    way: Way,
    controller: &mut Adaptive,
    least: Duration,
) -> Result<f64, Error> {
    let (began, mut bytes) = (Instant::now(), 0);
    loop {
        bytes += match way {
            Way::Sequential => {
                let some = &file[..file.len().min(SEQUENTIAL_BYTES)];
                black_box(scalar::checksums(Plan::sequential(PAGE_BYTES), black_box(some)));
                some.len()
            }
            Way::Fixed(plan) => {
                units.fixed(file, plan)?;
                file.len()
            }
            Way::Adaptive => {
                units.adaptive(file, PAGE_BYTES, controller)?;
                file.len()
            }
        };
        let took = began.elapsed();
        if took >= least {
            return Ok(bytes as f64 / took.as_secs_f64());
        }
    }
}

/// Summarizes the rates of all ways by round.
fn summarize(bytes: usize, ways: &[Way], rates: &[Vec<f64>]) -> Result<Vec<Row>, Error> {
    let over = |own: &[f64], base: Option<&Vec<f64>>| {
        base.map(|base| quartiles(own.iter().zip(base).map(|(own, base)| own / base).collect()))
            .transpose()
    };
    let place =
        |wanted: &dyn Fn(&Way) -> bool| ways.iter().position(wanted).map(|place| &rates[place]);
    let medians = rates.iter().map(|rates| Ok(quartiles(rates.clone())?[1]));
    let medians = medians.collect::<Result<Vec<f64>, Error>>()?;
    let fixed = (0..ways.len()).filter(|way| ways[*way].plan().is_some());
    let best = fixed.max_by(|one, other| medians[*one].total_cmp(&medians[*other]));
    let mut rows = Vec::new();
    for (way, own) in ways.iter().zip(rates) {
        let plan = way.plan();
        let alone = plan.filter(|plan| plan.units() == 1);
        let one_unit = plan.filter(|plan| plan.units() > 1).and_then(|plan| {
            let one = Plan::new(PAGE_BYTES, plan.pages_per_unit(), 1, plan.unroll()).ok()?;
            place(&|way| *way == Way::Fixed(one))
        });
        let sequential = alone.and_then(|_| place(&|way| *way == Way::Sequential));
        let best = best.filter(|_| *way == Way::Adaptive).map(|best| &rates[best]);
        rows.push(Row {
            bytes,
            way: *way,
            rate: quartiles(own.clone())?,
            instruction_gain: over(own, sequential)?,
            parallel_gain: over(own, one_unit)?,
            of_best: over(own, best)?,
        });
    }
    Ok(rows)
}

/// One circuit on a file.
#[derive(Clone, Copy, Debug)]
pub struct RtlRow {
    /// Size of the file, bytes.
    pub bytes: usize,
    /// Circuit.
    pub circuit: Circuit,
    /// Cycles, with the start of the units.
    pub cycles: u64,
    /// Speed-up over one page in one unit of the same unrolling.
    pub speed_up: f64,
}

impl RtlRow {
    /// Returns the time at the model's clock rate, seconds.
    pub fn seconds(&self) -> f64 {
        self.cycles as f64 / CLOCK_HZ
    }

    /// Returns the row as records and JSON output have it.
    pub fn describe(&self) -> Value {
        json!({
            "engine": "rtl",
            "bytes": self.bytes,
            "pages_per_unit": self.circuit.pages,
            "units": self.circuit.units,
            "lane_bits": self.circuit.lane_bits,
            "cycles": self.cycles,
            "seconds_at_300_mhz": self.seconds(),
            "speed_up": self.speed_up,
        })
    }
}

/// Computes the cycles of the sequential circuit and of all that work on 300 pages at once.
pub fn rtl(sizes: &[usize]) -> Vec<RtlRow> {
    let mut rows = Vec::new();
    for bytes in sizes {
        let pages = bytes.div_ceil(PAGE_BYTES as usize) as u64;
        for lane_bits in LANE_BITS {
            let sequential = Circuit::sequential(lane_bits);
            let base = sequential.cycles(pages);
            for circuit in std::iter::once(sequential).chain(Circuit::of_300(lane_bits)) {
                let cycles = circuit.cycles(pages);
                let speed_up = base as f64 / cycles as f64;
                rows.push(RtlRow { bytes: *bytes, circuit, cycles, speed_up });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_measured_on_every_size_and_gains_stand_apart() {
        let settings = Settings { rounds: 1, run: Duration::ZERO, matrix: true, cores: 2 };
        let sizes = [4 << 10, 60 << 10, (5 << 20) + 77];
        let rows = measure(settings, &sizes, &Stop::default(), &|_| ()).unwrap();
        assert_eq!(rows.len(), 3 * settings.ways().len());
        // 1, 2, 4 and 8 pages together, by 1 (only one together), 24 and 240 pages, by 2 units.
        assert_eq!(settings.ways().len(), 2 + 2 * 9);
        for row in rows {
            let units = row.way.plan().map(|plan| plan.units());
            assert_eq!(row.instruction_gain.is_some(), units == Some(1), "{row:?}");
            assert_eq!(row.parallel_gain.is_some(), units == Some(2), "{row:?}");
            assert_eq!(row.of_best.is_some(), row.way == Way::Adaptive, "{row:?}");
        }
    }

    #[test]
    fn gains_are_ratios_within_rounds() {
        let plan = |units| Way::Fixed(Plan::new(PAGE_BYTES, 24, units, 2).unwrap());
        let ways = [Way::Sequential, plan(1), plan(2), Way::Adaptive];
        // The machine is twice as fast in the second round.
        let rates = [vec![1.0, 2.0], vec![3.0, 6.0], vec![6.0, 12.0], vec![5.4, 10.8]];
        let rows = summarize(4096, &ways, &rates).unwrap();
        assert_eq!(rows[1].instruction_gain, Some([3.0; 3]));
        assert_eq!(rows[2].parallel_gain, Some([2.0; 3]));
        assert!(rows[3].of_best.unwrap().iter().all(|share| (share - 0.9).abs() < 1e-9));
    }

    #[test]
    fn an_interruption_ends_it() {
        let stop = Stop::default();
        stop.set();
        let settings = Settings { rounds: 1, run: Duration::ZERO, matrix: false, cores: 1 };
        let ended = measure(settings, &SIZES, &stop, &|_| ());
        assert!(matches!(ended, Err(Error::Interrupted)));
    }
}
