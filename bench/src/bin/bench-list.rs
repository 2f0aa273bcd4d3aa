//! Measures the latency of one host's reads while another host lists keys, over that without.
//!
//! A drive in memory is filled with short values. Windows of reads at depth 1, in random order,
//! alternate without and with a second host that sends Lists of 64 KiB one after another. The
//! figure is the median of the ratios of the windows' percentiles. Both hosts share CPUs, so they
//! wait in the kernel and drop what they receive.

use clap::Parser;
use csd_bench::frame::Stop;
use csd_bench::load::{Loader, histogram};
use csd_bench::program::{self, Common};
use csd_bench::report::Comparison;
use csd_bench::serve::{Options, Server};
use csd_bench::wire::{Single, Target};
use csd_bench::{Error, record};
use csd_client::Key;
use serde_json::json;

/// Aim: ratio of the 99th percentiles.
const AIM: f64 = 1.1;
/// Size of a List command, bytes.
const LIST_BYTES: u32 = 64 << 10;
/// Namespace ID of the key-value namespace.
const NSID: u32 = 2;
/// Length of a value, bytes.
const VALUE_BYTES: u32 = 100;
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
    let server = program::drive(&Options { size_bytes, ..common.drive.clone() })?;
    let all = Loader::started(&server, 1, &Stop::default())?.fill(*keys, VALUE_BYTES)?;
    // Steps of a prime number: every key once, in no order of the index.
    let mixed: Vec<Key> = (0..all.len()).map(|at| all[at * 7_368_787 % all.len()]).collect();
    let pages = (all.len() * ENTRY_BYTES / LIST_BYTES as usize).max(1);
    let starts: Vec<Key> = all.iter().step_by(all.len() / pages).copied().collect();
    let mut reader = connect(&server)?;
    let (mut p50, mut p99, mut lists, mut at) = (Vec::new(), Vec::new(), 0, 0);
    for _ in 0..*pairs {
        let mut window = || {
            let mut latencies = histogram();
            for _ in 0..*reads {
                let ns = reader.retrieve_ns(&mixed[at % mixed.len()], VALUE_BYTES)?;
                latencies.saturating_record(ns);
                at += 1;
            }
            Ok(latencies)
        };
        let alone = window()?;
        let (next, listed) = while_listing(&server, &starts, window)?;
        lists += listed;
        for (percentile, pairs) in [(50.0, &mut p50), (99.0, &mut p99)] {
            let us = |of: &hdrhistogram::Histogram<u64>| us(of.value_at_percentile(percentile));
            pairs.push((us(&alone), us(&next)));
        }
    }
    let mut record = common.record.open()?;
    for (name, pairs) in [("p50", p50), ("p99", p99)] {
        let compared = Comparison::of(&pairs)?;
        let Comparison { first, second, ratio } = compared;
        let text = compared.ratio_text();
        println!("{name}: {first:.1} us alone, {second:.1} us next to Lists; {text}");
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
    println!("{lists} Lists; aim of p99 at most {AIM}");
    Ok(())
}

/// Runs `work` while another host sends Lists. Returns its result and the number of Lists.
fn while_listing<T>(
    server: &Server,
    starts: &[Key],
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, usize), Error> {
    let stop = Stop::default();
    let mut lister = connect(server)?;
    std::thread::scope(|scope| {
        let listing = scope.spawn(|| {
            let mut lists = 0;
            while stop.check().is_ok() {
                lister.list(&starts[lists % starts.len()], LIST_BYTES)?;
                lists += 1;
            }
            Ok::<usize, Error>(lists)
        });
        let done = work();
        stop.set();
        let lists = listing.join().expect("it does not panic")?;
        Ok((done?, lists))
    })
}

fn connect(server: &Server) -> Result<Single, Error> {
    Single::connect(&Target { nsid: NSID, ..Target::started(server.address) })
}

#[allow(clippy::cast_precision_loss)] // nanoseconds of seconds
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
