//! Drives as processes: start, look, stop.
//!
//! A process is a drive of the array only if its command line names the drive's NQN, which holds
//! the array's uuid: a number that the kernel gave to somebody else is left alone.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use csd_reactor::{BackendKind, block_on, sleep, timeout};
use csd_store::array::DriveRecord;
use rustix::process::{Pid, Signal, kill_process};

use crate::context::runtime;
use crate::report::Failure;

/// Longest wait for a drive to serve: formatting or recovering its media takes time.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait for a drive to end after SIGTERM.
const END_WITHIN: Duration = Duration::from_secs(10);
/// Pause between two looks at a process.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How a drive's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It had ended before.
    Before,
    /// After SIGTERM.
    Stopped,
    /// Only after SIGKILL.
    Killed,
}

/// File of a drive's output.
pub(crate) fn log_path(folder: &Path, drive: &DriveRecord) -> PathBuf {
    folder.join(format!("{}.log", drive.name))
}

/// File by which a drive says that it serves, and where.
pub(crate) fn ready_path(folder: &Path, drive: &DriveRecord) -> PathBuf {
    folder.join(format!("{}.url", drive.name))
}

/// Starts the drive's process, detached: in a session of its own, with its output in a log.
pub(crate) fn start(
    drive: &DriveRecord,
    folder: &Path,
    backend: BackendKind,
    secrets: Option<&Path>,
) -> Result<Child, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::run(format!("drive {} cannot be started: {error}", drive.name))
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    let ready = ready_path(folder, drive);
    match fs::remove_file(&ready) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot(error)),
        _ => {}
    }
    let log = File::create(log_path(folder, drive)).map_err(cannot)?;
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    command.args(["drive", "serve", "--session", "--listen", "127.0.0.1:0"]);
    command.args(["--media", drive.media.as_deref().unwrap_or("memory")]);
    command.args(["--size", &drive.size_bytes.unwrap_or(1 << 30).to_string()]);
    command.args(["--cores", &drive.cores.unwrap_or(1).to_string()]);
    command.args(["--backend", &backend.to_string()]);
    command.args(["--nqn", nqn(drive)]);
    command.arg("--ready-file").arg(&ready);
    if let Some(secrets) = secrets {
        command.arg("--secrets").arg(secrets);
    }
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(cannot)?).stderr(log);
    command.spawn().map_err(cannot)
}

/// Waits until the drive serves, and gives its URL. A drive that does not serve in time is
/// killed.
pub(crate) fn wait_ready(
    drive: &DriveRecord,
    folder: &Path,
    mut child: Child,
) -> Result<String, Failure> {
    let (ready, log) = (ready_path(folder, drive), log_path(folder, drive));
    let name = drive.name.clone();
    let waited = block_on(&runtime(), move || async move {
        let url = timeout(READY_WITHIN, async {
            loop {
                if let Ok(url) = fs::read_to_string(&ready) {
                    return Ok(url);
                }
                if let Ok(Some(status)) = child.try_wait() {
                    let said = last_line(&log);
                    return Err(format!("drive {name} ended at its start ({status}): {said}"));
                }
                sleep(LOOK_EVERY).await;
            }
        });
        url.await.unwrap_or_else(|_| {
            // It may have ended just now; either way it is gone afterwards.
            let _ended = child.kill();
            let _reaped = child.wait();
            Err(format!("drive {name} did not serve within {} s", READY_WITHIN.as_secs()))
        })
    });
    waited.map_err(Failure::run)?.map_err(Failure::run)
}

/// Whether the drive's process runs.
pub(crate) fn is_running(drive: &DriveRecord) -> bool {
    let Some(pid) = drive.pid else { return false };
    let Ok(command) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let named = command.split(|&byte| byte == 0).any(|word| word == nqn(drive).as_bytes());
    named && !is_zombie(pid)
}

/// Asks the drive's process to end. The caller has checked that it is one.
pub(crate) fn terminate(drive: &DriveRecord) {
    signal(drive, Signal::TERM);
}

/// Waits for the process to end after [`terminate`]; kills it when that takes too long.
pub(crate) fn wait_end(drive: &DriveRecord) -> Result<Ended, Failure> {
    let drive = drive.clone();
    let waited = block_on(&runtime(), move || async move {
        for (ended, within) in [(Ended::Stopped, END_WITHIN), (Ended::Killed, END_WITHIN)] {
            let gone = timeout(within, async {
                while is_running(&drive) {
                    sleep(LOOK_EVERY).await;
                }
            });
            if gone.await.is_ok() {
                return Ok(ended);
            }
            signal(&drive, Signal::KILL);
        }
        Err(format!("drive {} cannot be killed", drive.name))
    });
    waited.map_err(Failure::run)?.map_err(Failure::run)
}

fn signal(drive: &DriveRecord, signal: Signal) {
    let pid = drive.pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended since; the wait that follows sees that.
        let _gone = kill_process(pid, signal);
    }
}

/// A process that has ended and that its parent has not looked at.
fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which stands in parentheses and may hold any character.
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn nqn(drive: &DriveRecord) -> &str {
    drive.url.rsplit('/').next().unwrap_or("")
}

fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let line = text.lines().rev().find(|line| !line.is_empty()).unwrap_or("it said nothing");
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pid: Option<u32>) -> DriveRecord {
        DriveRecord {
            name: "d0".to_owned(),
            url: "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.csdstore:none:d0".to_owned(),
            media: None,
            size_bytes: None,
            cores: None,
            pid,
        }
    }

    #[test]
    fn only_a_process_that_names_the_drive_is_one() {
        assert!(!is_running(&record(None)));
        assert!(!is_running(&record(Some(std::process::id()))), "this test is no drive");
        assert!(!is_running(&record(Some(u32::MAX))));
        assert!(!is_zombie(std::process::id()));
    }
}
