//! Measures programs in a drive: their cost to the drive's foreground I/O, and their throughput.
//!
//! - `tail`: latency of 4 KiB reads at depth 1 with and without a program running, in alternating
//!   windows of one run. Client and drive share one CPU and sleep between reads. With a free core
//!   the compute thread runs on another CPU, otherwise on the same one.
//! - `count`, `verify`: a kernel over a file in the drive, compared with fio reading its bytes.
//! - `cores`: one execution on all cores of a drive, compared with one core.
//!
//! `bench/README.md` estimates the expected figures.

use std::cell::RefCell;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use csd_bench::client::fill;
use csd_bench::frame::{Frame, Stop};
use csd_bench::program::{self, Common};
use csd_bench::report::Comparison;
use csd_bench::serve::Options;
use csd_bench::wire::{Single, Target};
use csd_bench::workload::BLOCK_BYTES;
use csd_bench::{Error, cpus, fio, record, timing};
use csd_kernels::verify::{self, Parameters, Plan, Spacing};
use csd_nvme::vendor::execute::{Execution, Output, SourceData};
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
    /// Bytes of the file in one run, MiB.
    #[arg(long, default_value_t = 1024)]
    run_mib: u64,
    /// Size of one read by fio, KiB.
    #[arg(long, default_value_t = 1024)]
    fio_kib: u64,
    /// Queue depth of fio.
    #[arg(long, default_value_t = 8)]
    fio_depth: u64,
    /// Folder for the file.
    #[arg(long, default_value = "build/bench")]
    dir: PathBuf,
    /// Measure only the latency of foreground reads, without a file.
    #[arg(long)]
    tail_only: bool,
    /// Measure only the kernel over a file.
    #[arg(long, conflicts_with = "tail_only")]
    file_only: bool,
    /// Kernel over the file.
    #[arg(long, value_enum, default_value = "count")]
    kernel: Kernel,
    /// Measure only one execution on several cores.
    #[arg(long, conflicts_with_all = ["tail_only", "file_only"])]
    cores_only: bool,
    #[command(flatten)]
    common: Common,
}

/// Kernel over a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kernel {
    /// Count numbers equal to another.
    Count,
    /// CRC-32C of every page of 4 KiB, with the usual plan.
    Verify,
    /// The same; the drive changes units and unrolling while it works.
    VerifyAdaptive,
}

impl Kernel {
    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Verify => "verify",
            Self::VerifyAdaptive => "verify-adaptive",
        }
    }

    /// Returns an execution over `source`, on one core if it does not adapt.
    fn execution(self, source: SourceData) -> Execution {
        let plan = match self {
            Self::Count => return count(&[source], 1),
            Self::Verify => Plan::sequential(PAGE_BYTES),
            Self::VerifyAdaptive => Plan::adaptive(PAGE_BYTES),
        };
        let parameters = Parameters { plan, spacing: Spacing::default() }.encode();
        let cores = if self == Self::VerifyAdaptive { u16::MAX } else { 1 };
        Execution { program: verify::PROGRAM_ID, parameters, cores, ..count(&[source], 1) }
    }
}

/// Size of a page that verify checks, bytes.
const PAGE_BYTES: u32 = 4096;
/// Least size of the file, bytes.
const FILE_BYTES: u64 = 3 << 30;
/// Bytes of memory media that are filled, read and counted.
const FILLED_BYTES: u32 = 64 << 20;
/// Size of one execution's input, bytes.
const EXECUTION_BYTES: u64 = 256 << 20;
/// Wait after a program starts before its window begins.
const SETTLE: Duration = Duration::from_millis(20);

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    println!("{}, {} pairs", record::machine(), arguments.pairs);
    let Arguments { tail_only, file_only, cores_only, .. } = arguments;
    if !tail_only && !cores_only {
        match fio::is_installed() {
            true => over_file(&arguments)?,
            false => println!("{}", fio::SKIPPED),
        }
    }
    if !tail_only && !file_only {
        on_cores(&arguments)?;
    }
    // Last, because it moves this process to one CPU.
    let allowed = cpus::allowed();
    if let ([first, second, ..], false) = (&allowed[..], file_only || cores_only) {
        let same = arguments.common.drive.cpu.unwrap_or(*first);
        let other = if same == *first { *second } else { *first };
        for free in [true, false] {
            tail(&arguments, free, same, other)?;
        }
    }
    Ok(())
}

/// Returns an execution of the count kernel (i32) over `sources` on `cores` cores of the drive.
fn count(sources: &[SourceData], cores: u16) -> Execution {
    // Element type i32, equal to, six zeros, the value.
    let mut parameters = vec![1, 0, 0, 0, 0, 0, 0, 0];
    parameters.extend_from_slice(&7u64.to_le_bytes());
    let sources = sources.iter().map(|data| (*data).into()).collect();
    Execution {
        program: csd_kernels::count::PROGRAM_ID,
        output: Output::Completion,
        sources,
        inline: vec![],
        digests: None,
        parameters,
        serial: false,
        cores,
    }
}

/// Measures read latency with a program running and without. Client and drive run on the CPU
/// `same`; the program has the CPU `other` if it has a `free` one.
fn tail(arguments: &Arguments, free: bool, same: usize, other: usize) -> Result<(), Error> {
    let options = Options { spin_us: 0, cpu: Some(same), ..arguments.common.drive.clone() };
    let server = program::drive(&options)?;
    let target = Target::started(server.address);
    let blocks = u64::from(FILLED_BYTES) / BLOCK_BYTES as u64;
    fill(&target, blocks, &Stop::default())?;
    let reader = RefCell::new(Single::connect(&target)?);
    let mut runner = Single::connect(&target)?;
    let whole = SourceData::Blocks { nsid: 1, slba: 0, skip: 0, bytes: FILLED_BYTES };
    // The compute thread starts with its first execution.
    let program = count(&[whole; 4], 1);
    runner.execute(&program)?;
    server.place("-comp", &[if free { other } else { same }])?;
    cpus::pin(None, &[same]).map_err(Error::system("cannot pin this process"))?;
    let (running, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let window = Duration::from_millis(arguments.window_ms);
    let measure = || percentiles(&mut reader.borrow_mut(), blocks, window);
    let beside = || {
        running.store(true, Relaxed);
        std::thread::sleep(SETTLE);
        let with = measure();
        running.store(false, Relaxed);
        // Let the execution under way end.
        std::thread::sleep(Duration::from_secs(1));
        with
    };
    let mut frame = Frame::new(arguments.pairs, 1, &Stop::default(), &|_| ())?;
    let pairs = std::thread::scope(|scope| {
        let ended = &ended;
        let (running, mut runner) = (&running, runner);
        scope.spawn(move || {
            while !ended.load(Relaxed) {
                if running.load(Relaxed) {
                    runner.execute(&program).expect("the drive executes it");
                } else {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        let pairs = frame.compare("reads", measure, beside);
        ended.store(true, Relaxed);
        pairs
    })?;
    let name = if free { "with a free core" } else { "without a free core" };
    for (which, percent) in [(0, "p50"), (1, "p99")] {
        let us: Vec<(f64, f64)> =
            pairs.iter().map(|(without, with)| (without[which], with[which])).collect();
        let text = format!("4 KiB read {percent}, {name}");
        tell(arguments, &text, ("alone us", "beside us"), &us)?;
    }
    Ok(())
}

/// Returns the 50th and 99th percentile of read latency over a window, us.
fn percentiles(reader: &mut Single, blocks: u64, window: Duration) -> Result<[f64; 2], Error> {
    let all = reader.read_for(window, blocks)?;
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    Ok([50, 99].map(|percent| all[(all.len() - 1) * percent / 100] as f64 / 1000.0))
}

/// Compares a kernel over a file in the drive with fio reading the file.
fn over_file(arguments: &Arguments) -> Result<(), Error> {
    std::fs::create_dir_all(&arguments.dir).expect("a folder for the file");
    let path = arguments.dir.join("drive.img");
    let size_bytes = arguments.common.drive.size_bytes.max(FILE_BYTES);
    let options = Options { size_bytes, ..arguments.common.drive.clone() };
    let namespace = fio::prepare(&path, &options)?;
    let options = Options { media: Some(path.clone()), ..options };
    let run_bytes = (arguments.run_mib << 20).min(namespace.bytes) / EXECUTION_BYTES;
    let run_bytes = run_bytes.max(1) * EXECUTION_BYTES;
    let mut frame = Frame::new(arguments.pairs.max(10), 1, &Stop::default(), &|_| ())?;
    let fio = || read_by_fio(arguments, &path, namespace.offset, run_bytes);
    let kernel = arguments.kernel;
    let pairs = frame.compare(kernel.name(), fio, || worked(&options, kernel, run_bytes))?;
    let what = format!("{} of a file", kernel.name());
    tell(arguments, &what, ("fio GB/s", "drive GB/s"), &pairs)?;
    std::fs::remove_file(path).expect("the file was ours");
    Ok(())
}

/// Reads bytes of the file by fio and returns the rate, GB/s.
#[allow(clippy::cast_precision_loss)] // bytes of a file
fn read_by_fio(arguments: &Arguments, path: &Path, offset: u64, bytes: u64) -> Result<f64, Error> {
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
    Ok(fio::run("read", count, &more)?.per_s() * block_bytes as f64 / 1e9)
}

/// Runs a kernel over `bytes` of the file in one run of a drive and returns the rate, GB/s.
fn worked(options: &Options, kernel: Kernel, bytes: u64) -> Result<f64, Error> {
    let server = program::drive(options)?;
    // On any CPU, as fio is.
    server.place("", &cpus::allowed())?;
    let mut runner = Single::connect(&Target::started(server.address))?;
    let start = Instant::now();
    for at in (0..bytes).step_by(usize::try_from(EXECUTION_BYTES).expect("64 bits")) {
        let length = u32::try_from(EXECUTION_BYTES).expect("256 MiB");
        let slba = at / BLOCK_BYTES as u64;
        let blocks = SourceData::Blocks { nsid: 1, slba, skip: 0, bytes: length };
        runner.execute(&kernel.execution(blocks))?;
    }
    Ok(timing::gb_per_s(bytes, start.elapsed()))
}

/// Compares one execution on all cores with the same on one. The drive has as many cores as this
/// machine.
fn on_cores(arguments: &Arguments) -> Result<(), Error> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let Some(cores) = u16::try_from(cores).ok().filter(|cores| *cores > 1) else {
        println!("SKIPPED: cores: this machine has one");
        return Ok(());
    };
    let options = Options { cores: cores.into(), ..arguments.common.drive.clone() };
    let server = program::drive(&options)?;
    server.place("", &cpus::allowed())?;
    let target = Target::started(server.address);
    let runner = RefCell::new(Single::connect(&target)?);
    fill(&target, u64::from(FILLED_BYTES) / BLOCK_BYTES as u64, &Stop::default())?;
    let sources = [SourceData::Blocks { nsid: 1, slba: 0, skip: 0, bytes: FILLED_BYTES }; 4];
    let rate = |cores| {
        let start = Instant::now();
        for _ in 0..4 {
            runner.borrow_mut().execute(&count(&sources, cores))?;
        }
        Ok(timing::gb_per_s(u64::from(FILLED_BYTES) * 16, start.elapsed()))
    };
    // The compute threads start with their first execution.
    rate(cores)?;
    let mut frame = Frame::new(arguments.pairs.max(10), 1, &Stop::default(), &|_| ())?;
    let pairs = frame.compare("cores", || rate(1), || rate(cores))?;
    let all = format!("{cores} cores GB/s");
    tell(arguments, "count on all cores", ("1 core GB/s", &all), &pairs)
}

/// Prints one row: both sides' medians, and quartiles of the ratios, second over first.
fn tell(
    arguments: &Arguments,
    name: &str,
    sides: (&str, &str),
    pairs: &[(f64, f64)],
) -> Result<(), Error> {
    let compared = Comparison::of(pairs)?;
    let Comparison { first, second, ratio } = compared;
    let text = compared.ratio_text();
    println!("{name:36} {} {first:>8.2}  {} {second:>8.2}  {text}", sides.0, sides.1);
    arguments.common.record.open()?.append(json!({
        "workload": name,
        sides.0: first,
        sides.1: second,
        "ratio_quartiles": ratio,
        "inconclusive": compared.is_inconclusive(),
    }))
}
