//! `csd bench verify`: verify by pages of a unit, units and unrolling.

use std::time::Duration;

use csd_bench::cpus;
use csd_bench::record;
use csd_bench::verify::{self, Row, RtlRow, Settings};
use serde_json::{Value, json};

use super::{failure, keep, measured};
use crate::cli::bench::{Engine, Verify};
use crate::context::Context;
use crate::report::{Failure, Report};

/// Most bytes of a file, which is kept in memory.
const BYTES_MAX: u64 = 16 << 30;

/// Measures or computes, records and reports.
pub(super) fn verify(options: &Verify, context: &Context) -> Result<Report, Failure> {
    let record = options.record.open().map_err(failure)?;
    let sizes = sizes(&options.sizes)?;
    let (text, rows, scattered) = match options.engine {
        Engine::Rtl => {
            let rows = verify::rtl(&sizes);
            (rtl_text(&rows), rows.iter().map(RtlRow::describe).collect(), 0)
        }
        Engine::Cpu => {
            let cores = u16::try_from(cpus::allowed().len()).unwrap_or(u16::MAX).max(1);
            let cores = options.units.unwrap_or(cores);
            let settings = Settings {
                rounds: usize::try_from(options.rounds).map_err(Failure::usage)?,
                run: Duration::from_millis(options.run_ms),
                matrix: options.matrix,
                cores,
            };
            let rows = measured(context, move |stop, progress| {
                verify::measure(settings, &sizes, stop, progress)
            })?;
            let scattered = rows.iter().filter(|row| row.is_inconclusive()).count();
            (cpu_text(&rows), rows.iter().map(Row::describe).collect::<Vec<Value>>(), scattered)
        }
    };
    let machine = record::machine();
    let result = json!({ "machine": machine, "combinations": &rows });
    let mut report = Report::new(format!("{machine}\n{text}"), result);
    if scattered > 0 {
        report.warn(format!(
            "{scattered} combinations scatter by more than 15 %: measure more rounds, or when the \
             machine is less busy"
        ));
    }
    keep(record, rows, &mut report);
    Ok(report)
}

/// Checks the sizes of files.
fn sizes(given: &[u64]) -> Result<Vec<usize>, Failure> {
    let size = |bytes: &u64| match *bytes {
        1..=BYTES_MAX => usize::try_from(*bytes).map_err(Failure::usage),
        _ => Err(Failure::usage(format!("--sizes: {bytes} bytes; a file has 1 byte to 16G"))),
    };
    given.iter().map(size).collect()
}

fn size_text(bytes: usize) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

fn cpu_text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:>9} {:10} {:>6} {:>6} {:>7} {:>8} {:>17} {:>12} {:>9} {:>8}\n",
        "file",
        "way",
        "pages",
        "units",
        "unroll",
        "GB/s",
        "quartiles",
        "instructions",
        "parallel",
        "of best"
    );
    let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let gain =
        |gain: Option<[f64; 3]>| gain.map_or(String::new(), |gain| format!("{:.2}", gain[1]));
    for row in rows {
        let shown = row.describe();
        let of_plan = |key: &str| number(shown[key].as_u64());
        let [low, median, high] = row.rate.map(|rate| rate / 1e9);
        text += &format!(
            "{:>9} {:10} {:>6} {:>6} {:>7} {median:>8.2} {low:>8.2}-{high:<8.2} \
             {:>12} {:>9} {:>8}\n",
            size_text(row.bytes),
            shown["way"].as_str().unwrap_or_default(),
            of_plan("pages_per_unit"),
            of_plan("units"),
            of_plan("unroll"),
            gain(row.instruction_gain),
            gain(row.parallel_gain),
            gain(row.of_best),
        );
    }
    text
}

fn rtl_text(rows: &[RtlRow]) -> String {
    let mut text = format!(
        "{:>9} {:>9} {:>12} {:>14} {:>12} {:>9}\n",
        "file", "AP x MCU", "bits a step", "cycles", "ms, 300 MHz", "speed-up"
    );
    for row in rows {
        text += &format!(
            "{:>9} {:>9} {:>12} {:>14} {:>12.3} {:>9.1}\n",
            size_text(row.bytes),
            format!("{}x{}", row.circuit.pages, row.circuit.units),
            row.circuit.lane_bits,
            row.cycles,
            row.seconds() * 1e3,
            row.speed_up,
        );
    }
    text
}
