//! Services: programs in an operating system that go on after the command that started them.
//!
//! A service is the first process of a session and group of its own, by which it is ended with the
//! processes that it has started. Its output is in a log inside, so on the drive. Invariant: it is
//! recorded before its program begins.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, getpgid, kill_process_group};

use crate::config::LOGS;
use crate::os_folder::{OsFolder, remove_file};
use crate::process::{Process, start_time};
use crate::record::Record;
use crate::status::{self, Container};
use crate::{Error, exec};

/// Longest name.
const NAME_MAX: usize = 63;
/// Bytes of what the first shell says.
const SAID_MAX: u64 = 4096;
/// Becomes the program once it may. The name of the service is the script's own.
const SCRIPT: &str = "\
read -r go || exit 1
command -v \"$1\" > /dev/null || { echo \"$1: not found\"; exit 127; }
mkdir -p \"$LOGS\" || exit 1
echo started
exec < /dev/null >> \"$LOGS/$0.log\" 2>&1
exec \"$@\"
";

/// Starts a service.
///
/// # Errors
/// [`Error::Usage`] if the operating system does not run, or a service of that name runs.
pub fn start(os_folder: &OsFolder, name: &str, program: &[String]) -> Result<Process, Error> {
    check_name(name)?;
    let (_lock, mut record) = running(os_folder)?;
    if record.services.iter().any(|service| service.program == name && service.is_running()) {
        let why = format!("service {name} runs already: `csd os service stop` ends it");
        return Err(Error::Usage(why));
    }
    record.services.retain(|service| service.program != name);
    let number = os_folder.service_number();
    remove_file(&number)?;
    let mut command = exec::command(os_folder, &record)?;
    command.args(["--detach", "--pid-file"]).arg(&number);
    command.args(["--env", &format!("LOGS={LOGS}"), &record.id]);
    command.args(["/bin/sh", "-c", SCRIPT, name]).args(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Error::os("runc", error))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let status = child.wait().map_err(|error| Error::os("runc", error))?;
    let (Some(mut input), Some(output), Some(errors)) = pipes else {
        return Err(Error::Failed("runc: no pipes".to_owned()));
    };
    if !status.success() {
        return Err(Error::Failed(format!("runc: {}", first_line(errors))));
    }
    let service = read(&number, name)?;
    record.services.push(service.clone());
    record.save(os_folder)?;
    remove_file(&number)?;
    // It may have been killed: then it says nothing.
    let _gone = input.write_all(b"go\n");
    match &*first_line(output) {
        "started" => Ok(service),
        said => {
            record.services.pop();
            record.save(os_folder)?;
            let why = if said.is_empty() { "it has ended at once" } else { said };
            Err(Error::Usage(format!("service {name}: {why}")))
        }
    }
}

/// Ends a service and the processes of its group. Returns false if it had ended.
///
/// # Errors
/// [`Error::Usage`] if there is no such service.
pub fn stop(os_folder: &OsFolder, name: &str) -> Result<bool, Error> {
    let (_lock, mut record) = running(os_folder)?;
    let at = record.services.iter().position(|service| service.program == name);
    let at = at.ok_or_else(|| Error::Usage(format!("there is no service {name}")))?;
    let service = record.services[at].clone();
    let was_running = service.is_running();
    if was_running {
        let group = i32::try_from(service.pid).ok().and_then(Pid::from_raw);
        // A program that has made itself a member of another group is ended alone.
        let group = group.filter(|group| getpgid(Some(*group)) == Ok(*group));
        let signal = |signal| {
            // All may have ended since then.
            let _gone = group.map(|group| kill_process_group(group, signal));
        };
        signal(Signal::TERM);
        service.end()?;
        signal(Signal::KILL);
    }
    record.services.remove(at);
    record.save(os_folder)?;
    Ok(was_running)
}

/// Returns the record of an operating system that runs, and the lock of its folder.
fn running(os_folder: &OsFolder) -> Result<(fs::File, Record), Error> {
    if os_folder.folder().is_dir() {
        let lock = os_folder.lock()?;
        if let Some(record) = Record::load(os_folder)?
            && let Container::Running(_) = status::container(os_folder, &record)?
        {
            return Ok((lock, record));
        }
    }
    Err(exec::does_not_run())
}

/// Checks a name, which becomes one of a file.
fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{name:?} is no name of a service: say up to {NAME_MAX} letters, digits, - and _"
    )))
}

/// Reads the number of a process that waits.
fn read(number: &Path, name: &str) -> Result<Process, Error> {
    let text = fs::read_to_string(number).map_err(|error| Error::os(number.display(), error))?;
    let wrong = || Error::Failed(format!("service {name}: it has ended at once"));
    let pid = text.trim().parse().map_err(|_| wrong())?;
    let started = start_time(pid).ok_or_else(wrong)?;
    Ok(Process { pid, started, program: name.to_owned() })
}

fn first_line(output: impl Read) -> String {
    let mut line = Vec::new();
    // What cannot be read is not said.
    let _partial = BufReader::new(output.take(SAID_MAX)).read_until(b'\n', &mut line);
    String::from_utf8_lossy(&line).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        let long = "n".repeat(NAME_MAX + 1);
        for name in ["datanode", "a-1_B"] {
            check_name(name).unwrap();
        }
        for name in ["", "..", "a/b", "a b", "a'", "\n", &long] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_a_shell_says_is_bounded() {
        assert_eq!(first_line(&b"started\nmore"[..]), "started");
        assert_eq!(first_line(&[][..]), "");
        assert_eq!(first_line(std::io::repeat(b'x')).len(), 4096);
    }
}
