//! The experiment of Park et al., *BTS: Exploring Effects of Background Task-Aware Scheduling for
//! Key-Value CSDs*, section V.C and Fig. 7, in the simulation: latency of puts against the number
//! of client threads, without background work (case 1) and under every policy.
//!
//! Parameters are those of section V.A and Table I (6 cores, 10 Gbit/s, values of 16 KiB in chunks
//! of 128 bytes by SHA-1, windows of 60 requests, 90 us an update). Service times are not printed
//! there: that of the background task is measured here first, the others are options, and the
//! sensitivity of the crossing of cases 2 and 3 to each is reported. Variants of `bts` and
//! `adaptive` tell apart what the choice of cores, classes of work and a cheaper update contribute.

mod cases;
mod load;
mod model;
mod sensitivity;
mod table;

use std::ops::RangeInclusive;

use clap::Parser;
use csd_bench::Error;
use csd_bench::record::{self, Destination};
use csd_bench::timing::cpu_ns;
use csd_sched::{Cost, Monitor, Policy, Scheduler, Task};
use serde_json::json;
use sha1::{Digest, Sha1};

use cases::Case;
use load::{Load, Shape};
use model::{Model, Outcome, run};
use table::rounded;

/// Simulates puts with a background task each, under every policy.
#[derive(Parser)]
struct Arguments {
    /// Numbers of client threads, from the first to the last; or a single one.
    #[arg(long, value_name = "FIRST-LAST", default_value = "1-40", value_parser = range)]
    threads: RangeInclusive<usize>,
    /// Cores of the drive.
    #[arg(long, default_value_t = 6)]
    cores: usize,
    /// Shape of the load.
    #[arg(long, value_enum, default_value_t = Shape::Steady)]
    shape: Shape,
    /// Share of gets in the requests, percent.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    gets: u8,
    /// Foreground work of a request, microseconds.
    #[arg(long, default_value_t = 20.0)]
    foreground_us: f64,
    /// Background work of a put, microseconds [default: SHA-1 of 128 chunks, measured]
    #[arg(long)]
    background_us: Option<f64>,
    /// Time of the medium, microseconds.
    #[arg(long, default_value_t = 40.0)]
    medium_us: f64,
    /// Delay of the network, there and back, microseconds.
    #[arg(long, default_value_t = 50.0)]
    network_us: f64,
    /// Vary each parameter in place of the table, and report where cases 2 and 3 cross.
    #[arg(long)]
    sensitivity: bool,
    /// Number of runs with different arrivals, the means of which are shown.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    #[command(flatten)]
    record: Destination,
}

/// Length of a value and of a chunk (section V.A), bytes.
const VALUE_BYTES: usize = 16 << 10;
const CHUNK_BYTES: usize = 128;

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    let mut record = arguments.record.open()?;
    let measured_us = hash_us();
    let decision_ns = decision_ns(arguments.cores);
    println!("{}", record::machine());
    println!(
        "measured: SHA-1 of a value in chunks of {CHUNK_BYTES} bytes {measured_us:.1} us; a \
         decision of `adaptive` with its share of the window's update {decision_ns:.0} ns"
    );
    let model = model(&arguments, arguments.background_us.unwrap_or(measured_us));
    println!("{model:?}");
    record.append(json!({
        "bench": "decision",
        "cores": model.cores,
        "decision_ns": rounded(decision_ns),
        "hash_us": rounded(measured_us),
    }))?;
    if arguments.sensitivity {
        return sensitivity::sensitivity(&arguments, model, &mut record);
    }
    table::table(&arguments, model, &mut record)
}

impl Arguments {
    fn load(&self, threads: usize) -> Load {
        Load { shape: self.shape, threads, gets_percent: self.gets }
    }

    /// Returns the means of the runs of a case with all seeds. A seed is the same arrivals in every
    /// case.
    fn outcome(&self, model: Model, case: Case, threads: usize) -> Outcome {
        let load = self.load(threads);
        let outcomes: Vec<_> = (1..=self.seeds).map(|seed| run(model, case, load, seed)).collect();
        Outcome::mean(&outcomes)
    }
}

fn model(arguments: &Arguments, background_us: f64) -> Model {
    Model {
        cores: arguments.cores,
        foreground_ns: ns(arguments.foreground_us),
        background_ns: ns(background_us),
        medium_ns: ns(arguments.medium_us),
        network_ns: ns(arguments.network_us),
        // 10 Gbit/s are 0.8 ns a byte.
        link_ns: VALUE_BYTES as u64 * 8 / 10,
        window: 60,
        published_update_ns: 90_000,
        own_update_ns: 1_000,
        move_ns: 1_000,
        owed_max: 64,
    }
}

/// Reads `FIRST-LAST`, or one number.
fn range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse().map_err(|error| format!("{text:?}: {error}"));
    let range = number(first)?..=number(last)?;
    if *range.start() == 0 { Err("there is at least one thread".to_owned()) } else { Ok(range) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "options are times")]
fn ns(us: f64) -> u64 {
    (us.max(0.0) * 1e3) as u64
}

/// Returns the CPU time of SHA-1 over the chunks of a value, microseconds: the median of 101.
fn hash_us() -> f64 {
    let value = csd_bench::random::bytes(VALUE_BYTES, 1);
    let mut times: Vec<f64> = (0..101)
        .map(|_| {
            cpu_ns(|| {
                for chunk in value.chunks(CHUNK_BYTES) {
                    std::hint::black_box(Sha1::digest(chunk));
                }
            })
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[50] / 1e3
}

/// Returns the CPU time of one decision with its share of the update of a window, ns.
#[allow(clippy::cast_precision_loss)] // a count
fn decision_ns(cores: usize) -> f64 {
    const DECISIONS: u64 = 60 * 2000;
    let mut monitor = Monitor::new(cores, 60, 0);
    let mut scheduler = Scheduler::new(Policy::Adaptive, cores, None, Cost::default());
    let mut busy_ns = 0;
    let spent_ns = cpu_ns(|| {
        for (number, random) in (0..DECISIONS).zip(csd_bench::random::numbers(3)) {
            busy_ns += random % 20_000;
            if monitor.count_request() {
                let window =
                    monitor.update(number * 20_000, |core| (busy_ns / (core as u64 + 1), number));
                scheduler.observe(window);
            }
            let origin = usize::try_from(random % cores as u64).unwrap_or_default();
            let task = Task { origin, work_ns: 50_000 };
            std::hint::black_box(scheduler.choose(task, |core| core as u64 * 1000, random));
        }
    });
    spent_ns / DECISIONS as f64
}
