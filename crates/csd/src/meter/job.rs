//! [`Job`]: the command that is measured, in control groups of its own where this is possible.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;

use csd_measure::cgroup::JobGroups;
use csd_os::cgroups;
use rustix::process::{Pid, Signal, kill_process};

use crate::report::Failure;
use crate::runtime::Interrupt;

/// Enters control groups, whose lists come before the command, up to an empty word.
const ENTER: &str =
    "while [ -n \"$1\" ]; do echo $$ > \"$1\" || exit 125; shift; done; shift; exec \"$@\"";

/// End of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With an exit code.
    With(u8),
    /// By a signal.
    By(u8),
}

/// Consumption of the command's own processes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HostUsage {
    pub(super) cpu_s: f64,
    pub(super) memory_peak_bytes: Option<u64>,
    /// Says why there is no control group; then processes that were not waited for are missing.
    pub(super) without_group: Option<String>,
}

/// A command to measure.
pub(super) struct Job<'a> {
    words: &'a [String],
    /// File for the words of frameworks.
    task_log: &'a Path,
    groups: Result<JobGroups, String>,
    child: Option<Child>,
    interrupt: Interrupt,
}

impl<'a> Job<'a> {
    pub(super) fn new(words: &'a [String], task_log: &'a Path) -> Result<Self, Failure> {
        let groups = JobGroups::new(&format!("csd-meter-{}", std::process::id()));
        Ok(Self { words, task_log, groups, child: None, interrupt: Interrupt::watch()? })
    }

    /// Starts the command.
    pub(super) fn start(&mut self) -> Result<(), Failure> {
        let name = &self.words[0];
        let (path, is_there) = find(name);
        let path = path.ok_or_else(|| {
            let why = if is_there { "is not executable" } else { "is not there" };
            cannot_run(format!("{name}: {why}"), is_there)
        })?;
        let mut command = match &self.groups {
            Ok(groups) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", ENTER, "csd-meter"]);
                let lists = groups.folders().iter().map(|folder| folder.join("cgroup.procs"));
                command.args(lists).arg("").arg(&path);
                command
            }
            Err(_) => Command::new(&path),
        };
        command.env(super::tasks::VARIABLE, self.task_log);
        let started = command.args(&self.words[1..]).spawn();
        let failed = |error: std::io::Error| {
            cannot_run(format!("{name}: {error}"), error.kind() != ErrorKind::NotFound)
        };
        self.child = Some(started.map_err(failed)?);
        Ok(())
    }

    /// Waits for the command's end, and calls `read` every so often. Signals to this process that
    /// ask it to end are passed on.
    pub(super) fn wait(&mut self, period: Duration, mut read: impl FnMut()) -> Ended {
        let Some(mut child) = self.child.take() else { return Ended::With(super::FAILED) };
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (send, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            // The receiver waits for it.
            scope.spawn(move || drop(send.send(child.wait())));
            let mut passed = false;
            loop {
                match ended.recv_timeout(period) {
                    Ok(Ok(status)) => break outcome(status),
                    Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => {
                        break Ended::With(super::FAILED);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                }
                read();
                if self.interrupt.asked.load(Relaxed) && !std::mem::replace(&mut passed, true) {
                    // It may have ended since then.
                    let _gone = pid.map(|pid| kill_process(pid, Signal::TERM));
                }
            }
        })
    }

    /// Returns what the command's processes took.
    pub(super) fn usage(&self) -> HostUsage {
        match &self.groups {
            Ok(groups) => {
                let usage = cgroups::usage_of(groups.folders());
                let (cpu_s, memory_peak_bytes) = (usage.cpu_s, usage.memory_peak_bytes);
                HostUsage { cpu_s, memory_peak_bytes, without_group: None }
            }
            Err(why) => HostUsage {
                cpu_s: super::counted::children_s(),
                memory_peak_bytes: None,
                without_group: Some(why.clone()),
            },
        }
    }
}

fn cannot_run(why: String, is_there: bool) -> Failure {
    let code = if is_there { super::CANNOT_RUN } else { super::NOT_THERE };
    Failure { exit_code: Some(code), ..Failure::run(why) }
}

fn outcome(status: std::process::ExitStatus) -> Ended {
    let narrow = |number: i32| u8::try_from(number).unwrap_or(super::FAILED);
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::With(narrow(code)),
        (None, signal) => Ended::By(narrow(signal.unwrap_or_default())),
    }
}

/// Finds a command as a shell does. Returns its path if it can be run, and whether it is there.
fn find(name: &str) -> (Option<std::path::PathBuf>, bool) {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<_> = match name.contains('/') {
        true => vec![name.into()],
        false => std::env::split_paths(&paths).map(|folder| folder.join(name)).collect(),
    };
    candidates.retain(|path| path.exists());
    let can_run = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    (candidates.iter().find(|path| can_run(path)).cloned(), !candidates.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plain");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(find("sh"), (Some(_), true)));
        assert!(matches!(find("no-such-program"), (None, false)));
        assert!(matches!(find(path.to_str().unwrap()), (None, true)));
        assert!(matches!(find(folder.path().to_str().unwrap()), (None, true)));
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(outcome(ExitStatusExt::from_raw(3 << 8)), Ended::With(3));
        assert_eq!(outcome(ExitStatusExt::from_raw(9)), Ended::By(9));
    }
}
