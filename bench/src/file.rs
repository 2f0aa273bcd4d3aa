//! The file that a drive and fio read in turns, and runs of fio.
//!
//! The block namespace is first written with random data. A file with holes or unwritten extents is
//! refused, because reading those does not access the disk.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use csd_kvlog::format::Superblock;

use csd_bench::report::Run;
use csd_bench::serve::{Options, Server, Side};

use crate::common::LAUNCH;

/// Returns true if fio is installed; prints a message if not.
pub(crate) fn has_fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        println!("SKIPPED: fio is not installed (apt-get install fio)");
    }
    found
}

/// Location of the block namespace in the file.
pub(crate) struct Namespace {
    /// Offset of its first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Creates the file: a drive formats it, then its block namespace is filled with random bytes.
///
/// # Panics
/// If the file cannot be created, or has holes.
pub(crate) fn prepare(path: &Path, options: &Options) -> Namespace {
    // An existing file may have another size or belong to somebody else.
    assert!(!path.exists(), "{} is in the way: remove it", path.display());
    let options = Options { media: Some(path.into()), ..options.clone() };
    drop(Server::start(LAUNCH, Side::Drive, &options).expect("a drive"));
    let mut file = OpenOptions::new().read(true).write(true).open(path).expect("just made");
    let mut head = [0; Superblock::SIZE];
    file.read_exact(&mut head).expect("a superblock");
    let superblock = Superblock::parse(&head).expect("a superblock");
    let (offset, bytes) = (superblock.block_offset(), superblock.block_length());
    file.seek(SeekFrom::Start(offset)).expect("within the file");
    let mut random = File::open("/dev/urandom").expect("random bytes").take(bytes);
    let written = std::io::copy(&mut random, &mut BufWriter::with_capacity(1 << 20, &mut file));
    assert_eq!(written.expect("room for the file"), bytes);
    file.sync_all().expect("the disk takes it");
    // Unwritten extents count as holes to this call on ext4, XFS and btrfs.
    let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(offset)).expect("a plain file");
    assert!(hole >= offset + bytes, "the file system kept a hole at byte {hole}");
    Namespace { offset, bytes }
}

/// Runs fio (io_uring, direct) once with the arguments `more`. They must make it do `count`
/// operations of this kind, `read` or `write`.
///
/// # Panics
/// If fio fails, or does another number of operations.
pub(crate) fn fio(kind: &str, count: u64, more: &[String]) -> Run {
    let output = Command::new("fio")
        .args(["--name=floor", "--ioengine=io_uring", "--direct=1", "--output-format=json"])
        .args(more)
        .output()
        .expect("fio was there");
    let text = String::from_utf8_lossy(&output.stdout);
    let start = text.find('{').unwrap_or_else(|| panic!("fio: {text}"));
    let result: serde_json::Value = serde_json::from_str(&text[start..]).expect("fio's JSON");
    let job = &result["jobs"][0];
    let side = &job[kind];
    assert_eq!(side["total_ios"].as_u64(), Some(count), "fio did another number of operations");
    let ms = side["runtime"].as_u64().expect("a run time");
    let percent = job["usr_cpu"].as_f64().unwrap_or(0.0) + job["sys_cpu"].as_f64().unwrap_or(0.0);
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let cpu_us = (percent / 100.0 * ms as f64 * 1000.0) as u64;
    Run::new(count, Duration::from_millis(ms), Some(cpu_us))
}
