//! Starts an operating system.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::config::{Limits, Spec, config};
use crate::place::Place;
use crate::process::{Process, last_line, serve};
use crate::record::{DOOR, Record, TUNNEL};
use crate::status::{self, Container};
use crate::volume::{self, Found};
use crate::{Drive, Error, cgroups, down, mounts, tools};

/// Path of the host's public key, below the root.
const HOST_KEY: &str = "etc/ssh/csd_host_key.pub";
/// Looks for the host's key, a moment apart.
const LOOKS: usize = 3000;

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
    /// Command line that attaches the drive's blocks to [`Place::door`].
    pub door: Vec<String>,
    /// Network, if the drive has a tunnel.
    pub tunnel: Option<Tunnel>,
    /// Addresses and host names of others.
    pub hosts: Vec<(IpAddr, String)>,
}

/// Network of an operating system.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// Command line that makes the drive's end; the path of a network namespace is added to it.
    pub arguments: Vec<String>,
    /// Address of that end.
    pub address: IpAddr,
    /// Public keys that may log in, in the form of OpenSSH.
    pub keys: String,
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

/// Starts an operating system, if it does not run. Rests of one that ended are removed before.
///
/// # Errors
/// [`Error::Usage`] if this machine, the image or the namespace does not allow it. After an error
/// nothing of it is left.
pub fn up(place: &Place, options: &Options, drive: &dyn Drive) -> Result<Started, Error> {
    tools::check()?;
    options.limits.check()?;
    check_paths(place, &options.image)?;
    let cgroups = cgroups::version()?;
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(place.folder());
    made.map_err(|error| Error::os(place.folder().display(), error))?;
    let _lock = place.lock()?;
    let mut record = Record::new(&options.id, &options.name, options.image.clone(), options.limits);
    if let Some(former) = Record::load(place)? {
        if let Container::Running(_) = status::container(place, &former)? {
            let host_key = host_key(place);
            return Ok(Started { is_new: false, is_formatted: false, host_key });
        }
        down::sweep(place, &former)?;
        down::clear(&former, drive).map_err(Error::Failed)?;
    }
    record.save(place)?;
    if let Err(why) = drive.reserve(true) {
        // Nothing was made yet.
        Record::remove(place)?;
        return Err(Error::Failed(why));
    }
    let built = build(place, options, &mut record, cgroups);
    built.or_else(|error| undone(place, drive, error))
}

/// Removes what an attempt has made, and returns its error.
fn undone<T>(place: &Place, drive: &dyn Drive, error: Error) -> Result<T, Error> {
    match down::down_locked(place, drive) {
        Ok(_) => Err(error),
        Err(left) => Err(Error::Failed(format!("{error}; and {left}"))),
    }
}

/// Checks the paths, which the options of mounts contain.
fn check_paths(place: &Place, image: &Path) -> Result<(), Error> {
    let shell = ["bin/sh", "usr/bin/sh"].map(|path| image.join(path).symlink_metadata().is_ok());
    if !image.is_dir() || !shell.contains(&true) {
        return Err(Error::Usage(format!(
            "{} is no root folder of Linux: it has no bin/sh (`make os-image` makes one)",
            image.display()
        )));
    }
    for path in [image, place.folder()] {
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
    place: &Place,
    options: &Options,
    record: &mut Record,
    cgroups: crate::config::Cgroups,
) -> Result<Started, Error> {
    for folder in place.mount_points() {
        fs::create_dir_all(&folder).map_err(|error| Error::os(folder.display(), error))?;
    }
    let door = place.door_log();
    serve(DOOR, &options.door, &door, |process| note(place, record, process))?;
    let is_formatted = format(place, record)?;
    mounts::mount_volume(place)?;
    for folder in [place.data(), place.upper(), place.work()] {
        fs::create_dir_all(&folder).map_err(|error| Error::os(folder.display(), error))?;
    }
    mounts::mount_root(place, &options.image)?;
    write_files(place, options)?;
    let spec = Spec {
        name: &options.name,
        limits: options.limits,
        cgroup: &record.cgroup(),
        cgroups,
        address: options.tunnel.as_ref().map(|tunnel| tunnel.address),
        processor: std::env::consts::ARCH,
    };
    write(&place.config(), &config(&spec, place).to_string())?;
    runc(place, &["create", "--bundle", &place.folder().to_string_lossy(), &record.id])?;
    if let Some(tunnel) = &options.tunnel {
        let Container::Created(pid) = status::container(place, record)? else {
            return Err(Error::Failed("runc: the container is gone".to_owned()));
        };
        let arguments = [&tunnel.arguments[..], &[format!("/proc/{pid}/ns/net")]].concat();
        serve(TUNNEL, &arguments, &place.tunnel_log(), |process| note(place, record, process))?;
    }
    runc(place, &["start", &record.id])?;
    let host_key = match &options.tunnel {
        Some(_) => Some(wait_for_key(place, record)?),
        None => None,
    };
    Ok(Started { is_new: true, is_formatted, host_key })
}

fn note(place: &Place, record: &mut Record, process: Process) -> Result<(), Error> {
    record.processes.push(process);
    record.save(place)
}

/// Makes the file system if the namespace is empty. Returns true if it was made.
fn format(place: &Place, record: &mut Record) -> Result<bool, Error> {
    match volume::look(&place.blocks())? {
        Found::Own => return Ok(false),
        Found::Empty => {}
        Found::Other(at) => {
            return Err(Error::Usage(format!(
                "the drive's blocks are not empty (byte {at}), and have no file system of csd os: \
                 it makes one on an empty namespace only. Blocks that are no longer needed are \
                 emptied by `csd attach` and `fallocate --punch-hole`"
            )));
        }
    }
    record.formatting = true;
    record.save(place)?;
    volume::make(place)?;
    record.formatting = false;
    record.save(place)?;
    Ok(true)
}

fn write_files(place: &Place, options: &Options) -> Result<(), Error> {
    let mut hosts = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for (address, name) in &options.hosts {
        hosts.push_str(&format!("{address} {name}\n"));
    }
    write(&place.hosts(), &hosts)?;
    let keys = options.tunnel.as_ref().map_or("", |tunnel| &tunnel.keys);
    write(&place.keys(), keys)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|error| Error::os(path.display(), error))
}

/// Runs runc with output in the log, because the first process keeps it open.
fn runc(place: &Place, arguments: &[&str]) -> Result<(), Error> {
    let path = place.log();
    let cannot = |error| Error::os(path.display(), error);
    let log = File::options().create(true).append(true).open(&path).map_err(cannot)?;
    let mut command = status::runc(place);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(log.try_clone().map_err(cannot)?).stderr(log);
    let status = command.status().map_err(|error| Error::os("runc", error))?;
    if status.success() {
        return Ok(());
    }
    let why = last_line(&path).unwrap_or_else(|| status.to_string());
    // Its lines are fields; the last one is the message.
    let why = why.split_once("msg=\"").map_or(&*why, |(_, why)| why.trim_end_matches('"'));
    Err(Error::Failed(format!("runc {}: {}", arguments[0], why.replace("\\\"", "\""))))
}

/// Returns the public key of the operating system's OpenSSH.
fn host_key(place: &Place) -> Option<String> {
    let text = fs::read_to_string(place.root().join(HOST_KEY)).ok()?;
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    (words.len() == 2).then(|| words.join(" "))
}

/// Waits until OpenSSH has its key.
fn wait_for_key(place: &Place, record: &Record) -> Result<String, Error> {
    for _ in 0..LOOKS {
        if let Some(key) = host_key(place) {
            return Ok(key);
        }
        if !matches!(status::container(place, record)?, Container::Running(_)) {
            break;
        }
        mounts::pause();
    }
    let why = last_line(&place.log()).unwrap_or_else(|| "it says nothing".to_owned());
    Err(Error::Failed(format!("the operating system has no OpenSSH: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_overlays_refuse_and_folders_without_linux_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (place, image) = (Place::new(folder.path()), folder.path().join("a,b"));
        let refused = |image: &Path| check_paths(&place, image).unwrap_err().to_string();
        assert!(refused(&image).contains("no root folder of Linux"));
        fs::create_dir_all(image.join("bin")).unwrap();
        assert!(refused(&image).contains("make os-image"));
        fs::write(image.join("bin/sh"), "").unwrap();
        assert!(refused(&image).contains("colon, comma"));
        let plain = folder.path().join("plain");
        fs::rename(&image, &plain).unwrap();
        assert!(check_paths(&place, &plain).is_ok());
    }
}
