//! Tables and records of the comparison.

use csd_bench::Error;
use csd_bench::record::Record;
use csd_bench::report::{medians, quartiles};
use serde_json::{Value, json};

use crate::Arguments;
use crate::side::SIDES;
use crate::turn::{BYTE_FIGURES, Load, PHASE_FIGURES, PHASES, Turn};

/// Turns of each side, in order.
type Turns = [Vec<Turn>; SIDES.len()];

/// Prints medians of each side and phase, and quartiles of the drive's rate over the side's.
///
/// # Errors
/// Without turns.
pub fn print(load: Load, turns: &Turns) -> Result<(), Error> {
    let Load { keys, key_bytes, value_bytes, depth } = load;
    println!(
        "\n{keys} keys of {key_bytes} B, values of {value_bytes} B, {depth} in flight\n\
         {:9} {:28} {:>9} {:>9} {:>9} {:>10}  drive over it",
        "phase", "side", "a second", "p50 us", "p99 us", "CPU us"
    );
    for (phase, name) in PHASES.iter().enumerate() {
        for (side, own) in SIDES.iter().zip(turns) {
            let [rate, p50, p99, cpu] = medians(own.iter().map(|turn| turn.phases[phase]))?;
            let [low, ratio, high] = over(&turns[0], own, phase)?;
            println!(
                "{name:9} {:28} {rate:9.0} {p50:9.0} {p99:9.0} {cpu:10.1}  \
                 {ratio:.2} ({low:.2}-{high:.2})",
                side.name
            );
        }
    }
    println!(
        "{:38} {:>9} {:>9} {:>9}",
        "bytes for a byte put, or there", "written", "disk", "space"
    );
    for (side, own) in SIDES.iter().zip(turns) {
        let [written, disk, space] = medians(own.iter().map(|turn| turn.bytes))?;
        println!("{:38} {written:9.2} {disk:9.2} {space:9.2}", side.name);
    }
    Ok(())
}

/// Returns quartiles of the drive's rate over that of a side.
fn over(drive: &[Turn], side: &[Turn], phase: usize) -> Result<[f64; 3], Error> {
    let ratio = |(drive, side): (&Turn, &Turn)| drive.phases[phase][0] / side.phases[phase][0];
    quartiles(drive.iter().zip(side).map(ratio).collect())
}

/// Appends a line for each side.
///
/// # Errors
/// If the record cannot be written.
pub fn append(
    arguments: &Arguments,
    load: Load,
    turns: &Turns,
    record: &mut Record,
) -> Result<(), Error> {
    for (side, own) in SIDES.iter().zip(turns) {
        let mut line = json!({
            "bench": "rocksdb",
            "side": side.name,
            "options": side.blobs.map(|blobs| arguments.options(blobs)),
            "buffered": arguments.common.drive.buffered,
            "written": arguments.written,
            "keys": load.keys,
            "key_bytes": load.key_bytes,
            "value_bytes": load.value_bytes,
            "depth": load.depth,
        });
        for (phase, name) in PHASES.iter().enumerate() {
            let figures = medians(own.iter().map(|turn| turn.phases[phase]))?;
            let mut described: Value = PHASE_FIGURES.into_iter().zip(figures).collect();
            described["drive_over_it"] = over(&turns[0], own, phase)?.to_vec().into();
            line[*name] = described;
        }
        let figures = medians(own.iter().map(|turn| turn.bytes))?;
        for (name, figure) in BYTE_FIGURES.into_iter().zip(figures) {
            line[name] = figure.into();
        }
        record.append(line)?;
    }
    Ok(())
}
