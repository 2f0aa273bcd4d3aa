//! Compares block I/O of a drive on a file with fio on the same file, at the same offsets in the
//! same order.
//!
//! fio (io_uring, direct) replays the client's list of offsets, shifted by the offset of the block
//! namespace in the file, so both access the same bytes and extents. The whole namespace is first
//! written with random data. A file with holes or unwritten extents is refused, because reading
//! those does not access the disk. Runs of drive and fio alternate; a figure is the median of the
//! pairs' ratios. `bench/README.md` estimates the expected ratios.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Parser;
use csd_bench::client::{self, Client};
use csd_bench::frame::{Frame, Stop};
use csd_bench::program::{self, Common};
use csd_bench::report::{Describe, Row, Run};
use csd_bench::serve::Options;
use csd_bench::wire::Target;
use csd_bench::workload::{BLOCK_BYTES, Workload};
use csd_bench::{Error, fio, record};

/// Compares block I/O of a drive on a file with fio on the same file.
#[derive(Parser)]
struct Arguments {
    /// Number of pairs of runs for each workload.
    #[arg(long, default_value_t = 10)]
    pairs: usize,
    /// Bytes that one run moves, in MiB, at 4 KiB; four times as many at 128 KiB.
    #[arg(long, default_value_t = 256)]
    run_mib: u64,
    /// Folder for the measured file and fio's lists.
    #[arg(long, default_value = "build/bench")]
    dir: PathBuf,
    /// Keep the file afterwards.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    common: Common,
}

/// Least size of the file, bytes.
const FILE_BYTES: u64 = 2 << 30;

const fn workload(name: &'static str, read: bool, bytes: usize, in_order: bool) -> Workload {
    Workload { name, read, bytes, depth: 32, in_order, blocks: 0 }
}

const WORKLOADS: [Workload; 4] = [
    workload("4 KiB random read, depth 32", true, 4096, false),
    workload("4 KiB random write, depth 32", false, 4096, false),
    workload("128 KiB read in order, depth 32", true, 128 << 10, true),
    workload("128 KiB write in order, depth 32", false, 128 << 10, true),
];

fn main() -> Result<(), Error> {
    let mut arguments = Arguments::parse();
    if arguments.common.served()? {
        return Ok(());
    }
    if !fio::is_installed() {
        println!("{}", fio::SKIPPED);
        return Ok(());
    }
    std::fs::create_dir_all(&arguments.dir).expect("a folder for the file");
    arguments.common.drive.size_bytes = arguments.common.drive.size_bytes.max(FILE_BYTES);
    let path = arguments.dir.join("drive.img");
    let namespace = fio::prepare(&path, &arguments.common.drive)?;
    arguments.common.drive.media = Some(path.clone());
    println!("{}, {} pairs", record::machine(), arguments.pairs);
    println!("{}", Row::head_of("fio"));
    let mut record = arguments.common.record.open()?;
    let mut frame = Frame::new(arguments.pairs, WORKLOADS.len(), &Stop::default(), &|_| ())?;
    for workload in WORKLOADS {
        let workload = Workload { blocks: namespace.bytes / BLOCK_BYTES as u64, ..workload };
        let more = if workload.bytes > BLOCK_BYTES { 4 } else { 1 };
        let count = (arguments.run_mib << 20) * more / workload.bytes as u64;
        let list = arguments.dir.join("offsets.log");
        write_list(&list, &path, workload, namespace.offset, count);
        let fio = || replay(&list, workload, count);
        let drive = || drive(&arguments.common.drive, workload, count);
        let row = Row::of(workload.name, &frame.compare(workload.name, fio, drive)?)?;
        println!("{row}");
        record.append(row.recorded("fio on the same file is the floor"))?;
    }
    if !arguments.keep {
        std::fs::remove_file(path).expect("the file was ours");
    }
    Ok(())
}

/// Writes the offsets of `count` operations as an iolog of fio.
fn write_list(list: &Path, file: &Path, workload: Workload, offset: u64, count: u64) {
    let mut out = BufWriter::new(File::create(list).expect("a place for the list"));
    let file = file.display();
    let what = if workload.read { "read" } else { "write" };
    writeln!(out, "fio version 2 iolog\n{file} add\n{file} open").expect("room");
    let count = usize::try_from(count).expect("few operations");
    for at in workload.offsets().take(count) {
        writeln!(out, "{file} {what} {} {}", offset + at, workload.bytes).expect("room");
    }
    writeln!(out, "{file} close").expect("room");
    out.flush().expect("room");
}

/// Runs fio over the list once.
fn replay(list: &Path, workload: Workload, count: u64) -> Result<Run, Error> {
    let depth = format!("--iodepth={}", workload.depth);
    let replayed = format!("--read_iolog={}", list.display());
    fio::run(if workload.read { "read" } else { "write" }, count, &[depth, replayed])
}

/// Runs the workload against a drive once.
fn drive(options: &Options, workload: Workload, count: u64) -> Result<Run, Error> {
    let server = program::drive(options)?;
    let drive = client::Server::Drive(Target::started(server.address));
    let mut client = Client::connect(&drive, workload, &Stop::default())?;
    let cpu = server.cpu_us();
    let elapsed = client.run_count(count)?;
    Ok(Run::new(count, elapsed, Some(server.cpu_us() - cpu)))
}
