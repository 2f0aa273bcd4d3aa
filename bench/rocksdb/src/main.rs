//! Measures RocksDB and a drive with the same puts and gets: RocksDB behind the drive's own server
//! and in the measuring process, with values in its tree and in blob files.
//!
//! Both make a put durable before they answer, compress nothing and bypass the page cache (or both
//! use it, with `--buffered`). In each round every side takes its turn on new media. It needs
//! librocksdb 7.8 or later: on Debian `apt-get install librocksdb-dev`.

mod embedded;
mod library;
mod report;
mod served;
mod side;
mod store;
mod turn;
mod usage;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use csd_bench::program::{self, Common};
use csd_bench::{Error, random, record, serve};

use served::Served;
use side::SIDES;
use store::Store;
use turn::{Load, Turn};

/// Measures RocksDB and a drive with the same puts and gets.
#[derive(Parser)]
struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Folder for the media; it must not exist
    #[arg(long, default_value = "build/bench-rocksdb")]
    dir: PathBuf,
    /// Lengths of keys, bytes
    #[arg(long, default_value = "16", value_delimiter = ',', value_parser = parse_key)]
    key: Vec<usize>,
    /// Lengths of values, bytes
    #[arg(long, default_value = "4096,16384,65536,1048576", value_delimiter = ',')]
    value: Vec<usize>,
    /// Operations in flight
    #[arg(long, default_value = "1,8,32", value_delimiter = ',')]
    depth: Vec<u16>,
    /// Most operations of a phase; each phase has as many as there are keys
    #[arg(long, default_value_t = 20_000)]
    operations: usize,
    /// Most bytes of all values
    #[arg(long, default_value_t = 512 << 20)]
    bytes: usize,
    /// Threads that call RocksDB behind the server
    #[arg(long, default_value_t = 8)]
    store_threads: usize,
    /// Time that RocksDB's server polls before it sleeps, us; RocksDB's threads share its CPU
    #[arg(long, default_value_t = 0)]
    store_spin_us: u32,
    /// Write zeros to the drive's medium before it starts, as the space of a drive in use is
    /// written
    #[arg(long)]
    written: bool,
    /// More options of RocksDB, as its GetOptionsFromString takes them
    #[arg(long, default_value = "", hide_default_value = true)]
    rocksdb_options: String,
    #[command(flatten)]
    common: Common,
    /// Serve a database with these options and nothing else (used by the measurement itself)
    #[arg(long, hide = true)]
    serve_rocksdb: Option<String>,
}

fn parse_key(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes) if (4..=16).contains(&bytes) => Ok(bytes),
        _ => Err("a key has 4 to 16 bytes".to_owned()),
    }
}

impl Arguments {
    /// Returns the options of a database.
    fn options(&self, blobs: bool) -> String {
        store::options(blobs, self.common.drive.buffered, &self.rocksdb_options)
    }
}

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    if let Some(options) = &arguments.serve_rocksdb {
        let (dir, threads) = (&arguments.dir, arguments.store_threads);
        return serve::serve_store(&arguments.common.drive, || {
            Ok(Arc::new(Served::new(Store::create(dir, options)?, threads)))
        });
    }
    if arguments.common.served()? {
        return Ok(());
    }
    println!("{}", record::machine());
    for blobs in [false, true] {
        println!("RocksDB's options: {}", arguments.options(blobs));
    }
    program::in_new_folder(&arguments.dir, || measure(&arguments))
}

fn measure(arguments: &Arguments) -> Result<(), Error> {
    let mut record = arguments.common.record.open()?;
    for &key_bytes in &arguments.key {
        for &value_bytes in &arguments.value {
            for &depth in &arguments.depth {
                let keys = arguments.operations.min(arguments.bytes / value_bytes).max(1);
                let load = Load { keys, key_bytes, value_bytes, depth };
                let turns = rounds(arguments, load)?;
                report::print(load, &turns)?;
                report::append(arguments, load, &turns, &mut record)?;
            }
        }
    }
    Ok(())
}

/// Lets every side take its turn in each round, in a random order.
fn rounds(arguments: &Arguments, load: Load) -> Result<[Vec<Turn>; SIDES.len()], Error> {
    let mut found = [const { Vec::new() }; SIDES.len()];
    for _ in 0..arguments.rounds {
        let mut order: Vec<usize> = (0..SIDES.len()).collect();
        random::shuffle(&mut order);
        for at in order {
            found[at].push(turn::turn(SIDES[at], load, arguments)?);
        }
    }
    Ok(found)
}
