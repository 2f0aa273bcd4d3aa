//! Measures puts of a drive that counts duplicate chunks, by the policy that chooses the core of
//! the counting, against the number of puts in flight: the experiment of Park et al., *BTS*,
//! section V.C and Fig. 7, on this machine.
//!
//! In each round every case takes its turn: a drive that counts nothing (case 1), and one for each
//! policy. Drives and client share all CPUs. Puts overwrite the same keys; a window begins once the
//! drive has counted everything of the one before, and that time is measured, too, since a policy
//! that puts work off is no better for it.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use csd_bench::frame::Stop;
use csd_bench::load::{Loader, Operation};
use csd_bench::program::{self, Common};
use csd_bench::record::{self, Record};
use csd_bench::report::{medians, quartiles};
use csd_bench::serve::{Options, Server};
use csd_bench::{Error, random};
use csd_sched::Policy;
use serde_json::json;

/// Connections, so that puts arrive on several cores of the drive.
const CONNECTIONS: usize = 2;
/// Keys that are overwritten.
const KEYS: u32 = 2000;

/// Measures puts next to the counting of chunks.
#[derive(Parser)]
struct Arguments {
    /// Number of rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Puts in flight, the client threads of the paper.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64])]
    threads: Vec<u16>,
    /// Puts of a window.
    #[arg(long, default_value_t = 4000)]
    puts: usize,
    /// Length of a value, bytes.
    #[arg(long, default_value_t = 16 << 10)]
    value: usize,
    /// Length of a chunk, bytes.
    #[arg(long, default_value_t = 128)]
    chunk: u32,
    #[command(flatten)]
    common: Common,
}

/// Time without CPU time of the drive after which it has counted everything.
const QUIET: Duration = Duration::from_millis(60);

/// A drive, and its name in the results.
struct Case {
    name: &'static str,
    drive: Server,
}

/// Result of a window: puts a second, 50th and 99th percentile of the latency in us, and the time
/// in ms until everything was counted.
type Window = [f64; 4];

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    let Arguments { rounds, threads, puts, value, chunk, common } = &arguments;
    println!("{}, {rounds} rounds of {puts} puts of {value} B", record::machine());
    let cases = cases(&common.drive, *chunk)?;
    let mut record = common.record.open()?;
    for threads in threads {
        let mut found = vec![Vec::new(); cases.len()];
        for _ in 0..*rounds {
            let mut order: Vec<usize> = (0..cases.len()).collect();
            random::shuffle(&mut order);
            for at in order {
                found[at].push(window(&cases[at].drive, *threads, *puts, *value)?);
            }
        }
        report(*threads, &cases, &found, &mut record)?;
    }
    Ok(())
}

/// Starts a drive that counts nothing, and one for each policy.
fn cases(options: &Options, chunk: u32) -> Result<Vec<Case>, Error> {
    let cores = options.cores.max(CONNECTIONS);
    let base = Options { cores, unpinned: true, spin_us: 0, ..options.clone() };
    let start = |name: &'static str, dedup: Option<u32>, policy: Policy| -> Result<Case, Error> {
        let drive = program::drive(&Options { dedup, policy, ..base.clone() })?;
        Ok(Case { name, drive })
    };
    let mut cases = vec![start("none", None, Policy::default())?];
    for policy in Policy::ALL {
        cases.push(start(policy.name(), Some(chunk), policy)?);
    }
    Ok(cases)
}

/// Puts with so many in flight, and waits until the drive has counted them.
fn window(drive: &Server, threads: u16, puts: usize, value: usize) -> Result<Window, Error> {
    let connections = CONNECTIONS.min(usize::from(threads));
    let loader = Loader::sharing(drive, connections, &Stop::default())?;
    let keys = Arc::new(loader.keys(KEYS));
    let put = Operation::Put(Arc::new(random::bytes(value, 1)));
    let depth = threads.div_ceil(u16::try_from(connections).expect("two"));
    loader.run(&put, &keys, puts / 10, depth)?;
    drive.until_quiet(QUIET)?;
    let ran = loader.run(&put, &keys, puts, depth)?;
    let counted = drive.until_quiet(QUIET)?;
    loader.run(&Operation::Delete, &keys, keys.len(), 16)?;
    let us = |quantile| ran.latencies.value_at_quantile(quantile) as f64 / 1e3;
    let per_s = puts as f64 / ran.elapsed.as_secs_f64();
    Ok([per_s, us(0.5), us(0.99), counted.as_secs_f64() * 1e3])
}

/// Prints and records the medians of each case, and its ratio to the drive that counts nothing.
fn report(
    threads: u16,
    cases: &[Case],
    found: &[Vec<Window>],
    record: &mut Record,
) -> Result<(), Error> {
    println!("{threads} in flight");
    for (case, windows) in cases.iter().zip(found) {
        let [per_s, p50_us, p99_us, counted_ms] = medians(windows.iter().copied())?;
        let ratios = windows.iter().zip(&found[0]).map(|(own, none)| own[2] / none[2]);
        let p99_ratio = quartiles(ratios.collect())?;
        println!(
            "  {:8} {per_s:7.0} puts/s, p50 {p50_us:6.0} us, p99 {p99_us:6.0} us ({:.2}, \
             {:.2}-{:.2} of none), counted after {counted_ms:.0} ms",
            case.name, p99_ratio[1], p99_ratio[0], p99_ratio[2],
        );
        record.append(json!({
            "bench": "policies",
            "policy": case.name,
            "threads": threads,
            "puts_per_s": per_s,
            "p50_us": p50_us,
            "p99_us": p99_us,
            "p99_over_none": p99_ratio,
            "counted_ms": counted_ms,
        }))?;
    }
    Ok(())
}
