//! Measures the latency of one host's reads while another host lists keys, over that without.
//!
//! A drive in memory is filled with short values. Windows of reads at depth 1, in random order,
//! alternate without and with a second host that sends Lists of 64 KiB one after another. The
//! figure is the median of the ratios of the windows' percentiles.

#[path = "../common.rs"]
mod common;

use std::sync::Arc;

use clap::Parser;
use common::{Common, LAUNCH};
use csd_bench::frame::Stop;
use csd_bench::load::{LIST_BYTES, Loader, Operation};
use csd_bench::report::Comparison;
use csd_bench::serve::{Options, Server, Side};
use csd_bench::wire::NQN;
use csd_bench::{Error, record};
use csd_client::{Address, Key, Settings};
use serde_json::json;

/// Aim: ratio of the 99th percentiles.
const AIM: f64 = 1.1;
/// Length of a value, bytes.
const VALUE_BYTES: usize = 100;
/// Bytes of an entry of a list with keys of 16 bytes.
const ENTRY_BYTES: usize = 20;

/// Measures the latency of reads while another host lists keys.
#[derive(Parser)]
struct Arguments {
    /// Number of keys.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u32,
    /// Number of pairs of windows.
    #[arg(long, default_value_t = 10)]
    pairs: usize,
    /// Number of reads of a window.
    #[arg(long, default_value_t = 20_000)]
    reads: usize,
    #[command(flatten)]
    common: Common,
}

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    let Arguments { keys, pairs, reads, common } = &arguments;
    println!("{}, {keys} keys, {pairs} pairs of {reads} reads", record::machine());
    let size_bytes = (512 << 20) + u64::from(*keys) * 1024;
    let server =
        Server::start(LAUNCH, Side::Drive, &Options { size_bytes, ..common.drive.clone() })?;
    let reader = connect(&server, &Stop::default())?;
    let all = Arc::new(reader.keys(*keys));
    let put = Operation::Put(Arc::new(vec![0x5A; VALUE_BYTES]));
    reader.run(&put, &all, all.len(), 64)?;
    // Steps of a prime number: every key once, in no order of the index.
    let mixed: Vec<Key> = (0..all.len()).map(|at| all[at * 7_368_787 % all.len()]).collect();
    let (mixed, pages) = (Arc::new(mixed), all.len() * ENTRY_BYTES / LIST_BYTES as usize);
    let starts: Vec<Key> = all.iter().step_by(all.len() / pages.max(1)).copied().collect();
    let starts = Arc::new(starts);
    let (mut p50, mut p99, mut lists) = (Vec::new(), Vec::new(), 0);
    for _ in 0..*pairs {
        let window = || reader.run(&Operation::Get(None), &mixed, *reads, 1);
        let alone = window()?.latencies;
        let (next, listed) = while_listing(&server, &starts, window)?;
        lists += listed;
        for (percentile, pairs) in [(50.0, &mut p50), (99.0, &mut p99)] {
            let us = |of: &hdrhistogram::Histogram<u64>| us(of.value_at_percentile(percentile));
            pairs.push((us(&alone), us(&next.latencies)));
        }
    }
    let mut record = common.record()?;
    for (name, pairs) in [("p50", p50), ("p99", p99)] {
        let compared = Comparison::of(&pairs)?;
        let (first, second, ratio) = (compared.first, compared.second, compared.ratio);
        println!(
            "{name}: {first:.1} us alone, {second:.1} us next to Lists; ratio {:.2} \
             ({:.2}-{:.2}){}",
            ratio[1],
            ratio[0],
            ratio[2],
            compared.mark()
        );
        if let Some(record) = &mut record {
            record.append(json!({
                "workload": format!("get next to List, {name}"),
                "keys": keys,
                "alone_us": first,
                "listing_us": second,
                "ratio_quartiles": ratio,
                "lists": lists,
                "inconclusive": compared.is_inconclusive(),
            }))?;
        }
    }
    println!("{lists} Lists; aim of p99 at most {AIM}");
    Ok(())
}

/// Runs `work` while another host sends Lists. Returns its result and the number of Lists.
fn while_listing<T>(
    server: &Server,
    starts: &Arc<Vec<Key>>,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, usize), Error> {
    let stop = Stop::default();
    let lister = connect(server, &stop)?;
    std::thread::scope(|scope| {
        let listing = scope.spawn(|| {
            let mut rounds = 0;
            loop {
                match lister.run(&Operation::List, starts, starts.len(), 1) {
                    Ok(_) => rounds += 1,
                    Err(Error::Interrupted) => return Ok(rounds),
                    Err(error) => return Err(error),
                }
            }
        });
        let done = work();
        stop.set();
        let rounds: usize = listing.join().expect("it does not panic")?;
        Ok((done?, rounds * starts.len()))
    })
}

fn connect(server: &Server, stop: &Stop) -> Result<Loader, Error> {
    let address = Address::new(server.address, NQN);
    Loader::connect(&address, &Settings::default(), 1, stop)
}

#[allow(clippy::cast_precision_loss)] // nanoseconds of seconds
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
