//! Measures the latency of one host's reads at depth 1 next to another host's long reads, and that
//! without them, over a drive and over the floor.
//!
//! In each round the four windows take turns. One thread is both hosts and polls their connections
//! by turns, so that they do not wait for each other's time on a CPU; it takes at most
//! [`TAKEN_BYTES`] of long answers before it looks for the short one. The floor sends each
//! connection a bounded part of its answers in turn (`csd_bench::long_floor`).

use clap::Parser;
use csd_bench::client::{self, Client, Server as Endpoint, times_next_to};
use csd_bench::frame::Stop;
use csd_bench::program::{self, Common};
use csd_bench::record::{self, Record};
use csd_bench::report::{Comparison, medians};
use csd_bench::serve::{Options, Server, Side};
use csd_bench::wire::Target;
use csd_bench::workload::Workload;
use csd_bench::{Error, block::BLOCKS};
use serde_json::json;

/// Most bytes of long answers that are received at once.
const TAKEN_BYTES: usize = 64 << 10;
/// Lengths of the read at depth 1 and of the other host's reads, KiB.
const CASES: [(usize, usize); 3] = [(4, 128), (4, 1024), (128, 128)];

/// Measures the latency of reads next to another host's long reads.
#[derive(Parser)]
struct Arguments {
    /// Number of rounds.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Number of reads of a window.
    #[arg(long, default_value_t = 2000)]
    reads: u64,
    /// Long reads in flight.
    #[arg(long, default_value_t = 32)]
    depth: u16,
    #[command(flatten)]
    common: Common,
}

/// Result of a window.
struct Window {
    /// 50th and 99th percentiles of the latency, us.
    latency_us: [f64; 2],
    /// Long reads per second.
    others_per_s: f64,
}

/// The windows of a round: floor and drive, each alone and next to long reads.
type Round = [Window; 4];

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    let Arguments { rounds, reads, depth, common } = &arguments;
    println!("{}, {rounds} rounds of {reads} reads", record::machine());
    let drive = program::drive(&common.drive)?;
    let target = Target::started(drive.address);
    client::fill(&target, BLOCKS, &Stop::default())?;
    let mut record = common.record.open()?;
    for (kib, other_kib) in CASES {
        let reader = reads_of(kib, 1);
        let other = reads_of(other_kib, *depth);
        let measure = |is_drive: bool, others: &[Workload]| match is_drive {
            true => window(&Endpoint::Drive(target.clone()), reader, others, *reads),
            false => {
                let floor = floor(&common.drive, 1 + others.len())?;
                window(&Endpoint::Floor(floor.address), reader, others, *reads)
            }
        };
        let round = || -> Result<Round, Error> {
            let others = [other];
            Ok([
                measure(false, &[])?,
                measure(false, &others)?,
                measure(true, &[])?,
                measure(true, &others)?,
            ])
        };
        let all = (0..*rounds).map(|_| round()).collect::<Result<Vec<Round>, Error>>()?;
        let name = format!("{kib} KiB next to {other_kib} KiB at depth {depth}");
        report(&name, &all, &mut record)?;
    }
    Ok(())
}

fn reads_of(kib: usize, depth: u16) -> Workload {
    let (name, bytes) = ("reads", kib << 10);
    Workload { name, read: true, bytes, depth, in_order: false, blocks: BLOCKS }
}

/// Starts the bare server of so many connections.
fn floor(options: &Options, connections: usize) -> Result<Server, Error> {
    let options = Options { cores: connections, ..options.clone() };
    program::start(Side::LongFloor, &options)
}

/// Measures the reader next to others, after a tenth of its reads as a warm-up.
fn window(
    endpoint: &Endpoint,
    reader: Workload,
    others: &[Workload],
    reads: u64,
) -> Result<Window, Error> {
    let stop = Stop::default();
    let connect = |workload: &Workload| Client::connect(endpoint, *workload, &stop);
    let mut reader = connect(&reader)?;
    let others = others.iter().map(|other| Ok(connect(other)?.taking_at_most(TAKEN_BYTES)));
    let mut others = others.collect::<Result<Vec<Client>, Error>>()?;
    times_next_to(&mut reader, &mut others, reads / 10)?;
    let timed = times_next_to(&mut reader, &mut others, reads)?;
    let mut times = timed.times_ns;
    times.sort_unstable();
    let at = |percent: usize| us(times[(times.len() * percent / 100).min(times.len() - 1)]);
    let others_per_s = count(timed.others) / timed.elapsed.as_secs_f64();
    Ok(Window { latency_us: [at(50), at(99)], others_per_s })
}

/// Prints and records the rows of a case.
fn report(name: &str, all: &[Round], record: &mut Record) -> Result<(), Error> {
    let rates = all.iter().map(|round| [1, 3].map(|at| round[at].others_per_s));
    let [floor_per_s, drive_per_s] = medians(rates)?;
    println!("{name}; long reads a second: floor {floor_per_s:.0}, drive {drive_per_s:.0}");
    for (index, percentile) in ["p50", "p99"].into_iter().enumerate() {
        let us = |round: &Round, at: usize| round[at].latency_us[index];
        let compare = |first: usize, second: usize| {
            let pairs = all.iter().map(|round| (us(round, first), us(round, second)));
            Comparison::of(&pairs.collect::<Vec<_>>())
        };
        let (floor, drive, of_floor) = (compare(0, 1)?, compare(2, 3)?, compare(1, 3)?);
        println!(
            "  {percentile}: floor {:.1} us alone, {:.1} us next to them, {}; drive {:.1} us \
             alone, {:.1} us next to them, {}; drive over floor next to them: {}",
            floor.first,
            floor.second,
            floor.ratio_text(),
            drive.first,
            drive.second,
            drive.ratio_text(),
            of_floor.ratio_text(),
        );
        record.append(json!({
            "workload": format!("{name}, {percentile}"),
            "floor_alone_us": floor.first,
            "floor_next_us": floor.second,
            "drive_alone_us": drive.first,
            "drive_next_us": drive.second,
            "ratio_quartiles": drive.ratio,
            "ratio_of_floor_quartiles": of_floor.ratio,
            "floor_long_reads_per_s": floor_per_s,
            "drive_long_reads_per_s": drive_per_s,
            "inconclusive": drive.is_inconclusive(),
        }))?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // nanoseconds of seconds
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[allow(clippy::cast_precision_loss)] // counts are far below 2^53
fn count(operations: u64) -> f64 {
    operations as f64
}
