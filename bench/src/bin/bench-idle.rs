//! Measures CPU time of an idle drive: without connections, with silent ones, and with Keep Alives.
//!
//! Each host of a drive on memory media has an admin queue and an I/O queue and has read once.
//! Windows without hosts, with silent hosts, and with hosts that send Keep Alives as often as Linux
//! does alternate. Aim: under 1 % of a core with 64 connections.

use std::time::{Duration, Instant};

use clap::Parser;
use csd_bench::program::{self, Common};
use csd_bench::serve::Options;
use csd_bench::wire::{Single, Target};
use csd_bench::{Error, record, report};
use serde_json::json;

/// Aim: most CPU time, in percent of one core.
const AIM_PERCENT: f64 = 1.0;

/// Interval of Keep Alives: half of the Keep Alive Timeout that Linux hosts request.
const KEEP_ALIVE_EVERY: Duration = Duration::from_millis(2500);

/// Measures CPU time of an idle drive.
#[derive(Parser)]
struct Arguments {
    /// Number of connections; a host has two.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Number of rounds of windows.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Length of a window in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    #[command(flatten)]
    common: Common,
}

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    let (hosts, window) = (arguments.connections / 2, Duration::from_secs(arguments.seconds));
    let (pairs, spin_us) = (arguments.pairs, arguments.common.drive.spin_us);
    println!("{}, {pairs} rounds of {window:?}, spin {spin_us} us", record::machine());
    let mut rounds = [const { Vec::new() }; 3];
    for _ in 0..pairs {
        for (times, (hosts, alive)) in
            rounds.iter_mut().zip([(0, false), (hosts, false), (hosts, true)])
        {
            times.push(percent(&arguments.common.drive, hosts, alive, window)?);
        }
    }
    let [none, silent, alive] = rounds;
    let [none, silent, alive] =
        [report::quartiles(none)?, report::quartiles(silent)?, report::quartiles(alive)?];
    println!("percent of a core: {:.4} without connections", none[1]);
    println!(
        "{} silent connections: {:.4} ({:.4}-{:.4})",
        hosts * 2,
        silent[1],
        silent[0],
        silent[2]
    );
    let verdict = if alive[1] < AIM_PERCENT { "met" } else { "MISSED" };
    println!(
        "{} connections, Keep Alive every {KEEP_ALIVE_EVERY:?}: {:.4} ({:.4}-{:.4}); aim under \
         {AIM_PERCENT}: {verdict}",
        hosts * 2,
        alive[1],
        alive[0],
        alive[2]
    );
    arguments.common.record.open()?.append(json!({
        "workload": "idle",
        "connections": hosts * 2,
        "percent_of_core_quartiles": {"none": none, "silent": silent, "keep_alive": alive},
    }))
}

/// Returns the CPU time of a drive with `hosts` idle hosts, in percent of one core.
#[allow(clippy::cast_precision_loss)] // nanoseconds of seconds
fn percent(options: &Options, count: usize, alive: bool, window: Duration) -> Result<f64, Error> {
    let server = program::drive(options)?;
    let target = Target::started(server.address);
    let mut hosts = Vec::new();
    for _ in 0..count {
        let mut host = Single::connect(&target)?;
        host.read_ns(0)?;
        hosts.push(host);
    }
    // Let the work of connecting end.
    std::thread::sleep(Duration::from_secs(1));
    let (began, before) = (Instant::now(), server.cpu_ns()?);
    assert!(before > 0, "a drive that started has used CPU time");
    if alive {
        let turn = KEEP_ALIVE_EVERY / u32::try_from(hosts.len().max(1)).expect("few hosts");
        for index in 0.. {
            let due = turn * index;
            if due >= window {
                break;
            }
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            hosts[index as usize % count].keep_alive()?;
        }
    }
    std::thread::sleep(window.saturating_sub(began.elapsed()));
    let used = server.cpu_ns()? - before;
    drop(hosts);
    Ok(used as f64 / began.elapsed().as_nanos() as f64 * 100.0)
}
