//! Runs of fio, and the file that a drive and fio read in turns.
//!
//! The block namespace is first written with random data. A file with holes or unwritten extents is
//! refused, because reading those does not access the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use csd_kvlog::format::Superblock;

use crate::Error;
use crate::program;
use crate::report::Run;
use crate::serve::Options;

/// Message of a benchmark that cannot run.
pub const SKIPPED: &str = "SKIPPED: fio is not installed (apt-get install fio)";

/// Returns true if fio is installed.
pub fn is_installed() -> bool {
    Command::new("fio").arg("--version").output().is_ok()
}

/// Location of the block namespace in the file.
#[derive(Clone, Copy, Debug)]
pub struct Namespace {
    /// Offset of its first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Creates the file: a drive formats it, then its block namespace is filled with random bytes.
///
/// # Errors
/// If the file exists, cannot be created, or has holes.
pub fn prepare(path: &Path, options: &Options) -> Result<Namespace, Error> {
    // An existing file may have another size or belong to somebody else.
    if path.exists() {
        return Err(Error::Usage(format!("{} is in the way: remove it", path.display())));
    }
    drop(program::drive(&Options { media: Some(path.into()), ..options.clone() })?);
    let (namespace, hole) = fill(path).map_err(Error::system(path.display().to_string()))?;
    if hole < namespace.offset + namespace.bytes {
        return Err(Error::Usage(format!("the file system kept a hole at byte {hole}")));
    }
    Ok(namespace)
}

/// Fills the block namespace of a medium. Returns where it is, and the first hole from there on.
fn fill(path: &Path) -> io::Result<(Namespace, u64)> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut head = [0; Superblock::SIZE];
    file.read_exact(&mut head)?;
    let superblock = Superblock::parse(&head).ok_or(io::ErrorKind::InvalidData)?;
    let (offset, bytes) = (superblock.block_offset(), superblock.block_length());
    file.seek(SeekFrom::Start(offset))?;
    let mut random = File::open("/dev/urandom")?.take(bytes);
    io::copy(&mut random, &mut BufWriter::with_capacity(1 << 20, &mut file))?;
    file.sync_all()?;
    // Unwritten extents count as holes to this call on ext4, XFS and btrfs.
    let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(offset))?;
    Ok((Namespace { offset, bytes }, hole))
}

/// Runs fio (io_uring, direct) once with the arguments `more`. They must make it do `count`
/// operations of this kind, `read` or `write`.
///
/// # Errors
/// If fio fails, or does another number of operations.
pub fn run(kind: &str, count: u64, more: &[String]) -> Result<Run, Error> {
    let output = Command::new("fio")
        .args(["--name=floor", "--ioengine=io_uring", "--direct=1", "--output-format=json"])
        .args(more)
        .output()
        .map_err(Error::system("fio"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text, kind, count).ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        Error::Server(format!("fio did not do {count} operations: {text}{why}"))
    })
}

/// Returns the run that fio's output describes, which may begin with notes.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn parse(text: &str, kind: &str, count: u64) -> Option<Run> {
    let result: serde_json::Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let job = &result["jobs"][0];
    let side = &job[kind];
    if side["total_ios"].as_u64()? != count {
        return None;
    }
    let ms = side["runtime"].as_u64()?;
    let percent = job["usr_cpu"].as_f64().unwrap_or(0.0) + job["sys_cpu"].as_f64().unwrap_or(0.0);
    let cpu_us = (percent / 100.0 * ms as f64 * 1000.0) as u64;
    Some(Run::new(count, Duration::from_millis(ms), Some(cpu_us)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read_from_fio_s_output_if_it_did_all_operations() {
        let text = "note: x\n{\"jobs\": [{\"read\": {\"total_ios\": 50, \"runtime\": 500}, \
                    \"usr_cpu\": 1.0, \"sys_cpu\": 3.0}]}";
        let run = parse(text, "read", 50).expect("sound output");
        assert!((run.per_s() - 100.0).abs() < 1e-9);
        assert!(parse(text, "read", 51).is_none() && parse(text, "write", 50).is_none());
        assert!(parse("fio: bad option", "read", 50).is_none());
    }
}
