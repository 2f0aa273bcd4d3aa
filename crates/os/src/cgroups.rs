//! Control groups of this machine, of version 1, 2 or both.
//!
//! The group of an operating system has an inner one for sessions, with a lower limit of processes.
//! All programs of its user run there, so that OpenSSH next to it can start processes whatever they
//! take.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::Error;
use crate::config::Cgroups;
use crate::mounts::{self, Mounted};

/// Rounds of killing: programs that multiply are caught in the second, because their parents are
/// dead by then.
const ROUNDS: usize = 200;

/// File with the limit of the buffers of TCP, where the kernel has one.
const TCP_LIMIT: &str = "memory.kmem.tcp.limit_in_bytes";
/// Divisor of the memory for the buffers of TCP.
const TCP_SHARE: u64 = 8;
/// Name of the inner group of sessions.
const SESSIONS: &str = "sessions";
/// Processes and threads that the limit of sessions leaves to others.
const RESERVE: u32 = 16;

/// Consumption of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Memory with the page cache, bytes.
    pub memory_bytes: u64,
    /// Most memory at once, bytes, where the kernel keeps it.
    pub memory_peak_bytes: Option<u64>,
    /// Processes that were killed because memory was short.
    pub oom_kills: u64,
    /// Processes and threads.
    pub pids: u64,
}

/// Returns the version of this machine's control groups.
///
/// # Errors
/// [`Error::Usage`] if there are none.
pub fn version() -> Result<Cgroups, Error> {
    let hierarchies = hierarchies()?;
    let has = |file: &str| hierarchies.iter().any(|path| path.join(file).exists());
    if has("memory.limit_in_bytes") {
        return Ok(Cgroups::V1 { swap: has("memory.memsw.limit_in_bytes") });
    }
    match has("cgroup.controllers") {
        true => Ok(Cgroups::V2),
        false => Err(Error::Usage(
            "csd os needs control groups, and none with a limit of memory are mounted here".into(),
        )),
    }
}

/// Returns the mounts of this machine's hierarchies.
fn mounted() -> Result<Vec<Mounted>, Error> {
    let mut all = mounts::below(Path::new("/"))?;
    all.retain(|mounted| matches!(&*mounted.kind, "cgroup" | "cgroup2"));
    Ok(all)
}

/// Returns the folders of this machine's hierarchies.
fn hierarchies() -> Result<Vec<PathBuf>, Error> {
    Ok(mounted()?.into_iter().map(|mounted| mounted.point).collect())
}

/// Returns the hierarchy whose groups have processors (cpuset), if there is one.
///
/// # Errors
/// If the kernel's list of mounts cannot be read.
pub(crate) fn of_processors() -> Result<Option<PathBuf>, Error> {
    let has = |mounted: &Mounted| match &*mounted.kind {
        "cgroup" => mounted.options.split(',').any(|option| option == "cpuset"),
        _ => {
            let list = fs::read_to_string(mounted.point.join("cgroup.controllers"));
            list.unwrap_or_default().split_whitespace().any(|controller| controller == "cpuset")
        }
    };
    Ok(mounted()?.into_iter().find(has).map(|mounted| mounted.point))
}

/// Returns the most processes and threads of all sessions together.
fn sessions_limit(pids: u32) -> u32 {
    pids.saturating_sub(RESERVE).max(pids / 2)
}

/// Makes a control group and its group of sessions, where processes are limited, before the
/// container. Returns the file by which a process moves itself into the latter.
///
/// # Errors
/// If the kernel refuses, or limits no processes.
pub fn make_sessions(cgroup: &str, version: Cgroups) -> Result<PathBuf, Error> {
    let has_limit = |mounted: &Mounted| match version {
        Cgroups::V1 { .. } => {
            mounted.kind == "cgroup" && mounted.options.split(',').any(|option| option == "pids")
        }
        Cgroups::V2 => mounted.kind == "cgroup2",
    };
    let hierarchy = mounted()?.into_iter().find(has_limit).ok_or_else(|| {
        Error::Usage("csd os needs control groups that limit processes (pids)".to_owned())
    })?;
    let folder = hierarchy.point.join(cgroup.trim_start_matches('/')).join(SESSIONS);
    fs::create_dir_all(&folder).map_err(|error| Error::os(folder.display(), error))?;
    Ok(folder.join("cgroup.procs"))
}

/// Limits the buffers of TCP in a control group of version 1 to their share of the memory, which is
/// in addition to it. Version 2 counts them as memory; runc knows no such limit.
///
/// # Errors
/// If the kernel refuses.
pub fn limit_tcp(cgroup: &str, memory_bytes: u64) -> Result<(), Error> {
    for path in folders(cgroup)?.into_iter().map(|folder| folder.join(TCP_LIMIT)) {
        if path.exists() {
            let limited = fs::write(&path, (memory_bytes / TCP_SHARE).to_string());
            limited.map_err(|error| Error::os(path.display(), error))?;
        }
    }
    Ok(())
}

/// Limits sessions, once the container is there: until then runc reads the lists of all groups,
/// which a threaded one does not have. `pids` is the limit of the whole.
///
/// # Errors
/// If the kernel refuses.
pub fn limit_sessions(cgroup: &str, version: Cgroups, pids: u32) -> Result<(), Error> {
    let folder = sessions(cgroup)?
        .ok_or_else(|| Error::Failed(format!("control group {cgroup}/{SESSIONS} is gone")))?;
    limit(&folder, version, pids)
}

fn limit(folder: &Path, version: Cgroups, pids: u32) -> Result<(), Error> {
    let write = |path: PathBuf, text: &str| {
        fs::write(&path, text).map_err(|error| Error::os(path.display(), error))
    };
    if version == Cgroups::V2 {
        // A group with processes may have inner ones that are threaded, and no others.
        write(folder.join("cgroup.type"), "threaded")?;
        write(folder.with_file_name("cgroup.subtree_control"), "+pids")?;
    }
    write(folder.join("pids.max"), &sessions_limit(pids).to_string())
}

/// Returns the folder of a control group's sessions, if it has any.
fn sessions(cgroup: &str) -> Result<Option<PathBuf>, Error> {
    let inner = |folder: PathBuf| folder.join(SESSIONS);
    Ok(folders(cgroup)?.into_iter().map(inner).find(|folder| folder.is_dir()))
}

/// Returns the sessions of a control group as `runc exec --cgroup` names them, if it has any.
///
/// # Errors
/// If the kernel's list of mounts cannot be read.
pub fn sessions_name(cgroup: &str, version: Cgroups) -> Result<Option<String>, Error> {
    let name = match version {
        Cgroups::V1 { .. } => format!("pids:{SESSIONS}"),
        Cgroups::V2 => SESSIONS.to_owned(),
    };
    Ok(sessions(cgroup)?.map(|_| name))
}

/// Returns the folders of a control group that exist. `cgroup` begins with a slash.
fn folders(cgroup: &str) -> Result<Vec<PathBuf>, Error> {
    let all = hierarchies()?;
    let own = all.iter().map(|point| point.join(cgroup.trim_start_matches('/')));
    Ok(own.filter(|folder| folder.is_dir()).collect())
}

/// Kills every process of a control group, and waits for their ends.
///
/// # Errors
/// If one cannot be killed.
pub fn kill(cgroup: &str) -> Result<(), Error> {
    for _ in 0..ROUNDS {
        let mut found = Vec::new();
        for folder in folders(cgroup)? {
            members(&folder, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            return Ok(());
        }
        let handles: Vec<_> = found
            .into_iter()
            .filter_map(|pid| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok())
            .collect();
        for handle in &handles {
            // It may have ended since then.
            let _gone = pidfd_send_signal(handle, Signal::KILL);
        }
        mounts::pause();
    }
    Err(Error::Failed(format!("processes of control group {cgroup} cannot be killed")))
}

/// Adds the processes of a folder of control groups, and of those in it. A threaded group has no
/// list: its processes are in that of the group around it.
fn members(folder: &Path, found: &mut Vec<i32>) {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    found.extend(list.lines().filter_map(|line| line.parse::<i32>().ok()));
    for inner in inner(folder) {
        members(&inner, found);
    }
}

fn inner(folder: &Path) -> Vec<PathBuf> {
    let list = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = list.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// Removes a control group whose processes have ended.
///
/// # Errors
/// If the kernel keeps it.
pub fn remove(cgroup: &str) -> Result<(), Error> {
    folders(cgroup)?.iter().try_for_each(|folder| remove_folder(folder))
}

fn remove_folder(folder: &Path) -> Result<(), Error> {
    inner(folder).iter().try_for_each(|folder| remove_folder(folder))?;
    for _ in 0..ROUNDS {
        match fs::remove_dir(folder) {
            // Its last process may not be reaped yet.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => mounts::pause(),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::os(folder.display(), error));
            }
            _ => return Ok(()),
        }
    }
    Err(Error::Failed(format!("control group {} is busy", folder.display())))
}

/// Returns the consumption of a control group.
///
/// # Errors
/// If the kernel's list of mounts cannot be read.
pub fn usage(cgroup: &str) -> Result<Usage, Error> {
    Ok(usage_of(&folders(cgroup)?))
}

/// Returns what the groups in these folders count together: one of version 2, or one of each
/// hierarchy of version 1.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "times of less than years")]
pub fn usage_of(folders: &[PathBuf]) -> Usage {
    let text =
        |name: &str| folders.iter().find_map(|folder| fs::read_to_string(folder.join(name)).ok());
    let number = |name: &str| text(name).and_then(|text| text.trim().parse::<u64>().ok());
    let field = |file: &str, field: &str| {
        let text = text(file)?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == field)?.1.parse::<u64>().ok()
    };
    let cpu_ns = number("cpuacct.usage").or_else(|| Some(1000 * field("cpu.stat", "usage_usec")?));
    let oom =
        field("memory.events", "oom_kill").or_else(|| field("memory.oom_control", "oom_kill"));
    let memory = number("memory.current").or_else(|| number("memory.usage_in_bytes"));
    let peak = number("memory.peak").or_else(|| number("memory.max_usage_in_bytes"));
    Usage {
        cpu_s: cpu_ns.unwrap_or(0) as f64 / 1e9,
        memory_bytes: memory.unwrap_or(0),
        memory_peak_bytes: peak,
        oom_kills: oom.unwrap_or(0),
        pids: number("pids.current").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_tell_the_same() {
        let made = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            files
                .iter()
                .for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
            let usage = usage_of(&[folder.path().to_owned()]);
            (usage.cpu_s, usage.memory_bytes, usage.memory_peak_bytes, usage.oom_kills, usage.pids)
        };
        let first = made(&[
            ("cpuacct.usage", "2500000000\n"),
            ("memory.usage_in_bytes", "4096\n"),
            ("memory.max_usage_in_bytes", "8192\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
            ("pids.current", "7\n"),
        ]);
        let second = made(&[
            ("cpu.stat", "usage_usec 2500000\nuser_usec 1\n"),
            ("memory.current", "4096\n"),
            ("memory.peak", "8192\n"),
            ("memory.events", "low 0\noom 9\noom_kill 3\n"),
            ("pids.current", "7\n"),
        ]);
        assert_eq!(first, (2.5, 4096, Some(8192), 3, 7));
        assert_eq!(second, first);
        assert_eq!(usage_of(&[]), Usage::default());
    }

    #[test]
    fn sessions_leave_processes_to_others() {
        for (pids, sessions) in [(8, 4), (31, 15), (32, 16), (48, 32), (512, 496)] {
            assert_eq!(sessions_limit(pids), sessions, "{pids}");
        }
    }

    #[test]
    fn a_group_of_sessions_is_limited_as_its_version_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = folder.path().join(SESSIONS);
        fs::create_dir(&sessions).unwrap();
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap_or_default();
        limit(&sessions, Cgroups::V1 { swap: false }, 64).unwrap();
        assert_eq!((&*read("sessions/pids.max"), &*read("sessions/cgroup.type")), ("48", ""));
        limit(&sessions, Cgroups::V2, 20).unwrap();
        assert_eq!(read("sessions/pids.max"), "10");
        assert_eq!(read("sessions/cgroup.type"), "threaded");
        assert_eq!(read("cgroup.subtree_control"), "+pids");
    }

    #[test]
    fn processes_of_a_group_without_a_list_are_in_that_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = folder.path().join(SESSIONS);
        // A threaded group's list cannot be read.
        fs::create_dir_all(sessions.join("cgroup.procs")).unwrap();
        fs::write(folder.path().join("cgroup.procs"), "7\n8\n").unwrap();
        let mut found = Vec::new();
        members(folder.path(), &mut found);
        assert_eq!(found, [7, 8]);
    }

    #[test]
    fn a_group_that_is_not_there_is_removed_already() {
        assert!(kill("/csd-os-none").is_ok() && remove("/csd-os-none").is_ok());
    }
}
