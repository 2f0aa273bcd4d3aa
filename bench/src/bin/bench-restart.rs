//! Measures the CPU time of a drive's start after a kill: with the checkpoints of its log, and as a
//! walk over all records.
//!
//! A drive on a file is filled and killed. Copies of the file are opened in turns: one as it is,
//! and one whose checkpoints are all damaged, so that the start walks every segment's records. Both
//! starts must find every key. A file with an empty log shows the rest of a start.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use csd_bench::frame::Stop;
use csd_bench::load::{Loader, Operation};
use csd_bench::program::{self, Common};
use csd_bench::serve::{Options, Server};
use csd_bench::{Error, record, report};
use csd_client::Key;
use csd_kvlog::record::{KIND_CHECKPOINT, KIND_FINAL_CHECKPOINT};
use serde_json::json;

/// Aim: most CPU time of a start with checkpoints, as a share of one without.
const AIM: f64 = 0.25;
/// First bytes of a record's header, and the place of its kind.
const RECORD: (&[u8], usize) = (b"CREC", 24);
/// Records begin at multiples of this many bytes; a header has as many.
const HEADER_BYTES: usize = 64;

/// Measures the CPU time of a start after a kill.
#[derive(Parser)]
struct Arguments {
    /// Number of pairs of starts.
    #[arg(long, default_value_t = 7)]
    pairs: usize,
    /// Number of keys.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u32,
    /// Length of a value, bytes.
    #[arg(long, default_value_t = 100)]
    value_bytes: u32,
    /// Folder for three media; it must not exist.
    #[arg(long, default_value = "build/bench-restart")]
    dir: PathBuf,
    #[command(flatten)]
    common: Common,
}

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    program::in_new_folder(&arguments.dir, || measure(&arguments))
}

#[allow(clippy::cast_precision_loss)] // milliseconds of seconds
fn measure(arguments: &Arguments) -> Result<(), Error> {
    let Arguments { pairs, keys, value_bytes, dir, common } = arguments;
    println!("{}, {keys} values of {value_bytes} bytes", record::machine());
    let killed = Medium::new(dir.join("killed"), arguments);
    let empty = Medium::new(dir.join("empty"), arguments);
    drop(empty.start()?);
    let all = connect(&killed.start()?)?.fill(*keys, *value_bytes)?;
    let mut times = [const { Vec::new() }; 3];
    let mut damaged = 0;
    for _ in 0..*pairs {
        let walked = Medium::new(dir.join("walked"), arguments);
        std::fs::copy(&killed.path, &walked.path).map_err(Error::at(&walked.path))?;
        damaged = damage(&walked.path)?;
        sync(&walked.path)?;
        let started = Medium::new(dir.join("started"), arguments);
        std::fs::copy(&killed.path, &started.path).map_err(Error::at(&started.path))?;
        sync(&started.path)?;
        for (times, medium) in times.iter_mut().zip([&empty, &started, &walked]) {
            let server = medium.start()?;
            times.push(server.cpu_ns()? as f64 / 1e6);
            if medium.path != empty.path {
                check(&server, &all)?;
            }
        }
    }
    let shares = times[1].iter().zip(&times[2]).map(|(started, walked)| started / walked);
    let ratio = report::quartiles(shares.collect())?;
    let [empty, started, walked] = times;
    let [empty, started, walked] =
        [report::quartiles(empty)?, report::quartiles(started)?, report::quartiles(walked)?];
    let verdict = if ratio[1] <= AIM { "met" } else { "MISSED" };
    println!("an empty log: {:.0} ms of CPU", empty[1]);
    println!("with checkpoints: {:.0} ms ({:.0}-{:.0})", started[1], started[0], started[2]);
    println!(
        "walking ({damaged} checkpoints damaged): {:.0} ms ({:.0}-{:.0}); ratio {:.3} \
         ({:.3}-{:.3}), aim at most {AIM}: {verdict}",
        walked[1], walked[0], walked[2], ratio[1], ratio[0], ratio[2]
    );
    common.record.open()?.append(json!({
        "workload": "start after a kill",
        "keys": keys,
        "value_bytes": value_bytes,
        "damaged_checkpoints": damaged,
        "cpu_ms_quartiles": { "empty": empty, "checkpoints": started, "walk": walked },
        "ratio_quartiles": ratio,
    }))
}

/// A drive's medium.
struct Medium {
    path: PathBuf,
    options: Options,
}

impl Medium {
    fn new(path: PathBuf, arguments: &Arguments) -> Self {
        // Half of a medium is for values; each has a header, an entry in a checkpoint, and padding.
        let value = u64::from(arguments.value_bytes).next_multiple_of(64) + 192;
        let all = (u64::from(arguments.keys) * value * 2).next_multiple_of(1 << 20);
        let size_bytes = (512 << 20) + all;
        let options =
            Options { media: Some(path.clone()), size_bytes, ..arguments.common.drive.clone() };
        Self { path, options }
    }

    fn start(&self) -> Result<Server, Error> {
        program::drive(&self.options)
    }
}

/// Connects to a drive that was started.
fn connect(server: &Server) -> Result<Loader, Error> {
    Loader::started(server, 1, &Stop::default())
}

/// Reads some of the values back.
fn check(server: &Server, keys: &Arc<Vec<Key>>) -> Result<(), Error> {
    let some = keys.iter().step_by(1 + keys.len() / 1000).copied();
    let some = Arc::new(some.collect::<Vec<_>>());
    connect(server)?.run(&Operation::Get(None), &some, some.len(), 8).map(drop)
}

/// Flips a byte in the list of every checkpoint. Returns their number.
fn damage(path: &Path) -> Result<u32, Error> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(Error::at(path))?;
    let (mut count, mut at, mut piece) = (0, 0, vec![0; 1 << 20]);
    loop {
        let read = file.read_at(&mut piece, at).map_err(Error::at(path))?;
        if read == 0 {
            return Ok(count);
        }
        for (index, header) in piece[..read].chunks_exact(HEADER_BYTES).enumerate() {
            let is_one = [KIND_CHECKPOINT, KIND_FINAL_CHECKPOINT].contains(&header[RECORD.1]);
            if header.starts_with(RECORD.0) && is_one {
                let list = at + ((index + 1) * HEADER_BYTES) as u64;
                let mut byte = [0];
                file.read_exact_at(&mut byte, list).map_err(Error::at(path))?;
                file.write_all_at(&[!byte[0]], list).map_err(Error::at(path))?;
                count += 1;
            }
        }
        at += read as u64;
    }
}

/// Writes a copy from the page cache to the disk, so that the drive's syncs need not.
fn sync(path: &Path) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).open(path).map_err(Error::at(path))?;
    file.sync_all().map_err(Error::at(path))
}
