//! Options of `csd bench`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, value_parser};
use csd_bench::serve::{Options, SPIN_US, Side};
use csd_reactor::BackendKind;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Compare block I/O of a drive with bare TCP that moves as many bytes
    ///
    /// Starts a drive in memory and a bare server (the floor), each in a process of its own on one
    /// CPU, and loads them in turns with the same client. A figure is the median of the ratios of
    /// the pairs, drive over floor, with quartiles. Exit code 4 if the machine was too slow for a
    /// valid result, or if ratios scatter by more than 15 %.
    #[command(after_help = "\
Examples:
  csd bench block
  csd bench block --pairs 3 --record block.jsonl
  csd bench block --url nvme+tcp://192.0.2.7:4420/nqn.2014-08.org.example:disk")]
    Block(Block),
    /// Serve one side of a measurement
    #[command(hide = true)]
    Serve(BenchServe),
}

/// Options of `csd bench block`.
#[derive(Args, Debug)]
pub(crate) struct Block {
    /// Number of pairs of runs for each workload
    #[arg(long, value_name = "N", default_value = "10", value_parser = positive())]
    pub(crate) pairs: u64,
    /// Length of one run, milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value = "700", value_parser = positive())]
    pub(crate) run_ms: u64,
    /// I/O backend of the drive; `auto` takes io_uring where the kernel allows it, else epoll
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto", conflicts_with = "url")]
    pub(crate) backend: BackendKind,
    /// Time that the drive polls before it sleeps, microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = SPIN_US, conflicts_with = "url")]
    pub(crate) spin_us: u32,
    /// Measure this NVMe/TCP drive, of any maker, instead of starting one; it is only read, unless
    /// --write is given. It must not require authentication
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Also measure writes to the drive of --url. They destroy the first 64 MiB of its namespace
    #[arg(long, requires = "url")]
    pub(crate) write: bool,
    /// Also append the results to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// Options of `csd bench serve`, which `csd bench` runs itself.
#[derive(Args, Debug)]
pub(crate) struct BenchServe {
    /// The server
    pub(crate) side: Side,
    #[command(flatten)]
    pub(crate) options: Options,
}

fn positive() -> RangedU64ValueParser<u64> {
    value_parser!(u64).range(1..=1_000_000)
}
