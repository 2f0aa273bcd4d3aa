//! Compares block I/O of a drive with a lower bound: the same bytes per I/O over bare loopback TCP.
//!
//! One client, which sends raw capsules, loads either a drive or a server that knows only sizes
//! ([`floor`]). Each server is pinned to one CPU. Runs of drive and floor alternate; a figure is
//! the median of the ratios of the pairs, with quartiles. The program reports a run as invalid if
//! the floor's rate is too low, and as inconclusive if the ratios scatter. `bench/README.md`
//! estimates the expected ratios.

use std::time::Duration;

use clap::Parser;
use csd_bench::client::{self, Client, Workload};
use csd_bench::floor;
use csd_bench::report::{self, Row, Run};
use csd_bench::serve::{self, Common, Options, Server, Side};

/// Number of 4 KiB blocks that are read and written.
const BLOCKS: u64 = 16 << 10;

/// Compares block I/O of a drive with bare loopback TCP.
#[derive(Parser)]
struct Arguments {
    /// Number of pairs of runs for each workload.
    #[arg(long, default_value_t = 10)]
    pairs: usize,
    /// Length of one run in milliseconds.
    #[arg(long, default_value_t = 700)]
    run_ms: u64,
    #[command(flatten)]
    common: Common,
    /// Run the workload of --row once against a drive started with `--serve drive`, for example
    /// under a profiler.
    #[arg(long, hide = true, value_name = "ADDRESS", requires = "row")]
    against: Option<std::net::SocketAddr>,
    /// Row of the workload in the table, from 0; used with `--against`.
    #[arg(long, hide = true)]
    row: Option<usize>,
}

/// Workloads in the order of the table. The drive of the last one sleeps without spinning.
const WORKLOADS: [Workload; 6] = [
    workload("4 KiB random read, depth 1", true, 4096, 1),
    workload("4 KiB random read, depth 32", true, 4096, 32),
    workload("4 KiB random read, depth 128", true, 4096, 128),
    workload("4 KiB random write, depth 32", false, 4096, 32),
    workload("128 KiB read, depth 32", true, 128 << 10, 32),
    workload("4 KiB read, depth 1, sleeping", true, 4096, 1),
];

const fn workload(name: &'static str, read: bool, bytes: usize, depth: u16) -> Workload {
    Workload { name, read, bytes, depth, in_order: false, blocks: BLOCKS }
}

fn main() {
    let arguments = Arguments::parse();
    match arguments.common.serve {
        Some(Side::Floor) => floor::serve(),
        Some(Side::Drive) => serve::drive(&arguments.common.drive),
        None => match (arguments.against, arguments.row) {
            (Some(address), Some(row)) => once(address, WORKLOADS[row], &arguments),
            _ => compare(&arguments),
        },
    }
}

/// Runs a workload against a drive alone, for a profiler, and prints the operations counted.
fn once(address: std::net::SocketAddr, workload: Workload, arguments: &Arguments) {
    if workload.read {
        client::fill(address, BLOCKS);
    }
    let mut client = Client::connect(address, Side::Drive, workload);
    let (operations, elapsed) = client.run(Duration::from_millis(arguments.run_ms));
    println!("{operations} operations in {elapsed:?}");
}

fn compare(arguments: &Arguments) {
    let run = Duration::from_millis(arguments.run_ms);
    let (pairs, ms) = (arguments.pairs, arguments.run_ms);
    let (backend, spin) = (&arguments.common.drive.backend, arguments.common.drive.spin_us);
    println!("{}, {pairs} pairs of {ms} ms, {backend}, spin {spin} us", report::machine());
    println!("{}", Row::head());
    let mut rows = Vec::new();
    for workload in WORKLOADS {
        let mut pairs = Vec::new();
        for _ in 0..arguments.pairs {
            let floor = measure(Side::Floor, arguments, workload, run);
            let drive = measure(Side::Drive, arguments, workload, run);
            pairs.push((floor, drive));
        }
        let row = Row::of(workload, &pairs);
        println!("{row}");
        rows.push(row);
    }
    let validity = report::validity(&rows);
    println!("{validity}");
    if let Some(path) = &arguments.common.record {
        report::record(path, &validity, &rows);
    }
}

/// Starts one side, runs the workload and returns its rate and CPU time.
fn measure(side: Side, arguments: &Arguments, workload: Workload, run: Duration) -> Run {
    let sleeps = workload.name.ends_with("sleeping");
    let spin_us = if sleeps { 0 } else { arguments.common.drive.spin_us };
    let server = Server::start(side, &Options { spin_us, ..arguments.common.drive.clone() });
    if side == Side::Drive && workload.read {
        client::fill(server.address, BLOCKS);
    }
    let mut client = Client::connect(server.address, side, workload);
    client.run(run / 5); // warm
    let cpu = server.cpu_us();
    let (operations, elapsed) = client.run(run);
    let cpu_us = server.cpu_us() - cpu;
    Run::new(operations, elapsed, cpu_us)
}
