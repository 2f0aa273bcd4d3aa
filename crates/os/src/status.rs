//! The state of an operating system.

use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::cgroups::{self, Usage};
use crate::config::LOGS;
use crate::os_folder::OsFolder;
use crate::process::last_line;
use crate::record::{HOST_END, LOG_KEEPER, Record, TUNNEL};
use crate::{Error, mounts, tools};

/// State of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// It does not exist.
    Absent,
    /// It waits for its start; the number of its first process.
    Created(u32),
    /// It runs, likewise.
    Running(u32),
    /// Its first process has ended.
    Stopped,
}

/// State of the drive's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Size, bytes.
    pub bytes: u64,
    /// Bytes that programs can still write.
    pub free_bytes: u64,
    /// True if it takes no writes, which follows a failure of the drive.
    pub is_read_only: bool,
}

/// State of an operating system.
#[derive(Clone, Debug)]
pub struct Status {
    /// Its record.
    pub record: Record,
    /// Its container.
    pub container: Container,
    /// Its consumption.
    pub usage: Usage,
    /// Its file system, if it is mounted.
    pub data: Option<Data>,
    /// Reasons why it does not work.
    pub faults: Vec<String>,
}

impl Status {
    /// Returns true if it runs and nothing is wrong.
    #[must_use]
    pub fn is_up(&self) -> bool {
        matches!(self.container, Container::Running(_)) && self.faults.is_empty()
    }
}

/// Returns the state of an operating system; `None` if there is none.
///
/// # Errors
/// If the machine does not tell.
pub fn status(os_folder: &OsFolder) -> Result<Option<Status>, Error> {
    tools::check()?;
    let Some(record) = Record::load(os_folder)? else { return Ok(None) };
    let container = container(os_folder, &record)?;
    let usage = cgroups::usage(&record.cgroup())?;
    let data = data(os_folder)?;
    let mut faults = Vec::new();
    if !matches!(container, Container::Running(_)) {
        let said = last_line(&os_folder.log()).map_or_else(String::new, |line| format!(": {line}"));
        faults.push(format!("its first process has ended{said}"));
    }
    for service in record.services.iter().filter(|service| !service.is_running()) {
        let name = &service.program;
        faults.push(format!("service {name} has ended: {LOGS}/{name}.log inside has its output"));
    }
    for process in record.processes.iter().filter(|process| !process.is_running()) {
        let remedy = match &*process.program {
            TUNNEL | HOST_END | LOG_KEEPER => ": `csd os up` starts it again",
            _ => "",
        };
        faults.push(format!("{} has ended{remedy}", process.program));
    }
    if data.is_none() {
        faults.push("/data is not mounted".to_owned());
    } else if data.is_some_and(|data| data.is_read_only) {
        let said = last_line(&os_folder.door_log()).unwrap_or_default();
        let why = match said.trim_start_matches("warning: ") {
            "" => String::new(),
            said => format!(" ({said})"),
        };
        faults.push(format!(
            "/data takes no writes since the drive failed{why}: `csd os down` and `csd os up` \
             mount it again"
        ));
    }
    Ok(Some(Status { record, container, usage, data, faults }))
}

/// Returns the state of the file system, if it is mounted.
fn data(os_folder: &OsFolder) -> Result<Option<Data>, Error> {
    let volume = os_folder.volume();
    let mounted = mounts::below(&volume)?.into_iter().find(|mounted| mounted.point == volume);
    let Some(mounted) = mounted else { return Ok(None) };
    let size = rustix::fs::statvfs(&volume);
    let size = size.map_err(|error| Error::os(volume.display(), error))?;
    Ok(Some(Data {
        bytes: size.f_blocks * size.f_frsize,
        free_bytes: size.f_bavail * size.f_frsize,
        is_read_only: mounted.is_read_only,
    }))
}

#[derive(Deserialize)]
struct State {
    pid: u32,
    status: String,
}

/// Asks runc for the state of a container.
pub(crate) fn container(os_folder: &OsFolder, record: &Record) -> Result<Container, Error> {
    if !os_folder.runc().is_dir() {
        return Ok(Container::Absent);
    }
    let asked = runc(os_folder).args(["state", &record.id]).stdin(Stdio::null()).output();
    let asked = asked.map_err(|error| Error::os("runc", error))?;
    if !asked.status.success() {
        // It has no other answer for a container that was not finished.
        return Ok(Container::Absent);
    }
    let state: State = serde_json::from_slice(&asked.stdout)
        .map_err(|error| Error::Failed(format!("runc state: {error}")))?;
    Ok(match &*state.status {
        "running" | "paused" => Container::Running(state.pid),
        "created" => Container::Created(state.pid),
        _ => Container::Stopped,
    })
}

/// Returns a command of runc with the state in the folder.
pub(crate) fn runc(os_folder: &OsFolder) -> Command {
    let mut command = tools::command("runc");
    command.arg("--root").arg(os_folder.runc());
    command
}
