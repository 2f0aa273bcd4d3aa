//! Processes of drives: starts, inspects and stops them.
//!
//! Invariant: a signal is sent only to a process that serves the drive for this array. Its command
//! line must prove it: `drive serve`, the drive's NQN, and the drive's ready file in the folder of
//! this array. The array file alone proves nothing: it may be foreign or a copy, and the kernel may
//! have given its process number to another process.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use csd_nvme::controller::connect::is_nqn;
use csd_os::os_folder::remove_if_there;
use csd_os::process::{last_line, start_time};
use csd_reactor::{block_on, sleep, timeout};
use csd_store::array::{DriveRecord, IN_MEMORY};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::log_file;
use crate::report::Failure;
use crate::runtime::runtime;

/// Longest wait for a drive to serve, which includes formatting or recovering its media.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Longest wait for a drive to end after SIGTERM.
const END_WITHIN: Duration = Duration::from_secs(10);
/// Pause between two checks of a process.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Outcome of stopping a drive's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It ended after SIGTERM.
    Stopped,
    /// It ended only after SIGKILL.
    Killed,
}

/// Returns the name that the files of a drive's process have: that at the end of its NQN, if it is
/// the drive's, or the drive's with a number. A drive that has taken another one's place has its
/// own, because both run for a while.
pub(crate) fn stem(drive: &DriveRecord) -> &str {
    let last = drive.nqn().rsplit(':').next().unwrap_or_default();
    let number = last.strip_prefix(&drive.name).and_then(|rest| rest.strip_prefix('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if number.is_some_and(is_number) { last } else { &drive.name }
}

/// Returns the path of a drive's log; older logs have a number after this name.
pub(crate) fn log_path(folder: &Path, drive: &DriveRecord) -> PathBuf {
    folder.join(format!("{}.log", stem(drive)))
}

/// Returns the path of the ready file, to which a drive writes its URL once it serves.
pub(crate) fn ready_path(folder: &Path, drive: &DriveRecord) -> PathBuf {
    folder.join(format!("{}.url", stem(drive)))
}

/// Starts the drive's process in its own session, with its output in a log. `media` is its media
/// file; without one it keeps its data in memory. `arguments` are added to its command line.
pub(crate) fn start(
    drive: &DriveRecord,
    folder: &Path,
    media: Option<&Path>,
    arguments: &[String],
    secrets: Option<&Path>,
) -> Result<Child, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::run(format!("drive {} cannot be started: {error}", drive.name))
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    let (ready, log) = (ready_path(folder, drive), log_path(folder, drive));
    remove_if_there(&ready).map_err(cannot)?;
    let output = log_file::fresh(&log, log_file::FILES).map_err(cannot)?;
    let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
    command.args(["drive", "serve", "--session", "--listen", "127.0.0.1:0"]);
    command.arg("--media").arg(media.unwrap_or(Path::new(IN_MEMORY)));
    command.args(["--size", &drive.size_bytes.unwrap_or(1 << 30).to_string()]);
    command.args(arguments);
    command.args(["--nqn", drive.nqn()]);
    command.arg("--ready-file").arg(&ready).arg("--log-file").arg(&log);
    if let Some(secrets) = secrets {
        command.arg("--secrets").arg(secrets);
    }
    command.stdin(Stdio::null()).stdout(output.try_clone().map_err(cannot)?).stderr(output);
    command.spawn().map_err(cannot)
}

/// Waits until a drive that another command has started serves, and returns its URL. Returns `None`
/// if it ends instead.
pub(crate) fn served_url(drive: &DriveRecord, folder: &Path) -> Result<Option<String>, Failure> {
    let (drive, folder) = (drive.clone(), folder.to_owned());
    let ready = ready_path(&folder, &drive);
    let url = block_on(&runtime(), move || async move {
        let url = timeout(READY_WITHIN, async {
            loop {
                match fs::read_to_string(&ready) {
                    Ok(url) => return Some(url),
                    Err(_) if !is_running(&drive, &folder) => return None,
                    Err(_) => sleep(LOOK_EVERY).await,
                }
            }
        });
        url.await.unwrap_or(None)
    });
    url.map_err(Failure::run)
}

/// Waits until the drive serves, and returns its URL. Kills a drive that does not serve in time.
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
                    let said = last_line(&log).unwrap_or_else(|| "it said nothing".to_owned());
                    return Err(format!("drive {name} ended at its start ({status}): {said}"));
                }
                sleep(LOOK_EVERY).await;
            }
        });
        url.await.unwrap_or_else(|_| {
            // It may have ended just now; either way it has ended afterwards.
            let _ended = child.kill();
            let _reaped = child.wait();
            Err(format!("drive {name} did not serve within {} s", READY_WITHIN.as_secs()))
        })
    });
    waited.map_err(Failure::run)?.map_err(Failure::run)
}

/// State of the process that the array file names for a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// It serves the drive for this array.
    Runs,
    /// It serves a drive with this NQN for another folder, for example if this array file is a
    /// copy.
    Elsewhere,
    /// It has ended, or is not a drive.
    Gone,
}

/// Returns the state of the drive's process. `folder` is the folder of the array's logs.
pub(crate) fn state(drive: &DriveRecord, folder: &Path) -> ProcessState {
    let Some(pid) = drive.pid else { return ProcessState::Gone };
    let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else { return ProcessState::Gone };
    let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
    let says = |option: &[u8], value: &[u8]| words.windows(2).any(|pair| pair == [option, value]);
    let serves = words.get(1..3) == Some(&[&b"drive"[..], b"serve"]);
    let nqn = drive.nqn();
    if !serves || !is_nqn(nqn) || !says(b"--nqn", nqn.as_bytes()) || start_time(pid).is_none() {
        return ProcessState::Gone;
    }
    match says(b"--ready-file", ready_path(folder, drive).as_os_str().as_bytes()) {
        true => ProcessState::Runs,
        false => ProcessState::Elsewhere,
    }
}

/// Returns true if a process serves the drive for this array.
pub(crate) fn is_running(drive: &DriveRecord, folder: &Path) -> bool {
    state(drive, folder) == ProcessState::Runs
}

/// Sends SIGTERM to the drive's process, if it runs.
pub(crate) fn terminate(drive: &DriveRecord, folder: &Path) {
    signal(drive, folder, Signal::TERM);
}

/// Waits for the process to end after [`terminate`]. Kills it after [`END_WITHIN`].
pub(crate) fn wait_end(drive: &DriveRecord, folder: &Path) -> Result<Ended, Failure> {
    let (drive, folder) = (drive.clone(), folder.to_owned());
    let waited = block_on(&runtime(), move || async move {
        for (ended, within) in [(Ended::Stopped, END_WITHIN), (Ended::Killed, END_WITHIN)] {
            let gone = timeout(within, async {
                while is_running(&drive, &folder) {
                    sleep(LOOK_EVERY).await;
                }
            });
            if gone.await.is_ok() {
                return Ok(ended);
            }
            signal(&drive, &folder, Signal::KILL);
        }
        Err(format!("drive {} cannot be killed", drive.name))
    });
    waited.map_err(Failure::run)?.map_err(Failure::run)
}

fn signal(drive: &DriveRecord, folder: &Path, signal: Signal) {
    let pid = drive.pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    // The handle keeps referring to the inspected process, even if its number is reused.
    let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
    if is_running(drive, folder) {
        // It may have ended since then; the wait that follows notices.
        let _gone = pidfd_send_signal(process, signal);
    }
}

#[cfg(test)]
mod tests {
    use csd_store::array::DriveOptions;

    use super::*;

    fn record(pid: Option<u32>, nqn: &str) -> DriveRecord {
        DriveRecord {
            name: "d0".to_owned(),
            url: format!("nvme+tcp://127.0.0.1:1/{nqn}"),
            media: None,
            media_uuid: None,
            place: None,
            size_bytes: None,
            cores: None,
            pid,
            options: DriveOptions::new(),
        }
    }

    #[test]
    fn files_of_a_process_have_the_name_in_its_nqn_if_that_is_the_drives() {
        let of = |last: &str| stem(&record(None, &format!("nqn.2026-11.io.x:a:{last}"))).to_owned();
        assert_eq!([of("d0"), of("d0-1"), of("d0-12")], ["d0", "d0-1", "d0-12"]);
        for other in ["d1", "d0-", "d0-x", "d0-1/../x", "d01", "x-d0-1", ""] {
            assert_eq!(of(other), "d0", "{other}");
        }
    }

    #[test]
    fn only_a_process_that_serves_the_drive_for_this_folder_is_one() {
        let nqn = "nqn.2026-11.io.csdstore:none:d0";
        let folder = Path::new("/nowhere/a");
        let stands = |pid, nqn: &str| state(&record(pid, nqn), folder);
        assert_eq!(stands(None, nqn), ProcessState::Gone);
        assert_eq!(stands(Some(std::process::id()), nqn), ProcessState::Gone, "this is no drive");
        assert_eq!(stands(Some(u32::MAX), nqn), ProcessState::Gone);
    }
}
