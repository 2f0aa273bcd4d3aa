//! The process that copies the output of a drive's first process to a log of bounded size.
//!
//! It reads the pipe whatever comes, because a program that waits for room in it would hold up
//! OpenSSH, which writes there as well. Invariants: the log has two files of [`FILE_BYTES`] at
//! most; what programs write costs this machine little processor time.

use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

use csd_reactor::{block_on, sleep};

use crate::cli::os::KeepLog;
use crate::log_file::LogFile;
use crate::report::{self, Failure, Report};
use crate::runtime::runtime;

/// Most bytes of one file of the log.
const FILE_BYTES: u64 = 4 << 20;
/// Number of files of the log.
const FILES: u32 = 2;
/// Bytes after which the process rests: programs write 20 MiB a second at most.
const BURST_BYTES: usize = 1 << 20;
const REST: Duration = Duration::from_millis(50);

/// Copies until it is ended. Prints a line once it reads.
pub(super) fn keep_log(options: &KeepLog) -> Result<Report, Failure> {
    let of = |path: &std::path::Path, error| Failure::os(path.display(), &error);
    // It also opens the pipe to write, so that the pipe does not end with its last writer.
    let pipe = File::options().read(true).write(true).open(&options.pipe);
    let mut pipe = pipe.map_err(|error| of(&options.pipe, error))?;
    let log = LogFile::open_and(&options.log, FILE_BYTES, FILES, |_| Ok(()));
    let mut log = log.map_err(|error| of(&options.log, error))?;
    report::print("keeps the log\n");
    let kept = block_on(&runtime(), move || async move {
        let (mut buffer, mut burst) = (vec![0; 64 << 10], 0);
        loop {
            let read = pipe.read(&mut buffer)?;
            // A log that cannot be written now, such as on a full disk, loses these lines.
            let _lost = log.write_all(&buffer[..read]);
            burst += read;
            if burst >= BURST_BYTES {
                sleep(REST).await;
                burst = 0;
            }
        }
    });
    let kept: std::io::Result<()> = kept.map_err(Failure::run)?;
    kept.map(|()| Report::new("", serde_json::Value::Null))
        .map_err(|error| of(&options.pipe, error))
}
