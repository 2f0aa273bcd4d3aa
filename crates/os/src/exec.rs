//! Runs a program in an operating system.

use std::os::unix::process::CommandExt;

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
    let Some(record) = runs else {
        return Err(Error::Usage(
            "the operating system does not run: `csd os up` starts it".to_owned(),
        ));
    };
    let mut command = status::runc(os_folder);
    devices::replace_null(&mut command, os_folder);
    command.args(["exec", "--cwd", "/data"]);
    if terminal {
        command.arg("--tty");
    }
    // One that was started by a version before has no such group.
    if let Some(sessions) = cgroups::sessions_name(&record.cgroup(), cgroups::version()?)? {
        command.args(["--cgroup", &sessions]);
    }
    Err(Error::os("runc", command.arg(&record.id).args(program).exec()))
}
