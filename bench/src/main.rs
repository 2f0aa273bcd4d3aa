//! Block I/O of a drive beside its floor: the same bytes per I/O over bare loopback TCP.
//!
//! One client, which speaks raw capsules, drives both a real drive and a server that knows nothing
//! but sizes ([`floor`]). Each side has one CPU. Drive and floor alternate; a figure is the median
//! of the pairs' ratios with its quartiles. A run on a machine whose floor is too low, or whose
//! ratios scatter, says so and is no result. `bench/README.md` has the back of the envelope.

mod client;
mod floor;
mod report;
mod serve;

use std::time::Duration;

use clap::{Parser, ValueEnum};
use client::{Client, Workload};
use report::Row;
use serve::Server;

/// Block I/O of a drive beside bare loopback TCP.
#[derive(Parser)]
struct Arguments {
    /// Pairs of runs for each workload.
    #[arg(long, default_value_t = 10)]
    pairs: usize,
    /// Length of one run in milliseconds.
    #[arg(long, default_value_t = 700)]
    run_ms: u64,
    /// Back end of the drive.
    #[arg(long, default_value = "auto")]
    backend: String,
    /// Microseconds that the drive spins before it sleeps.
    #[arg(long, default_value_t = 1000)]
    spin_us: u32,
    /// Also append the rows to this JSON-lines file.
    #[arg(long)]
    record: Option<std::path::PathBuf>,
    /// Serve one side and nothing else (used by the benchmark itself).
    #[arg(long, hide = true)]
    serve: Option<Side>,
    /// Run this workload (its row, from 0) once against a drive served by `--serve drive`, which
    /// may be under a profiler.
    #[arg(long, hide = true, value_name = "ADDRESS", requires = "row")]
    against: Option<std::net::SocketAddr>,
    /// See `--against`.
    #[arg(long, hide = true)]
    row: Option<usize>,
}

/// What serves a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Side {
    /// A drive on memory media.
    Drive,
    /// The bare server.
    Floor,
}

/// Workloads in the order of the table.
const WORKLOADS: [Workload; 5] = [
    Workload { name: "4 KiB random read, depth 1", read: true, bytes: 4096, depth: 1 },
    Workload { name: "4 KiB random read, depth 32", read: true, bytes: 4096, depth: 32 },
    Workload { name: "4 KiB random read, depth 128", read: true, bytes: 4096, depth: 128 },
    Workload { name: "4 KiB random write, depth 32", read: false, bytes: 4096, depth: 32 },
    Workload { name: "128 KiB read, depth 32", read: true, bytes: 128 << 10, depth: 32 },
];

fn main() {
    let arguments = Arguments::parse();
    match arguments.serve {
        Some(Side::Floor) => floor::serve(),
        Some(Side::Drive) => serve::drive(&arguments.backend, arguments.spin_us),
        None => match (arguments.against, arguments.row) {
            (Some(address), Some(row)) => once(address, WORKLOADS[row], &arguments),
            _ => compare(&arguments),
        },
    }
}

/// A drive alone, for a profiler: operations counted, not compared.
fn once(address: std::net::SocketAddr, workload: Workload, arguments: &Arguments) {
    if workload.read {
        client::fill(address);
    }
    let mut client = Client::connect(address, Side::Drive, workload);
    let (operations, elapsed) = client.run(Duration::from_millis(arguments.run_ms));
    println!("{operations} operations in {elapsed:?}");
}

fn compare(arguments: &Arguments) {
    let run = Duration::from_millis(arguments.run_ms);
    println!("{}", report::machine(arguments));
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
    println!("{}", report::validity(&rows));
    if let Some(path) = &arguments.record {
        report::record(path, arguments, &rows);
    }
}

/// One run of one side.
fn measure(side: Side, arguments: &Arguments, workload: Workload, run: Duration) -> report::Run {
    let server = Server::start(side, &arguments.backend, arguments.spin_us);
    if side == Side::Drive && workload.read {
        client::fill(server.address);
    }
    let mut client = Client::connect(server.address, side, workload);
    client.run(run / 5); // warm
    let cpu = server.cpu_us();
    let (operations, elapsed) = client.run(run);
    let cpu_us = server.cpu_us() - cpu;
    report::Run::new(operations, elapsed, cpu_us)
}
