//! Processes that outlive the command that starts them.
//!
//! A process is known by its number and the time of its start. It is started as a shell that waits
//! for a word, and becomes its program only after it was recorded: a command that is killed at any
//! moment leaves no process that nothing names.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Seconds that a process has to end after SIGTERM, and after SIGKILL.
const END_WITHIN_S: i64 = 40;

/// A process that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process number.
    pub pid: u32,
    /// Time of its start in ticks since the machine's.
    pub started: u64,
    /// Name of its program, for messages.
    pub program: String,
}

impl Process {
    /// Returns true if the process runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        start_time(self.pid) == Some(self.started)
    }

    /// Returns true if the process runs with this command line.
    #[must_use]
    pub fn has_words(&self, arguments: &[String]) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let wanted: Vec<u8> =
            arguments.iter().flat_map(|word| [word.as_bytes(), &[0]].concat()).collect();
        line == wanted && self.is_running()
    }

    /// Waits for the process to end by itself; returns false if it has not after 40 s.
    #[must_use]
    pub fn wait(&self) -> bool {
        let Some(handle) = self.handle() else { return true };
        let mut ended = [PollFd::new(&handle, PollFlags::IN)];
        let within = Timespec { tv_sec: END_WITHIN_S, tv_nsec: 0 };
        // An error, such as a signal, is taken for a process that runs.
        poll(&mut ended, Some(&within)).is_ok_and(|ready| ready > 0)
    }

    /// Ends the process: asks it, and kills it if it does not end.
    ///
    /// # Errors
    /// If it cannot be ended.
    pub fn end(&self) -> Result<(), Error> {
        for signal in [Signal::TERM, Signal::KILL] {
            let Some(handle) = self.handle() else { return Ok(()) };
            // It may have ended since then.
            let _gone = pidfd_send_signal(&handle, signal);
            if self.wait() {
                return Ok(());
            }
        }
        Err(Error::Failed(format!("process {} ({}) cannot be killed", self.pid, self.program)))
    }

    /// Returns a handle of the process, if it runs.
    fn handle(&self) -> Option<std::os::fd::OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // The handle keeps referring to the process that is looked at here.
        self.is_running().then_some(handle)
    }
}

/// Waits until all processes of a program have ended that were started with this argument, and
/// kills those that do not end.
///
/// # Errors
/// If one cannot be killed, or the kernel's list cannot be read.
pub fn wait_for_all(program: &str, argument: &Path) -> Result<(), Error> {
    let list = fs::read_dir("/proc").map_err(|error| Error::os("/proc", error))?;
    for entry in list.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // It may have ended since then, or belong to a program that hides its words.
        let Ok(words) = fs::read(entry.path().join("cmdline")) else { continue };
        let mut words = words.split(|byte| *byte == 0);
        let is_program = words.next().is_some_and(|word| {
            Path::new(OsStr::from_bytes(word)).file_name() == Some(OsStr::new(program))
        });
        if !is_program || !words.any(|word| word == argument.as_os_str().as_bytes()) {
            continue;
        }
        let Some(started) = start_time(pid) else { continue };
        let process = Process { pid, started, program: program.to_owned() };
        if !process.wait() {
            process.end()?;
        }
    }
    Ok(())
}

/// Returns the time of a process's start; `None` if it has ended, also if its parent has not reaped
/// it.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields follow the name, which is in parentheses and may hold any character.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let runs = fields.next().is_some_and(|state| !matches!(state, "Z" | "X"));
    fields.nth(18)?.parse().ok().filter(|_| runs)
}

/// Starts a program that prints a line once it serves, and waits for that line. `record` gets the
/// process before it begins. Its standard error goes to `log`.
///
/// # Errors
/// If it cannot be started, or ends before it serves: then the end of its log.
pub fn serve(
    program: &str,
    arguments: &[String],
    log: &Path,
    record: impl FnOnce(Process) -> Result<(), Error>,
) -> Result<String, Error> {
    let cannot = |error: std::io::Error| Error::os(format!("{program} cannot be started"), error);
    let output = File::create(log).map_err(cannot)?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "read -r go && exec \"$@\" </dev/null", "sh"]).args(arguments);
    // Ctrl-C in this terminal is not for it.
    command.process_group(0).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(output);
    let mut child = command.spawn().map_err(cannot)?;
    let (input, said) = (child.stdin.take(), child.stdout.take());
    let pid = child.id();
    let started = start_time(pid).unwrap_or_default();
    record(Process { pid, started, program: program.to_owned() })?;
    if let Some(mut input) = input {
        input.write_all(b"go\n").map_err(cannot)?;
    }
    let mut line = String::new();
    if let Some(said) = said {
        BufReader::new(said).read_line(&mut line).map_err(cannot)?;
    }
    if line.is_empty() {
        let status = child.wait().map_err(cannot)?;
        let why = last_line(log).unwrap_or_else(|| format!("it ended ({status})"));
        return Err(Error::Failed(format!("{program}: {why}")));
    }
    Ok(line)
}

/// Returns the last line of a log that says something.
#[must_use]
pub fn last_line(log: &Path) -> Option<String> {
    let text = fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.strip_prefix("error: ").unwrap_or(line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<String> {
        ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_process_is_recorded_before_it_begins_and_ended_by_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let (mark, log) = (folder.path().join("mark"), folder.path().join("log"));
        let script = format!("touch {}; echo ready; echo more >&2; sleep 1000", mark.display());
        let mut kept = None;
        let said = serve("test", &words(&script), &log, |process| {
            assert!(process.is_running() && !mark.exists(), "it waits");
            kept = Some(process);
            Ok(())
        });
        assert_eq!(said.unwrap(), "ready\n");
        let process = kept.unwrap();
        assert!(mark.exists() && process.is_running());
        assert!(process.has_words(&words(&script)) && !process.has_words(&words("true")));
        let other = Process { started: process.started + 1, ..process.clone() };
        other.end().unwrap();
        assert!(process.is_running(), "another process of that number is left alone");
        process.end().unwrap();
        assert!(!process.is_running() && !process.has_words(&words(&script)));
        process.end().unwrap();
    }

    #[test]
    fn processes_are_found_by_program_and_argument() {
        let folder = tempfile::tempdir().unwrap();
        let script = "read -r line && sleep 0.2 && echo \"$line\" >\"$1/ended\"";
        let start = |argument: &Path| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script, "sh"]).arg(argument);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
        };
        let (mut ours, mut other) = (start(folder.path()), start(&folder.path().join("other")));
        // It ends by itself a while later, and the other one still runs.
        ours.stdin.take().unwrap().write_all(b"end\n").unwrap();
        wait_for_all("sh", folder.path()).unwrap();
        assert_eq!(fs::read(folder.path().join("ended")).unwrap(), b"end\n");
        assert!(ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    #[test]
    fn a_process_that_does_not_serve_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let ended = serve("door", &words("echo 'error: no drive' >&2; exit 1"), &log, |_| Ok(()));
        assert_eq!(ended.unwrap_err().to_string(), "door: no drive");
        let refused = |_| Err(Error::Failed("full".to_owned()));
        let ended = serve("door", &words("echo x"), &log, refused);
        assert_eq!(ended.unwrap_err().to_string(), "full");
    }
}
