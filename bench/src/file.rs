//! A file that a drive and fio read in turns, and runs of fio.
//!
//! The block namespace is written with random data first, and a file with holes or unwritten
//! extents is refused: reading those costs no disk.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use csd_drive::format::Superblock;

use crate::report::Run;
use crate::serve::{Options, Server, Side};

/// Whether fio is there; says so if not.
pub fn has_fio() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        println!("SKIPPED: fio is not installed (apt-get install fio)");
    }
    found
}

/// Where the block namespace lies in the file.
pub struct Namespace {
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Makes the file: formatted by a drive, its block namespace full of random bytes.
///
/// # Panics
/// When it cannot be made, or keeps holes.
pub fn prepare(path: &Path, options: &Options) -> Namespace {
    // A file that is there may be of another size or be somebody's.
    assert!(!path.exists(), "{} is in the way: remove it", path.display());
    drop(Server::start(Side::Drive, &Options { media: Some(path.into()), ..options.clone() }));
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

/// One run of fio (io_uring, direct) with more arguments, which must come to `count` operations of
/// this kind, `read` or `write`.
///
/// # Panics
/// When fio fails or does something else.
pub fn fio(kind: &str, count: u64, more: &[String]) -> Run {
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
    Run::new(count, Duration::from_millis(ms), cpu_us)
}
