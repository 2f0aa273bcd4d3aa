//! Runs a program in an operating system.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::os_folder::OsFolder;
use crate::record::Record;
use crate::status::{self, Container};
use crate::{Error, cgroups, devices, tools};

/// Becomes a program in the operating system, as its root, with the limits and rights of all its
/// programs. Its exit code is that of this process.
///
/// # Errors
/// [`Error::Usage`] if the operating system does not run. It returns only then.
pub fn exec(os_folder: &OsFolder, program: &[String], terminal: bool) -> Result<(), Error> {
    tools::check()?;
    let runs = match Record::load(os_folder)? {
        Some(record) => match status::container(os_folder, &record)? {
            Container::Running(_) => Some(record),
            _ => None,
        },
        None => None,
    };
    let Some(record) = runs else { return Err(does_not_run()) };
    let mut command = command(os_folder, &record)?;
    devices::replace_null(&mut command, os_folder);
    if terminal {
        command.arg("--tty");
    }
    Err(Error::os("runc", command.arg(&record.id).args(program).exec()))
}

/// Returns the command of runc that begins a program, up to its options.
pub(crate) fn command(os_folder: &OsFolder, record: &Record) -> Result<Command, Error> {
    let mut command = status::runc(os_folder);
    command.args(["exec", "--cwd", "/data"]);
    // One that was started by a version before has no such group.
    if let Some(sessions) = cgroups::sessions_name(&record.cgroup(), cgroups::version()?)? {
        command.args(["--cgroup", &sessions]);
    }
    Ok(command)
}

pub(crate) fn does_not_run() -> Error {
    Error::Usage("the operating system does not run: `csd os up` starts it".to_owned())
}
