//! `csd os`: operating systems of drives, by the crate `csd_os`.
//!
//! - [`target`] finds the drives that a command names
//! - [`addresses`] has the network of an array, [`network`] their tunnels and OpenSSH's files,
//!   [`names`] their names for programs of this host; [`cluster`] lets them log in to each other
//! - [`log_keeper`] bounds the logs of programs inside
//! - [`mod@up`], [`mod@status`] and [`service`] are commands; the others are here

mod addresses;
mod cluster;
mod log_keeper;
mod names;
mod network;
mod service;
mod status;
mod target;
mod up;

use std::io::IsTerminal;
use std::path::Path;

use csd_os::down::Stopped;
use csd_os::os_folder::remove_if_there;
use serde_json::{Value, json};

use crate::cli::os::{Exec, Os, Which};
use crate::context::Context;
use crate::report::{Failure, Report};
pub(crate) use addresses::Addresses;
pub(crate) use network::tunnel_ends;
pub(crate) use target::{OsTarget, inside_path};
pub(crate) use up::{Wanted, record, start};

/// Runs a command of operating systems.
pub(crate) fn os(command: &Os, context: &Context) -> Result<Report, Failure> {
    match command {
        Os::Up(options) => up::up(options, context),
        Os::Status(which) => status::status(which, context),
        Os::Exec(options) => exec(options, context),
        Os::Service(command) => service::service(command, context),
        Os::Down(which) => down(which, context),
        Os::KeepLog(options) => log_keeper::keep_log(options),
    }
}

impl From<csd_os::Error> for Failure {
    fn from(error: csd_os::Error) -> Self {
        match error {
            csd_os::Error::Usage(why) => Self::usage(why),
            error => Self::run(error),
        }
    }
}

/// Becomes a program in an operating system.
fn exec(options: &Exec, context: &Context) -> Result<Report, Failure> {
    let target = target::one(&options.drive, context)?;
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    csd_os::exec::exec(&target.os_folder, &options.program, terminal)?;
    Ok(Report::new("", Value::Null))
}

/// Stops operating systems.
fn down(which: &Which, context: &Context) -> Result<Report, Failure> {
    let targets = target::all(which.drive.as_ref(), context)?;
    let (mut text, mut names, mut warnings) = (String::new(), Vec::new(), Vec::new());
    for target in targets {
        let (words, warning) = stop(&target)?;
        text.push_str(&format!("{}  {words}\n", target.name));
        warnings.extend(warning);
        names.push(json!({ "name": target.name, "url": target.inside.to_string() }));
    }
    Ok(Report::new(text, json!({ "drives": names })).with_warnings(warnings))
}

/// Deletes the files of the network from the folder of an array.
pub(crate) fn forget_network(folder: &Path) -> Result<(), Failure> {
    for path in network::ssh_files(folder).into_iter().chain([names::file(folder)]) {
        remove_if_there(&path).map_err(Failure::run)?;
    }
    cluster::forget(folder)
}

/// Stops the operating system of a drive. Returns the outcome in words, and a warning.
pub(crate) fn stop(target: &OsTarget<'_>) -> Result<(&'static str, Option<String>), Failure> {
    let Stopped { was_there, reserved } = csd_os::down::down(&target.os_folder, target)?;
    let words = if was_there { "stopped" } else { "was not running" };
    let warning = reserved.filter(|_| was_there).map(|why| {
        format!(
            "drive {}: hosts still cannot write its blocks: {why}; say `csd os down` again when it \
             serves",
            target.name
        )
    });
    Ok((words, warning))
}
