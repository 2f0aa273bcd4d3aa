//! Starts an operating system.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::config::{Cgroups, Limits, SESSION_SCRIPT, Spec, config};
use crate::filesystem::Fs;
use crate::in_place::write;
use crate::log::keep_log;
use crate::network::{self, Tunnel};
use crate::os_folder::OsFolder;
use crate::process::{last_line, serve};
use crate::processors::{self, Processors};
use crate::record::{DOOR, Record};
use crate::status::{self, Container};
use crate::users::Users;
use crate::volume::{self, Found};
use crate::{Drive, Error, cgroups, devices, down, log, mounts, ocfs2, tools};

/// An operating system to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Identifier of the container: `csd-os-` and something unique on this machine.
    pub id: String,
    /// Host name.
    pub name: String,
    /// Folder of the image.
    pub image: PathBuf,
    /// Limits.
    pub limits: Limits,
    /// File system of `/data`.
    pub fs: Fs,
    /// Command line that attaches the drive's blocks to [`OsFolder::door`].
    pub door: Vec<String>,
    /// Command line that copies [`OsFolder::log_pipe`] to [`OsFolder::log`], within bounds.
    pub log_keeper: Vec<String>,
    /// Network, if the drive has a tunnel.
    pub tunnel: Option<Tunnel>,
    /// Addresses and host names of others.
    pub hosts: Vec<(IpAddr, String)>,
}

/// Outcome of [`up`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// False if it ran already.
    pub is_new: bool,
    /// True if the file system was made.
    pub is_formatted: bool,
    /// Public key of its OpenSSH, if that runs.
    pub host_key: Option<String>,
}

/// Starts an operating system, if it does not run. Rests of one that ended are removed before. One
/// that runs gets the ends of its tunnel that have ended.
///
/// # Errors
/// [`Error::Usage`] if this machine, the image or the namespace does not allow it. After an error
/// nothing of one that did not run is left.
pub fn up(os_folder: &OsFolder, options: &Options, drive: &dyn Drive) -> Result<Started, Error> {
    check(os_folder, &options.image, options.limits, options.fs)?;
    let cgroups = cgroups::version()?;
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(os_folder.folder());
    made.map_err(|error| Error::os(os_folder.folder().display(), error))?;
    let _lock = os_folder.lock()?;
    let mut record = Record::new(&options.id, &options.name, options.image.clone(), options.limits);
    record.fs = options.fs;
    record.ssh = options.tunnel.as_ref().and_then(Tunnel::ssh);
    if let Some(mut former) = Record::load(os_folder)? {
        if let Container::Running(pid) = status::container(os_folder, &former)? {
            let host_key = mend(os_folder, options, &mut former, pid)?;
            return Ok(Started { is_new: false, is_formatted: false, host_key });
        }
        down::sweep(os_folder, &former)?;
        down::clear(&former, drive).map_err(Error::Failed)?;
    }
    record.save(os_folder)?;
    // Hosts may have OCFS2 mounted: their writes are refused only while it is made.
    if options.fs == Fs::Ext4
        && let Err(why) = drive.reserve(true)
    {
        // Nothing was made yet.
        Record::remove(os_folder)?;
        return Err(Error::Failed(why));
    }
    let built = build(os_folder, options, &mut record, cgroups, drive);
    built.or_else(|error| undone(os_folder, drive, error))
}

/// Checks, without a drive, that an operating system can run here.
///
/// # Errors
/// [`Error::Usage`].
pub fn check(os_folder: &OsFolder, image: &Path, limits: Limits, fs: Fs) -> Result<(), Error> {
    tools::check()?;
    limits.check()?;
    if fs == Fs::Ocfs2 {
        ocfs2::check()?;
    }
    check_paths(os_folder, image)
}

/// Removes what an attempt has made, and returns its error.
fn undone<T>(os_folder: &OsFolder, drive: &dyn Drive, error: Error) -> Result<T, Error> {
    match down::down_locked(os_folder, drive) {
        Ok(_) => Err(error),
        Err(left) => Err(Error::Failed(format!("{error}; and {left}"))),
    }
}

/// Checks the paths, which the options of mounts contain.
fn check_paths(os_folder: &OsFolder, image: &Path) -> Result<(), Error> {
    let shell = ["bin/sh", "usr/bin/sh"].map(|path| image.join(path).symlink_metadata().is_ok());
    if !image.is_dir() || !shell.contains(&true) {
        return Err(Error::Usage(format!(
            "{} is no root folder of Linux: it has no bin/sh (`make os-image` makes one)",
            image.display()
        )));
    }
    for path in [image, os_folder.folder()] {
        let text = path.to_string_lossy();
        if !path.is_absolute() || text.contains([':', ',', '\\', '"', '\n']) {
            return Err(Error::Usage(format!(
                "{text}: the path has a colon, comma, quote or backslash, which overlays refuse"
            )));
        }
    }
    Ok(())
}

fn build(
    os_folder: &OsFolder,
    options: &Options,
    record: &mut Record,
    cgroups: Cgroups,
    drive: &dyn Drive,
) -> Result<Started, Error> {
    for folder in os_folder.mount_points() {
        fs::create_dir_all(&folder).map_err(|error| Error::os(folder.display(), error))?;
    }
    let door = os_folder.door_log();
    serve(DOOR, &options.door, &door, |process| record.add(os_folder, process))?;
    let is_formatted = match options.fs {
        Fs::Ext4 => format(os_folder, record)?,
        Fs::Ocfs2 => format_shared(os_folder, record, drive)?,
    };
    mounts::mount_volume(os_folder, options.fs)?;
    if options.fs == Fs::Ocfs2 {
        mounts::mount_memory(os_folder)?;
    }
    for folder in os_folder.changes(options.fs).into_iter().chain([os_folder.data()]) {
        fs::create_dir_all(&folder).map_err(|error| Error::os(folder.display(), error))?;
    }
    mounts::mount_root(os_folder, &options.image, options.fs)?;
    if record.ssh.is_some() {
        network::check_programs(&os_folder.root(), &options.image)?;
    }
    write_files(os_folder, options)?;
    keep_log(os_folder, record, &options.log_keeper)?;
    create(os_folder, options, record, cgroups)?;
    let Container::Created(pid) = status::container(os_folder, record)? else {
        return Err(Error::Failed("runc: the container is gone".to_owned()));
    };
    // The container waits for its start, so that its programs find the network.
    if let Some(tunnel) = &options.tunnel {
        tunnel.join(os_folder, record, pid)?;
    }
    runc(os_folder, &["start", &record.id])?;
    let host_key = record.ssh.map(|_| network::wait_for_ssh(os_folder, pid)).transpose()?;
    Ok(Started { is_new: true, is_formatted, host_key })
}

/// Makes the container and its control groups.
fn create(
    os_folder: &OsFolder,
    options: &Options,
    record: &mut Record,
    cgroups: Cgroups,
) -> Result<(), Error> {
    let cgroup = record.cgroup();
    let users = Users::make(&record.id)?;
    devices::make(os_folder)?;
    let processors = Processors::choose(options.limits.cpus)?;
    if let Some(processors) = &processors {
        processors.write_files(os_folder)?;
    }
    let list = processors.as_ref().map(Processors::list);
    let cluster = options.tunnel.as_ref().and_then(|tunnel| tunnel.cluster.as_ref());
    let spec = Spec {
        name: &options.name,
        limits: options.limits,
        cgroup: &cgroup,
        cgroups,
        address: record.ssh,
        sessions: &cgroups::make_sessions(&cgroup, cgroups)?,
        processors: list.as_deref(),
        cluster: cluster.map(|cluster| &*cluster.folder),
        users: &users.path(),
        processor: std::env::consts::ARCH,
    };
    record.processors = Some(match &processors {
        Some(processors) => processors.len(),
        None => processors::usable_count()?,
    });
    record.save(os_folder)?;
    write(&os_folder.session(), SESSION_SCRIPT)?;
    write(&os_folder.config(), &config(&spec, os_folder).to_string())?;
    runc(os_folder, &["create", "--bundle", &os_folder.folder().to_string_lossy(), &record.id])?;
    cgroups::limit_tcp(&cgroup, options.limits.memory_bytes)?;
    cgroups::limit_sessions(&cgroup, cgroups, options.limits.pids)
}

/// Starts what an operating system that runs lacks of its log and its network. Returns the key of
/// its OpenSSH.
fn mend(
    os_folder: &OsFolder,
    options: &Options,
    record: &mut Record,
    pid: u32,
) -> Result<Option<String>, Error> {
    // A version before had no pipe: its first process has the file.
    if os_folder.log_pipe().exists() {
        keep_log(os_folder, record, &options.log_keeper)?;
    }
    let Some(tunnel) = &options.tunnel else { return Ok(None) };
    if tunnel.keys.is_some() && tunnel.ssh() != record.ssh {
        return Err(Error::Usage(
            "it runs without OpenSSH at this address: `csd os down` first".to_owned(),
        ));
    }
    // Its programs see these files change.
    write_files(os_folder, options)?;
    tunnel.join(os_folder, record, pid)?;
    record.ssh.map(|_| network::wait_for_ssh(os_folder, pid)).transpose()
}

/// Makes the file system if the namespace is empty. Returns true if it was made.
fn format(os_folder: &OsFolder, record: &mut Record) -> Result<bool, Error> {
    if is_made(os_folder, record.fs)? {
        return Ok(false);
    }
    record.formatting = true;
    record.save(os_folder)?;
    volume::make(os_folder, record.fs)?;
    record.formatting = false;
    record.save(os_folder)?;
    Ok(true)
}

/// Does the same for a file system that hosts mount, too: they cannot write while it is made.
fn format_shared(
    os_folder: &OsFolder,
    record: &mut Record,
    drive: &dyn Drive,
) -> Result<bool, Error> {
    let mut is_formatted = false;
    if !is_made(os_folder, record.fs)? {
        drive.reserve(true).map_err(Error::Failed)?;
        // A host may have written since the look.
        is_formatted = format(os_folder, record)?;
    }
    // Also if a start was killed before this.
    drive.reserve(false).map_err(Error::Failed)?;
    Ok(is_formatted)
}

/// Returns true if the namespace has the file system, false if it is empty.
fn is_made(os_folder: &OsFolder, fs: Fs) -> Result<bool, Error> {
    let remedy = "Blocks that are no longer needed are emptied by `csd attach` and `fallocate \
                  --punch-hole`";
    match volume::look(&os_folder.blocks())? {
        Found::Own(own) if own == fs => Ok(true),
        Found::Empty => Ok(false),
        Found::Own(own) => Err(Error::Usage(format!(
            "the drive's blocks have the file system {own} of csd os: say `--fs {own}`. {remedy}"
        ))),
        Found::Other(at) => Err(Error::Usage(format!(
            "the drive's blocks are not empty (byte {at}), and have no file system of csd os: it \
             makes one on an empty namespace only. {remedy}"
        ))),
    }
}

fn write_files(os_folder: &OsFolder, options: &Options) -> Result<(), Error> {
    let mut hosts = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for (address, name) in &options.hosts {
        hosts.push_str(&format!("{address} {name}\n"));
    }
    write(&os_folder.hosts(), &hosts)?;
    let Some(tunnel) = &options.tunnel else { return Ok(()) };
    if let Some(cluster) = &tunnel.cluster {
        write(&os_folder.client(), &cluster.client)?;
    }
    // Without keys, those of before stay.
    tunnel.keys.as_deref().map_or(Ok(()), |keys| write(&os_folder.keys(), keys))
}

/// Runs runc with output in the log's pipe, because the first process keeps it open. Its own
/// messages go to a file that no program inside can write.
fn runc(os_folder: &OsFolder, arguments: &[&str]) -> Result<(), Error> {
    let (path, writer) = (os_folder.runc_log(), log::writer(os_folder)?);
    let copy = writer.try_clone().map_err(|error| Error::os("the log's pipe", error))?;
    let mut command = status::runc(os_folder);
    command.arg("--log").arg(&path).args(arguments);
    // The first process keeps this, too.
    command.stdin(devices::null(os_folder)?).stdout(copy).stderr(writer);
    let status = command.status().map_err(|error| Error::os("runc", error))?;
    if status.success() {
        return Ok(());
    }
    let why = last_line(&path).unwrap_or_else(|| status.to_string());
    // Its lines are fields; the last one is the message.
    let why = why.split_once("msg=\"").map_or(&*why, |(_, why)| why.trim_end_matches('"'));
    Err(Error::Failed(format!("runc {}: {}", arguments[0], why.replace("\\\"", "\""))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_overlays_refuse_and_folders_without_linux_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (os_folder, image) = (OsFolder::new(folder.path()), folder.path().join("a,b"));
        let refused = |image: &Path| check_paths(&os_folder, image).unwrap_err().to_string();
        assert!(refused(&image).contains("no root folder of Linux"));
        fs::create_dir_all(image.join("bin")).unwrap();
        assert!(refused(&image).contains("make os-image"));
        fs::write(image.join("bin/sh"), "").unwrap();
        assert!(refused(&image).contains("colon, comma"));
        let plain = folder.path().join("plain");
        fs::rename(&image, &plain).unwrap();
        assert!(check_paths(&os_folder, &plain).is_ok());
    }
}
