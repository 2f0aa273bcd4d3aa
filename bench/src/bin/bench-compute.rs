//! Measures programs in a drive: their cost to the drive's foreground I/O, and their throughput.
//!
//! - `tail`: latency of 4 KiB reads at depth 1 with and without a program running, in alternating
//!   windows of one run. Client and drive share one CPU and sleep between reads. With a free core
//!   the compute lane runs on another CPU, otherwise on the same one.
//! - `count`: counting a file's bytes in the drive, compared with fio reading them.
//! - `cores`: one execution on all cores of a drive, compared with one core.
//!
//! `bench/README.md` estimates the expected figures.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clap::Parser;
use csd_bench::client::{BLOCK_BYTES, Single, fill};
use csd_bench::file;
use csd_bench::report::{self, Run, SPREAD_MAX, quartiles};
use csd_bench::serve::{self, Common, Options, Server, Side};
use csd_nvme::execute::{Execution, Output, Place};
use serde_json::json;

/// Measures programs in a drive.
#[derive(Parser)]
struct Arguments {
    /// Number of pairs of windows, or of runs.
    #[arg(long, default_value_t = 15)]
    pairs: usize,
    /// Length of a window of reads, ms.
    #[arg(long, default_value_t = 400)]
    window_ms: u64,
    /// Bytes counted in one run, MiB.
    #[arg(long, default_value_t = 1024)]
    run_mib: u64,
    /// Size of one read by fio, KiB.
    #[arg(long, default_value_t = 1024)]
    fio_kib: u64,
    /// Queue depth of fio.
    #[arg(long, default_value_t = 8)]
    fio_depth: u64,
    /// Folder for the file to count.
    #[arg(long, default_value = "build/bench")]
    dir: PathBuf,
    /// Measure only the latency of foreground reads, without a file.
    #[arg(long)]
    tail_only: bool,
    /// Measure only counting a file.
    #[arg(long, conflicts_with = "tail_only")]
    count_only: bool,
    /// Measure only one execution on several cores.
    #[arg(long, conflicts_with_all = ["tail_only", "count_only"])]
    cores_only: bool,
    #[command(flatten)]
    common: Common,
}

/// Least size of the file, bytes.
const FILE_BYTES: u64 = 3 << 30;
/// Bytes of memory media that are filled, read and counted.
const FILLED_BYTES: u32 = 64 << 20;
/// Size of one execution's input, bytes.
const EXECUTION_BYTES: u64 = 256 << 20;
/// Wait after a program starts before its window begins.
const SETTLE: Duration = Duration::from_millis(20);

fn main() {
    let arguments = Arguments::parse();
    if arguments.common.serve.is_some() {
        return serve::drive(&arguments.common.drive);
    }
    println!("{}, {} pairs", report::machine(), arguments.pairs);
    let Arguments { tail_only, count_only, cores_only, .. } = arguments;
    if !tail_only && !cores_only && file::has_fio() {
        count_file(&arguments);
    }
    if !tail_only && !count_only {
        on_cores(&arguments);
    }
    // Last, because it moves this process to one CPU.
    if !count_only && !cores_only && serve::pinned() {
        for free in [true, false] {
            tail(&arguments, free);
        }
    }
}

/// Returns an execution of the count kernel (i32) over `sources` on `cores` cores of the drive.
fn count(sources: &[Place], cores: u16) -> Execution {
    // Element type i32, equal to, six zeros, the value.
    let mut parameters = vec![1, 0, 0, 0, 0, 0, 0, 0];
    parameters.extend_from_slice(&7u64.to_le_bytes());
    let sources = sources.iter().map(|place| (*place).into()).collect();
    Execution {
        program: 1,
        output: Output::Completion,
        sources,
        inline: vec![],
        parameters,
        serial: false,
        cores,
    }
}

/// Measures read latency with a program running and without.
fn tail(arguments: &Arguments, free: bool) {
    let options = Options { spin_us: 0, ..arguments.common.drive.clone() };
    let server = Server::start(Side::Drive, &options);
    let blocks = u64::from(FILLED_BYTES) / BLOCK_BYTES as u64;
    fill(server.address, blocks);
    let mut reader = Single::connect(server.address);
    let mut runner = Single::connect(server.address);
    let whole = Place::Blocks { nsid: 1, slba: 0, skip: 0, bytes: FILLED_BYTES };
    // The compute lane's thread starts with its first execution.
    let program = count(&[whole; 4], 1);
    runner.execute(0, &program);
    let other = if options.cpu == 0 { "1" } else { "0" };
    let same = options.cpu.to_string();
    server.place("-comp", if free { other } else { &same });
    let pinned = std::process::Command::new("taskset")
        .args(["-a", "-p", "-c", &same, &std::process::id().to_string()])
        .output();
    assert!(pinned.is_ok_and(|pinned| pinned.status.success()), "taskset moves this process");
    let (running, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut pairs = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Relaxed) {
                if running.load(Relaxed) {
                    runner.execute(0, &program);
                } else {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let window = Duration::from_millis(arguments.window_ms);
        for _ in 0..arguments.pairs {
            let without = percentiles(&mut reader, blocks, window);
            running.store(true, Relaxed);
            std::thread::sleep(SETTLE);
            let with = percentiles(&mut reader, blocks, window);
            running.store(false, Relaxed);
            // Let the execution under way end.
            std::thread::sleep(Duration::from_secs(1));
            pairs.push((without, with));
        }
        ended.store(true, Relaxed);
    });
    let name = if free { "with a free core" } else { "without a free core" };
    for (which, percent) in [(0, "p50"), (1, "p99")] {
        let us: Vec<(f64, f64)> =
            pairs.iter().map(|(without, with)| (without[which], with[which])).collect();
        let text = format!("4 KiB read {percent}, {name}");
        tell(arguments, &text, ("alone us", "beside us"), &us);
    }
}

/// Returns the 50th and 99th percentile of read latency over a window, us.
fn percentiles(reader: &mut Single, blocks: u64, window: Duration) -> [f64; 2] {
    let (start, mut state) = (Instant::now(), 0x9E37_79B9_7F4A_7C15_u64);
    let mut all = Vec::new();
    while start.elapsed() < window {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        all.push(reader.read_ns((state >> 33) % blocks));
    }
    all.sort_unstable();
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    [50, 99].map(|percent| all[(all.len() - 1) * percent / 100] as f64 / 1000.0)
}

/// Compares counting a file's bytes in the drive with fio reading the file.
fn count_file(arguments: &Arguments) {
    std::fs::create_dir_all(&arguments.dir).expect("a folder for the file");
    let path = arguments.dir.join("drive.img");
    let size_bytes = arguments.common.drive.size_bytes.max(FILE_BYTES);
    let options = Options { size_bytes, ..arguments.common.drive.clone() };
    let namespace = file::prepare(&path, &options);
    let options = Options { media: Some(path.clone()), ..options };
    let run_bytes = (arguments.run_mib << 20).min(namespace.bytes) / EXECUTION_BYTES;
    let run_bytes = run_bytes.max(1) * EXECUTION_BYTES;
    let mut pairs = Vec::new();
    for _ in 0..arguments.pairs.max(10) {
        let fio = read_by_fio(arguments, &path, namespace.offset, run_bytes);
        pairs.push((fio, counted(&options, run_bytes)));
    }
    tell(arguments, "count of a file", ("fio GB/s", "drive GB/s"), &pairs);
    std::fs::remove_file(path).expect("the file was ours");
}

fn read_by_fio(arguments: &Arguments, path: &Path, offset: u64, bytes: u64) -> f64 {
    let block_bytes = arguments.fio_kib << 10;
    let more = [
        format!("--filename={}", path.display()),
        "--rw=read".to_owned(),
        format!("--bs={block_bytes}"),
        format!("--iodepth={}", arguments.fio_depth),
        format!("--offset={offset}"),
        format!("--size={bytes}"),
    ];
    let count = bytes / block_bytes;
    file::fio("read", count, &more).per_s() * as_f64(block_bytes) / 1e9
}

/// Counts `bytes` of the file in one run of a drive and returns the rate, GB/s.
fn counted(options: &Options, bytes: u64) -> f64 {
    let server = Server::start(Side::Drive, options);
    if serve::pinned() {
        // On any CPU, as fio is.
        server.place("", "0-1023");
    }
    let mut runner = Single::connect(server.address);
    let start = Instant::now();
    for at in (0..bytes).step_by(usize::try_from(EXECUTION_BYTES).expect("64 bits")) {
        let length = u32::try_from(EXECUTION_BYTES).expect("256 MiB");
        let slba = at / BLOCK_BYTES as u64;
        let blocks = Place::Blocks { nsid: 1, slba, skip: 0, bytes: length };
        runner.execute(0, &count(&[blocks], 1));
    }
    let run = Run::new(1, start.elapsed(), 0);
    run.per_s() * as_f64(bytes) / 1e9
}

/// Compares one execution on all cores with the same on one. The drive has as many cores as this
/// machine.
fn on_cores(arguments: &Arguments) {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let Some(cores) = u16::try_from(cores).ok().filter(|cores| *cores > 1) else {
        return println!("SKIPPED: cores: this machine has one");
    };
    let options = Options { cores: cores.into(), ..arguments.common.drive.clone() };
    let server = Server::start(Side::Drive, &options);
    if serve::pinned() {
        server.place("", "0-1023");
    }
    let mut runner = Single::connect(server.address);
    fill(server.address, u64::from(FILLED_BYTES) / BLOCK_BYTES as u64);
    let sources = [Place::Blocks { nsid: 1, slba: 0, skip: 0, bytes: FILLED_BYTES }; 4];
    let mut rate = |cores| {
        let start = Instant::now();
        for _ in 0..4 {
            runner.execute(0, &count(&sources, cores));
        }
        Run::new(1, start.elapsed(), 0).per_s() * as_f64(u64::from(FILLED_BYTES) * 16) / 1e9
    };
    // The compute lanes' threads start with their first execution.
    rate(cores);
    let pairs: Vec<(f64, f64)> =
        (0..arguments.pairs.max(10)).map(|_| (rate(1), rate(cores))).collect();
    let all = format!("{cores} cores GB/s");
    tell(arguments, "count on all cores", ("1 core GB/s", &all), &pairs);
}

#[allow(clippy::cast_precision_loss)] // bytes of a file
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

/// Prints one row: both sides' medians, and quartiles of the ratios, second over first.
fn tell(arguments: &Arguments, name: &str, sides: (&str, &str), pairs: &[(f64, f64)]) {
    let of = |pick: fn(&(f64, f64)) -> f64| quartiles(pairs.iter().map(pick).collect());
    let (first, second) = (of(|pair| pair.0)[1], of(|pair| pair.1)[1]);
    let ratio = of(|pair| pair.1 / pair.0);
    let inconclusive = (ratio[2] - ratio[0]) / ratio[1] > SPREAD_MAX;
    println!(
        "{name:36} {} {first:>8.2}  {} {second:>8.2}  ratio {:.2} ({:.2}-{:.2}){}",
        sides.0,
        sides.1,
        ratio[1],
        ratio[0],
        ratio[2],
        if inconclusive { "  inconclusive" } else { "" }
    );
    if let Some(path) = &arguments.common.record {
        let line = json!({
            "workload": name,
            sides.0: first,
            sides.1: second,
            "ratio_quartiles": ratio,
            "inconclusive": inconclusive,
        });
        report::append(path, line);
    }
}
