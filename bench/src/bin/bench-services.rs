//! Measures puts and gets next to the services of a drive: median and 99th percentile of the
//! latency while a service works, over those while it does not.
//!
//! Scrub and checkpoints are paused and resumed on one drive, in a random order in each round. The
//! drive that counts chunks is compared with this one, which counts nothing and has room for
//! everything that is written. The one that is 80 % full, so that cleaning moves values, is
//! compared with one of the same size that is 20 % full, where it finds segments with hardly any:
//! both were overwritten until all of their media was used. The media are in files; client and
//! drive share all CPUs, and with one operation in flight they work in turns, so that one CPU is
//! free.
//!
//! The floors are the same kind of work in another process ([`csd_bench::other_work`]): hashing on
//! idle time, reads of the drive's medium, with and without the scrub's rate, and reads and synced
//! writes of another file, as many bytes a second as cleaning moved.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use csd_bench::frame::Stop;
use csd_bench::load::{Loader, Operation};
use csd_bench::other_work::{OtherWork, WINDOW_BYTES};
use csd_bench::program::{self, Common};
use csd_bench::record::{self, Record};
use csd_bench::report::quartiles;
use csd_bench::serve::{Options, Server};
use csd_bench::{Error, random, service};
use csd_nvme::kv::Key;
use csd_nvme::vendor::services::Setting;
use serde_json::json;

/// Measures puts and gets next to the services of a drive
#[derive(Parser)]
struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Operations in flight
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4])]
    depth: Vec<u16>,
    /// Operations of a window
    #[arg(long, default_value_t = 4000)]
    operations: usize,
    /// Length of a value, bytes
    #[arg(long, default_value_t = 16 << 10)]
    value: u32,
    /// Length of a chunk that is counted, bytes
    #[arg(long, default_value_t = 128)]
    chunk: u32,
    /// Only the comparisons whose names begin with one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Folder for the media; it must not exist
    #[arg(long, default_value = "build/bench-services")]
    dir: PathBuf,
    #[command(flatten)]
    common: Common,
}

/// Part of the drive that is full while it is cleaned.
const FULL: f64 = 0.8;
/// Part of the drive that is full where cleaning has little to move.
const ROOMY: f64 = 0.2;
/// Number of times for which all space of these two is written before they are compared.
const OVERWRITTEN: u64 = 2;
/// Values that show how many bytes one takes.
const SAMPLE: u32 = 64;
/// Comparisons of a run.
const CASES: usize = 9;
/// Rate of a drive's scrub unless it is changed.
const SCRUB_BYTES_PER_S: u64 = 20 << 20;
/// Time without CPU time of a drive after which it has counted everything.
const QUIET: Duration = Duration::from_millis(60);

/// A drive with its values.
struct Loaded {
    loader: Loader,
    /// Stores values next to gets.
    writer: Loader,
    keys: Arc<Vec<Key>>,
    drive: Server,
}

/// A comparison: the drives with and without some work.
struct Case<'a> {
    name: &'static str,
    on: &'a Loaded,
    off: &'a Loaded,
    work: Work,
    /// True if gets are measured, too.
    both: bool,
}

/// Work next to the operations.
enum Work {
    /// A service that only one of the drives has.
    Service(&'static str),
    /// A service that is resumed, and paused again.
    Resumed(&'static str),
    /// A process that hashes.
    Hash,
    /// Reads of the drive's medium, so many windows a second if that is limited.
    Read(Option<u32>),
    /// Reads and writes of another file, so many bytes a second for each number in flight.
    Rewrite(Vec<f64>),
}

impl Work {
    /// Returns true if the service moves values, which it does only while some are stored.
    fn is_cleaning(&self) -> bool {
        self.service() == Some("clean")
    }

    /// Returns the service; `None` if it is no service's work.
    fn service(&self) -> Option<&'static str> {
        match self {
            Self::Service(name) | Self::Resumed(name) => Some(name),
            Self::Hash | Self::Read(_) | Self::Rewrite(_) => None,
        }
    }
}

/// Ratio of a median and of a 99th percentile, and these with the service at work, us.
type Window = [f64; 4];

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    println!("{}, {} rounds", record::machine(), arguments.rounds);
    program::in_new_folder(&arguments.dir, || measure(&arguments))
}

fn measure(arguments: &Arguments) -> Result<(), Error> {
    let mut record = arguments.common.record.open()?;
    let size = arguments.common.drive.size_bytes;
    let worn = |name, part| {
        let started = start(arguments, name, size, None)?;
        let count = count(&started, arguments, part)?;
        let loaded = fill(started, arguments, count)?;
        overwrite(&loaded, arguments, OVERWRITTEN * size)?;
        Ok::<_, Error>((loaded, count))
    };
    let (roomy, _) = worn("roomy", ROOMY)?;
    let (full, count) = worn("full", FULL)?;
    // Every put of every window, and those before it; a quarter more, as shards differ.
    let windows = 2 * CASES * arguments.rounds * arguments.depth.len();
    let puts = windows * (arguments.operations + arguments.operations / 10) + count as usize;
    let room = size + (puts * (arguments.value as usize + 4096)) as u64 / 4 * 5;
    let plain = fill(start(arguments, "plain", room, None)?, arguments, count)?;
    let counts = start(arguments, "counts", room, Some(arguments.chunk))?;
    let counts = fill(counts, arguments, count)?;
    counts.drive.until_quiet(QUIET)?;
    let only = &arguments.only;
    let mut compare = |name: &'static str, on, work: Work, both| {
        if !only.is_empty() && !only.iter().any(|begin| name.starts_with(begin)) {
            return Ok(Vec::new());
        }
        let is_worn = work.is_cleaning() || matches!(work, Work::Rewrite(_));
        let off = if is_worn { &roomy } else { &plain };
        let case = Case { name, on, off, work, both };
        compare(arguments, &case, &mut record)
    };
    let rated = u32::try_from(SCRUB_BYTES_PER_S / WINDOW_BYTES).expect("a few");
    // Gets give it nothing to count.
    compare("dedup", &counts, Work::Service("dedup"), false)?;
    compare("floor: hash", &plain, Work::Hash, true)?;
    compare("checkpoint", &plain, Work::Resumed("checkpoint"), false)?;
    compare("scrub", &plain, Work::Resumed("scrub"), true)?;
    compare("floor: read", &plain, Work::Read(Some(rated)), true)?;
    service::set(&plain.drive, "scrub", Setting::Rate(None))?;
    compare("scrub without a limit", &plain, Work::Resumed("scrub"), true)?;
    compare("floor: read without a limit", &plain, Work::Read(None), true)?;
    let moved = compare("clean at 80 % full", &full, Work::Service("clean"), true)?;
    if !moved.is_empty() {
        compare("floor: read and write", &roomy, Work::Rewrite(moved), false)?;
    }
    Ok(())
}

/// Starts a drive on a new medium.
fn start(
    arguments: &Arguments,
    name: &str,
    size_bytes: u64,
    dedup: Option<u32>,
) -> Result<(Server, Loader), Error> {
    let drive = program::drive(&Options {
        media: Some(arguments.dir.join(name)),
        size_bytes: size_bytes.next_multiple_of(1 << 20),
        dedup,
        unpinned: true,
        spin_us: 0,
        ..arguments.common.drive.clone()
    })?;
    let loader = Loader::sharing(&drive, 1, &Stop::default())?;
    Ok((drive, loader))
}

/// Returns the number of values that fill this part of a drive.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn count(
    (drive, loader): &(Server, Loader),
    arguments: &Arguments,
    part: f64,
) -> Result<u32, Error> {
    loader.fill(SAMPLE, arguments.value)?;
    let info = Loader::sharing(drive, 1, &Stop::default())?.info().clone();
    let of_value = info.used_bytes as f64 / f64::from(SAMPLE);
    Ok((part * info.bytes as f64 / of_value) as u32)
}

/// Stores so many values.
fn fill(
    (drive, loader): (Server, Loader),
    arguments: &Arguments,
    count: u32,
) -> Result<Loaded, Error> {
    let keys = loader.fill(count, arguments.value)?;
    let writer = Loader::sharing(&drive, 1, &Stop::default())?;
    Ok(Loaded { loader, writer, keys, drive })
}

/// Stores so many bytes again, to keys in a random order.
fn overwrite(loaded: &Loaded, arguments: &Arguments, bytes: u64) -> Result<(), Error> {
    let put = Operation::Put(Arc::new(random::bytes(arguments.value as usize, 1)));
    let mut keys = loaded.keys.to_vec();
    for _ in 0..bytes.div_ceil(keys.len() as u64 * u64::from(arguments.value)) {
        random::shuffle(&mut keys);
        loaded.loader.run(&put, &Arc::new(keys.clone()), keys.len(), 16)?;
    }
    Ok(())
}

/// Compares puts and gets at each number in flight. Returns the bytes a second that the service has
/// read, moved or written next to puts, for each number.
#[allow(clippy::cast_precision_loss)] // bytes of a report
fn compare(arguments: &Arguments, case: &Case<'_>, record: &mut Record) -> Result<Vec<f64>, Error> {
    let put = Operation::Put(Arc::new(random::bytes(arguments.value as usize, 1)));
    let get = Operation::Get(Some(arguments.value.into()));
    let mut rates = Vec::new();
    for (what, operation) in
        [("put", put), ("get", get)].into_iter().take(1 + usize::from(case.both))
    {
        for (number, depth) in arguments.depth.iter().enumerate() {
            let mut windows: Vec<Window> = Vec::new();
            let mut on_for = Duration::ZERO;
            let before = done(case)?;
            for _ in 0..arguments.rounds {
                let mut sides = [true, false];
                random::shuffle(&mut sides);
                let mut found = [[0.0; 2]; 2];
                for on in sides {
                    let began = Instant::now();
                    found[usize::from(on)] = window(arguments, case, on, &operation, number)?;
                    on_for += if on { began.elapsed() } else { Duration::ZERO };
                }
                let [off, on] = found;
                windows.push([on[0] / off[0], on[1] / off[1], on[0], on[1]]);
            }
            let after = done(case)?;
            let steps = after[0] - before[0];
            let bytes_per_s = (after[1] - before[1]) as f64 / on_for.as_secs_f64();
            report(case.name, (what, *depth), (steps, bytes_per_s), &windows, record)?;
            if what == "put" {
                rates.push(bytes_per_s);
            }
        }
    }
    Ok(rates)
}

/// Returns the steps that the case's service has done, and their bytes.
fn done(case: &Case<'_>) -> Result<[u64; 2], Error> {
    let Some(name) = case.work.service() else { return Ok([0; 2]) };
    let services = service::all(&case.on.drive)?;
    let entry = services.entries.iter().find(|entry| entry.name_text() == name);
    Ok(entry.map_or([0; 2], |entry| [entry.steps(), entry.bytes()]))
}

/// Executes the operation for a window, and returns median and 99th percentile in us. Afterwards
/// the service is paused, so that the next window without it has none of its work.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn window(
    arguments: &Arguments,
    case: &Case<'_>,
    on: bool,
    operation: &Operation,
    number: usize,
) -> Result<[f64; 2], Error> {
    let depth = arguments.depth[number];
    let side = if on { case.on } else { case.off };
    let mut other = None;
    match &case.work {
        Work::Resumed(name) => {
            let setting = if on { Setting::Resume } else { Setting::Pause };
            service::set(&side.drive, name, setting)?;
        }
        Work::Hash if on => other = Some(OtherWork::hash()?),
        Work::Read(rate) if on => {
            other = Some(OtherWork::read(&arguments.dir.join("plain"), *rate)?);
        }
        Work::Rewrite(rates) if on => {
            let windows_per_s = (rates[number] / WINDOW_BYTES as f64).ceil() as u32;
            let path = arguments.dir.join("full");
            other = Some(OtherWork::rewrite(&path, windows_per_s.max(1))?);
        }
        Work::Service(_) | Work::Hash | Work::Read(_) | Work::Rewrite(_) => {}
    }
    // Other keys in each window.
    let mut keys = side.keys.to_vec();
    random::shuffle(&mut keys);
    let keys = Arc::new(keys);
    let run = || {
        side.loader.run(operation, &keys, arguments.operations / 10, depth)?;
        side.loader.run(operation, &keys, arguments.operations, depth)
    };
    let ran = match operation {
        Operation::Get(_) if case.work.is_cleaning() => next_to_puts(side, arguments, run)?,
        _ => run()?,
    };
    if let Work::Resumed(name) = case.work {
        service::set(&side.drive, name, Setting::Pause)?;
    }
    other.map_or(Ok(()), OtherWork::end)?;
    let us = |quantile| ran.latencies.value_at_quantile(quantile) as f64 / 1e3;
    Ok([us(0.5), us(0.99)])
}

/// Runs something while values are overwritten, one after the other.
fn next_to_puts<T>(
    side: &Loaded,
    arguments: &Arguments,
    run: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    const PUTS: usize = 50;
    let put = Operation::Put(Arc::new(random::bytes(arguments.value as usize, 1)));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut keys = side.keys.to_vec();
            random::shuffle(&mut keys);
            for some in keys.chunks(PUTS).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                side.writer.run(&put, &Arc::new(some.to_vec()), some.len(), 1)?;
            }
            Ok(())
        });
        let ran = run();
        is_over.store(true, Ordering::Relaxed);
        writing.join().unwrap_or_else(|_| Err(Error::Server("the writer panicked".to_owned())))?;
        ran
    })
}

/// Prints and records quartiles of the ratios.
fn report(
    name: &str,
    (what, depth): (&str, u16),
    (steps, bytes_per_s): (u64, f64),
    windows: &[Window],
    record: &mut Record,
) -> Result<(), Error> {
    let of = |column: usize| quartiles(windows.iter().map(|window| window[column]).collect());
    let [p50, p99, p50_us, p99_us] = [of(0)?, of(1)?, of(2)?, of(3)?];
    println!(
        "{name:27} {what} {depth:3} in flight: p50 {:6.0} us, ratio {:.2} ({:.2}-{:.2}); p99 \
         {:6.0} us, ratio {:.2} ({:.2}-{:.2}); {steps} steps, {:.0} MB/s",
        p50_us[1],
        p50[1],
        p50[0],
        p50[2],
        p99_us[1],
        p99[1],
        p99[0],
        p99[2],
        bytes_per_s / 1e6
    );
    record.append(json!({
        "bench": "services",
        "service": name,
        "operation": what,
        "depth": depth,
        "p50_us": p50_us[1],
        "p50_over_without": p50,
        "p99_us": p99_us[1],
        "p99_over_without": p99,
        "steps": steps,
        "bytes_per_s": bytes_per_s,
    }))
}
