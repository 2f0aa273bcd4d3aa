//! Measures what a drive gains and pays when values share chunks: puts of values half of whose
//! chunks are duplicates, to a drive that counts nothing, one that counts chunks, and one whose
//! values share them.
//!
//! In each round every case takes its turn on a new medium. Puts are measured, then the time until
//! the drive has done the work that it put off, then the space in use over that of the different
//! chunks alone, and gets of all values in another order.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use csd_bench::frame::Stop;
use csd_bench::load::{Loader, Operation};
use csd_bench::program::{self, Common};
use csd_bench::record::{self, Record};
use csd_bench::report::{medians, quartiles};
use csd_bench::serve::Options;
use csd_bench::{Error, random};
use serde_json::json;

/// Time without CPU time of the drive after which it has nothing left to do: longer than a pause
/// between two looks for something to share.
const QUIET: Duration = Duration::from_secs(3);

/// Measures drives whose values share chunks.
#[derive(Parser)]
struct Arguments {
    /// Number of rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Number of values.
    #[arg(long, default_value_t = 2000)]
    values: u32,
    /// Length of a value, bytes.
    #[arg(long, default_value_t = 64 << 10)]
    value: usize,
    /// Length of a chunk, bytes.
    #[arg(long, default_value_t = 4096)]
    chunk: u32,
    /// Values that have each of the chunks that are not in one value only.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(2..))]
    copies: u64,
    /// Puts and gets in flight.
    #[arg(long, default_value_t = 8)]
    depth: u16,
    /// Folder for the media; it must not exist. Without it they are in memory.
    #[arg(long)]
    dir: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Names of the cases, and whether each counts and shares.
const CASES: [(&str, bool, bool); 3] =
    [("plain", false, false), ("counts", true, false), ("shares", true, true)];

/// Values, and the bytes of their different chunks.
struct Values {
    values: Arc<Vec<Vec<u8>>>,
    different_bytes: u64,
}

/// Result of a turn: puts a second, seconds until the drive was quiet, bytes in use over those of
/// the different chunks, gets a second.
type Turn = [f64; 4];

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    let Arguments { values, value, chunk, copies, dir, .. } = &arguments;
    println!(
        "{}, {values} values of {value} B, chunks of {chunk} B, half of them duplicates of others \
         that {copies} values have",
        record::machine()
    );
    let Some(dir) = dir else { return measure(&arguments) };
    program::in_new_folder(dir, || measure(&arguments))
}

fn measure(arguments: &Arguments) -> Result<(), Error> {
    let values = values(arguments);
    let mut found = [const { Vec::new() }; CASES.len()];
    for _ in 0..arguments.rounds {
        let mut order: Vec<usize> = (0..CASES.len()).collect();
        random::shuffle(&mut order);
        for at in order {
            found[at].push(turn(arguments, CASES[at], &values)?);
        }
    }
    report(arguments, &found, &mut arguments.common.record.open()?)
}

/// Makes values of which half of the chunks are there once, and the others as often as asked for,
/// so that half of all are duplicates.
fn values(arguments: &Arguments) -> Values {
    let Arguments { values, value, chunk, copies, .. } = arguments;
    let of_value = value / *chunk as usize;
    let all = u64::from(*values) * of_value as u64;
    // Of `copies` equal chunks all but one are duplicates.
    let often = (all / 2 * copies / (copies - 1)).min(all);
    let mut numbers: Vec<u64> = (0..all)
        .map(|at| if at < often { at / copies } else { at - often + often.div_ceil(*copies) })
        .collect();
    let different = numbers.last().map_or(0, |last| last + 1);
    random::shuffle(&mut numbers);
    let value = |numbers: &[u64]| {
        numbers.iter().flat_map(|number| random::bytes(*chunk as usize, *number)).collect()
    };
    let values = numbers.chunks(of_value).map(value).collect();
    Values { values: Arc::new(values), different_bytes: different * u64::from(*chunk) }
}

/// Puts all values into a new drive, waits until it is quiet, and gets them.
#[allow(clippy::cast_precision_loss)] // counts of a report
fn turn(
    arguments: &Arguments,
    (name, counts, shares): (&str, bool, bool),
    values: &Values,
) -> Result<Turn, Error> {
    let bytes: u64 = values.values.iter().map(|value| value.len() as u64).sum();
    let media = arguments.dir.as_ref().map(|dir| dir.join(name));
    let base = arguments.common.drive.clone();
    let drive = program::drive(&Options {
        media: media.clone(),
        size_bytes: (base.size_bytes + 4 * bytes).next_multiple_of(1 << 20),
        dedup: counts.then_some(arguments.chunk),
        dedup_share: shares,
        ..base
    })?;
    let connect = || Loader::started(&drive, 1, &Stop::default());
    let loader = connect()?;
    let keys = Arc::new(loader.keys(arguments.values));
    let put = Operation::PutEach(Arc::clone(&values.values));
    let stored = loader.run(&put, &keys, keys.len(), arguments.depth)?;
    let quiet = drive.until_quiet(QUIET)?;
    let used = connect()?.info().used_bytes;
    let mut others = keys.to_vec();
    random::shuffle(&mut others);
    let get = Operation::Get(Some(arguments.value as u64));
    let fetched = loader.run(&get, &Arc::new(others), keys.len(), arguments.depth)?;
    drop((loader, drive));
    if let Some(media) = media {
        std::fs::remove_file(&media).map_err(Error::at(&media))?;
    }
    let per_s = |elapsed: Duration| keys.len() as f64 / elapsed.as_secs_f64();
    let over = used as f64 / values.different_bytes as f64;
    Ok([per_s(stored.elapsed), quiet.as_secs_f64(), over, per_s(fetched.elapsed)])
}

/// Prints and records medians of each case, and ratios to the drive that counts nothing.
fn report(
    arguments: &Arguments,
    found: &[Vec<Turn>; CASES.len()],
    record: &mut Record,
) -> Result<(), Error> {
    for ((name, ..), turns) in CASES.iter().zip(found) {
        let [puts_per_s, quiet_s, over, gets_per_s] = medians(turns.iter().copied())?;
        let ratio = |column: usize| {
            let ratios =
                turns.iter().zip(&found[0]).map(|(own, plain)| own[column] / plain[column]);
            quartiles(ratios.collect())
        };
        let (puts, gets) = (ratio(0)?, ratio(3)?);
        println!(
            "{name:6} {puts_per_s:6.0} puts/s ({:.2}, {:.2}-{:.2}), quiet after {quiet_s:5.2} s, \
             {over:.3} of the different bytes, {gets_per_s:6.0} gets/s ({:.2}, {:.2}-{:.2})",
            puts[1], puts[0], puts[2], gets[1], gets[0], gets[2],
        );
        record.append(json!({
            "bench": "sharing",
            "case": name,
            "media": if arguments.dir.is_some() { "file" } else { "memory" },
            "values": arguments.values,
            "value_bytes": arguments.value,
            "chunk_bytes": arguments.chunk,
            "copies": arguments.copies,
            "puts_per_s": puts_per_s,
            "puts_over_plain": puts,
            "quiet_s": quiet_s,
            "used_over_different": over,
            "gets_per_s": gets_per_s,
            "gets_over_plain": gets,
        }))?;
    }
    Ok(())
}
