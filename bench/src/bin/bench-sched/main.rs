//! The experiment of Park et al., *BTS: Exploring Effects of Background Task-Aware Scheduling for
//! Key-Value CSDs*, section V.C and Fig. 7, in the simulation: latency of puts against the number
//! of client threads, without background work (case 1) and under every policy.
//!
//! Parameters are those of section V.A and Table I (6 cores, 10 Gbit/s, values of 16 KiB in chunks
//! of 128 bytes by SHA-1, windows of 60 requests, 90 us an update). Service times are not printed
//! there: that of the background task is measured here first, the others are options, and the
//! sensitivity of the crossing of cases 2 and 3 to each is reported.

mod load;
mod model;

use clap::Parser;
use csd_bench::Error;
use csd_bench::record::{self, Destination, Record};
use csd_bench::timing::cpu_ns;
use csd_sched::{Cost, Monitor, Policy, Scheduler, Task};
use serde_json::json;
use sha1::{Digest, Sha1};

use load::{Load, Shape};
use model::{Model, Outcome, run};

/// Simulates puts with a background task each, under every policy.
#[derive(Parser)]
struct Arguments {
    /// Numbers of client threads.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4,5,6,8,10,12,15,18,21,24,30,40")]
    threads: Vec<usize>,
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
    /// Also vary each service time, and report where cases 2 and 3 cross.
    #[arg(long)]
    sensitivity: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    record: Destination,
}

/// Length of a value and of a chunk (section V.A), bytes.
const VALUE_BYTES: usize = 16 << 10;
const CHUNK_BYTES: usize = 128;

/// Case 1, and the policies.
const CASES: [Option<Policy>; 5] =
    [None, Some(Policy::Inline), Some(Policy::Local), Some(Policy::Bts), Some(Policy::Adaptive)];

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
    table(&arguments, model, &mut record)?;
    if arguments.sensitivity {
        sensitivity(&arguments, model);
    }
    Ok(())
}

impl Arguments {
    fn load(&self, threads: usize) -> Load {
        Load { shape: self.shape, threads, gets_percent: self.gets }
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
        bts_update_ns: 90_000,
        adaptive_update_ns: 1_000,
        move_ns: 1_000,
        owed_max: 64,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "options are times")]
fn ns(us: f64) -> u64 {
    (us.max(0.0) * 1e3) as u64
}

/// Prints and records a row for each number of threads.
fn table(arguments: &Arguments, model: Model, record: &mut Record) -> Result<(), Error> {
    println!("mean and p99 latency of a request, us; background tasks done for each put");
    let head = CASES.map(|case| format!("{:>24}", name(case))).concat();
    println!("{:>7}{head}{:>10}", "threads", "adaptive/best");
    let mut worst: f64 = 0.0;
    for &threads in &arguments.threads {
        let load = arguments.load(threads);
        let outcomes = CASES.map(|case| run(model, case, load, arguments.seed));
        let others = outcomes[1..4].iter().map(|outcome| outcome.mean_us);
        let ratio = outcomes[4].mean_us / others.fold(f64::INFINITY, f64::min);
        worst = worst.max(ratio);
        let shown = |of: &Outcome| {
            format!("{:>9.1} {:>8.1} {:>5.2}", of.mean_us, of.p99_us, of.done_per_put)
        };
        println!("{threads:>7}{}{ratio:>10.3}", outcomes.each_ref().map(shown).concat());
        for (case, outcome) in CASES.iter().zip(&outcomes) {
            record.append(json!({
                "cores": model.cores,
                "shape": format!("{:?}", arguments.shape).to_lowercase(),
                "threads": threads,
                "case": name(*case),
                "mean_us": outcome.mean_us,
                "p99_us": outcome.p99_us,
                "gets_percent": arguments.gets,
                "requests_per_s": outcome.requests_per_s,
                "done_per_put": outcome.done_per_put,
                "background_us": model.background_ns as f64 / 1e3,
                "foreground_us": model.foreground_ns as f64 / 1e3,
            }))?;
        }
    }
    println!("adaptive over the best other policy, at worst: {worst:.3}");
    Ok(())
}

fn name(case: Option<Policy>) -> &'static str {
    case.map_or("no background", Policy::name)
}

/// Names a service time of a model.
type Field = fn(&mut Model) -> &mut u64;

/// Prints where `bts` becomes slower than `inline`, for service times from half to twice the ones
/// assumed.
fn sensitivity(arguments: &Arguments, model: Model) {
    println!("fewest threads at which bts is slower than inline (the paper: 21)");
    let crossing = |model: Model| {
        let slower = |threads: &usize| {
            let load = arguments.load(*threads);
            let mean = |policy| run(model, Some(policy), load, arguments.seed).mean_us;
            mean(Policy::Bts) > mean(Policy::Inline)
        };
        let first = (1..=40).find(slower);
        first.map_or("none up to 40".to_owned(), |threads| threads.to_string())
    };
    println!("{:>24}  {}", "as assumed", crossing(model));
    let vary: [(&str, Field); 5] = [
        ("foreground work", |model| &mut model.foreground_ns),
        ("background work", |model| &mut model.background_ns),
        ("medium", |model| &mut model.medium_ns),
        ("network", |model| &mut model.network_ns),
        ("update of a window", |model| &mut model.bts_update_ns),
    ];
    for (what, field) in vary {
        let with = |times_two: bool| {
            let mut varied = model;
            let value = field(&mut varied);
            *value = if times_two { *value * 2 } else { *value / 2 };
            crossing(varied)
        };
        println!("{what:>24}  half: {}, twice: {}", with(false), with(true));
    }
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
