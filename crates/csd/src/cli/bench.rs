//! Options of `csd bench`.

use std::path::PathBuf;

use clap::builder::{RangedI64ValueParser, RangedU64ValueParser};
use clap::{Args, Subcommand, ValueEnum, value_parser};
use csd_bench::record::Destination;
use csd_bench::serve::{Options, SPIN_US, Side};
use csd_reactor::BackendKind;
use csd_sched::Policy;
use serde_json::Value;

use super::bench_ec::Ec;
use crate::units::parse_size;

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
    /// Compare values of a key-value namespace with bare TCP and a plain file
    ///
    /// Fills a namespace and reads its values, by sequential and by random keys. Starts a drive in
    /// memory, or on the file of --media, and a bare server (the floor) that moves as many bytes,
    /// and loads them in turns. On a file, both are also compared with a plain file of as many
    /// bytes, which is synced for every group of values in flight, and read past the page cache. A
    /// figure is the median of the ratios of the pairs, drive over floor, with quartiles; latencies
    /// are percentiles over all runs of the drive. Exit code 4 if the machine was too slow for a
    /// valid result, or if ratios scatter by more than 15 %.
    #[command(after_help = "\
Examples:
  csd bench kv
  csd bench kv --value-bytes 1M --depth 8 --media /mnt/bench.media --size 16G
  csd bench kv --value-bytes 100 --keys 50000 --threads 2 --record kv.jsonl
  csd bench kv --url nvme+tcp://192.0.2.7:4420/nqn.2014-08.org.example:kv?nsid=2 --write")]
    Kv(KvBench),
    /// Measure verify by pages of a unit, units and unrolling
    ///
    /// Verifies files of 4 KiB, 60 KiB and 1 GiB in memory: page after page in one unit, by the
    /// usual plan, and as a drive does that changes units and unrolling while it works.
    /// Combinations take turns in rounds; figures are medians and quartiles. With --engine rtl
    /// nothing is measured: the cycles of the circuit in rtl/ are computed for all combinations of
    /// 300 pages.
    /// Exit code 4 if rates scatter by more than 15 %.
    #[command(after_help = "\
Examples:
  csd bench verify
  csd bench verify --matrix --record verify.jsonl
  csd bench verify --engine rtl --json")]
    Verify(Verify),
    /// Compare erasure coding on the host with erasure coding in paced drives
    ///
    /// Encodes blocks of memory by Reed-Solomon codes with n = 2 k: on the host with one thread, by
    /// this project's code and by ISA-L (libisal) where it is installed; and in drives that the
    /// command starts, by their program `encode`, at the pace of a profile. Both sides take turns
    /// in rounds; figures are medians. Without sizes and powers, these are the ones of section IV.2
    /// of Byun et al., 2023, which takes about 2 minutes; its printed break-even points are shown
    /// in a table of their own. Exit code 4 if times scatter by more than 15 %, or a drive cannot
    /// keep its pace.
    #[command(after_help = "\
Examples:
  csd bench ec -o ec.csv && csdplan ec --points ec.csv
  csd bench ec --sizes 12x64,48x64 --drive-power 1,5
  csd bench ec --sizes 24x16 --pace none --write-profile ec.toml")]
    Ec(Ec),
    /// Show which cores a scheduler of background work chooses
    ///
    /// Reads windows, one JSON object a line: `active`, the numbers of the cores (from 0) that did
    /// foreground work in the window, or true and false for each core; `utilisation`, the share of
    /// each core's time that this took, from 0 to 1; and `requests`, the number of background tasks
    /// that arise after the window, on its active cores in turns. Prints the group of idle cores
    /// (G) that follows from each window, and every choice with its reason. A seed gives the same
    /// choices each time.
    #[command(after_help = "\
Examples:
  csd bench sched --replay - <<< '{\"active\": [1], \"utilisation\": [0, 0.7], \"requests\": 3}'
  csd bench sched --replay windows.jsonl --policy adaptive --json
  csd bench sched --replay windows.jsonl --threshold 1")]
    Sched(Sched),
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
    #[command(flatten)]
    pub(crate) started: Started,
    /// Measure this NVMe/TCP drive, of any maker, instead of starting one; it is only read, unless
    /// --write is given. It must not require authentication
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Also measure writes to the drive of --url. They destroy the first 64 MiB of its namespace
    #[arg(long, requires = "url")]
    pub(crate) write: bool,
    #[command(flatten)]
    pub(crate) record: Destination,
}

/// Options of `csd bench kv`.
#[derive(Args, Debug)]
pub(crate) struct KvBench {
    /// Length of a value, such as 100, 16K or 1M; at most 16M
    #[arg(long, value_name = "SIZE", default_value = "16K", value_parser = value_size)]
    pub(crate) value_bytes: u32,
    /// Number of keys, and of operations of a run [default: 128 MiB of values, but 32 to 50000]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000_000))]
    pub(crate) keys: Option<u32>,
    /// Number of client threads, each with a connection of its own
    #[arg(long, value_name = "N", default_value = "1", value_parser = up_to(64))]
    pub(crate) threads: u16,
    /// Operations in flight of each thread
    #[arg(long, value_name = "N", default_value = "8", value_parser = up_to(127))]
    pub(crate) depth: u16,
    /// Number of pairs of runs for each row
    #[arg(long, value_name = "N", default_value = "10", value_parser = positive())]
    pub(crate) pairs: u64,
    /// Medium of the drive: memory, or a file that does not exist yet and is deleted afterwards
    #[arg(long, value_name = "memory|FILE", default_value = "memory", conflicts_with = "url")]
    pub(crate) media: PathBuf,
    /// Size of the drive, such as 16G. Drives of 11 GiB and more have the longest segments, in
    /// which long values need the fewest writes [default: room for the values]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "url")]
    pub(crate) size: Option<u64>,
    #[command(flatten)]
    pub(crate) started: Started,
    /// Measure this NVMe/TCP drive, of any maker, instead of starting one; only values that it has
    /// are read, unless --write is given
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Store values in the drive of --url, under keys that begin with `csdb` and 8 random bytes,
    /// read them, and delete them
    #[arg(long, requires = "url")]
    pub(crate) write: bool,
    #[command(flatten)]
    pub(crate) record: Destination,
}

/// Options of `csd bench sched`.
#[derive(Args, Debug)]
pub(crate) struct Sched {
    /// File with the windows, `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: PathBuf,
    /// Rule by which cores are chosen
    #[arg(long, value_name = "inline|local|bts|adaptive", default_value_t = Policy::Bts)]
    pub(crate) policy: Policy,
    /// With `bts`: leave tasks where they arose if no core is idle and none is used less than the
    /// mean of all by this many standard deviations [default: the least used core takes them]
    #[arg(long, value_name = "DEVIATIONS", value_parser = deviations)]
    pub(crate) threshold: Option<f64>,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
}

/// Options of `csd bench verify`.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// Measure every combination: 1, 24 and 240 pages of a unit; 1, 2, 4, ... units up to the
    /// cores; unrolling by 1, 2, 4 and 8
    #[arg(long)]
    pub(crate) matrix: bool,
    /// Measure this machine, or compute the cycles of the circuit
    #[arg(long, value_enum, value_name = "cpu|rtl", default_value_t = Engine::Cpu)]
    pub(crate) engine: Engine,
    /// Number of rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = positive())]
    pub(crate) rounds: u64,
    /// Shortest length of one run, milliseconds; small files repeat until then
    #[arg(long, value_name = "MILLISECONDS", default_value = "20", value_parser = positive())]
    pub(crate) run_ms: u64,
    /// Most units [default: the cores of this machine]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) units: Option<u16>,
    /// Sizes of the files
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = parse_size)]
    #[arg(default_value = "4K,60K,1G")]
    pub(crate) sizes: Vec<u64>,
    #[command(flatten)]
    pub(crate) record: Destination,
}

/// Subject of `csd bench verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// This machine
    Cpu,
    /// The circuit, by its cycles
    Rtl,
}

/// Options of a drive that a measurement starts.
#[derive(Args, Debug)]
pub(crate) struct Started {
    /// I/O backend of the drive; `auto` takes io_uring where the kernel allows it, else epoll
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto", conflicts_with = "url")]
    pub(crate) backend: BackendKind,
    /// Time that the drive polls before it sleeps, microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = SPIN_US, conflicts_with = "url")]
    pub(crate) spin_us: u32,
}

impl Started {
    /// Returns them as options of a server.
    pub(crate) fn options(&self) -> Options {
        Options { backend: self.backend.to_string(), spin_us: self.spin_us, ..Options::default() }
    }

    /// Returns them in words, and adds them to the settings of a result.
    pub(crate) fn describe(&self, settings: &mut Value) -> String {
        let Self { backend, spin_us } = self;
        settings["backend"] = backend.to_string().into();
        settings["spin_us"] = (*spin_us).into();
        format!("{backend}, spin {spin_us} us")
    }
}

/// Options of `csd bench serve`, which `csd bench` runs itself.
#[derive(Args, Debug)]
pub(crate) struct BenchServe {
    /// The server
    pub(crate) side: Side,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// Parses the length of a value.
fn value_size(text: &str) -> Result<u32, String> {
    match u32::try_from(parse_size(text)?) {
        Ok(bytes) if (1..=16 << 20).contains(&bytes) => Ok(bytes),
        _ => Err("a value has 1 byte to 16M".to_owned()),
    }
}

/// Parses a number of standard deviations.
fn deviations(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.0..=100.0).contains(&factor) => Ok(factor),
        _ => Err("a number from 0 to 100".to_owned()),
    }
}

fn up_to(most: u16) -> RangedI64ValueParser<u16> {
    value_parser!(u16).range(1..=most.into())
}

fn positive() -> RangedU64ValueParser<u64> {
    value_parser!(u64).range(1..=1_000_000)
}
