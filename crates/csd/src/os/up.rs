//! `csd os up`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use csd_os::config::Limits;
use csd_os::filesystem::Fs;
use csd_os::up::{Options, Started};
use csd_store::array::OsRecord;
use serde_json::{Value, json};

use super::cluster;
use super::names;
use super::network::{self, Ends};
use super::target::{self, OsTarget, program};
use crate::cli::os::Up;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::runtime::random;
use crate::units::{hex, size};

/// Default limits.
const MILLICPUS: u32 = 1000;
const MEMORY_BYTES: u64 = 1 << 30;
const PIDS: u32 = 512;

/// An operating system that a user wants for drives.
pub(crate) struct Wanted {
    pub(crate) image: PathBuf,
    pub(crate) limits: Limits,
    /// File system of `/data`.
    pub(crate) fs: Fs,
    /// Public keys that may log in, and their file.
    pub(crate) keys: Option<(String, PathBuf)>,
    /// True if operating systems log in to each other.
    pub(crate) cluster: bool,
    /// Longest wait for a drive that is away.
    pub(crate) retry: Duration,
}

impl Wanted {
    /// Returns the one that the array file describes.
    pub(crate) fn of_record(record: &OsRecord, retry: Duration) -> Result<Self, Failure> {
        let limits = Limits {
            cpus: f64::from(record.millicpus) / 1000.0,
            memory_bytes: record.memory_bytes,
            pids: record.pids,
        };
        let keys = match &record.key {
            Some(path) => Some((network::public_keys(path)?, path.clone())),
            None => None,
        };
        let fs = record.fs.as_deref().map_or(Ok(Fs::default()), str::parse);
        let fs = fs.map_err(Failure::usage)?;
        if fs == Fs::Ocfs2 && keys.is_some() {
            return Err(Failure::usage(
                "OpenSSH and the messages of OCFS2 both take the inside of the drive's tunnel: \
                 leave the key out, and reach the programs by `csd os exec`",
            ));
        }
        let (image, cluster) = (image(&record.root)?, record.cluster);
        Ok(Self { image, limits, fs, keys, cluster, retry })
    }
}

/// Returns the whole path of an image.
fn image(folder: &Path) -> Result<PathBuf, Failure> {
    let missing = |error| Failure::usage(format!("{}: {error}", folder.display()));
    folder.canonicalize().map_err(missing)
}

/// Describes operating systems for the array file.
pub(crate) fn record(
    root: PathBuf,
    millicpus: Option<u32>,
    memory_bytes: Option<u64>,
    pids: Option<u32>,
) -> OsRecord {
    OsRecord {
        root,
        millicpus: millicpus.unwrap_or(MILLICPUS),
        memory_bytes: memory_bytes.unwrap_or(MEMORY_BYTES),
        pids: pids.unwrap_or(PIDS),
        fs: None,
        key: None,
        network: None,
        cluster: false,
    }
}

/// Starts the operating systems of the named drives.
pub(super) fn up(options: &Up, context: &Context) -> Result<Report, Failure> {
    let targets = target::all(options.drive.as_ref(), context)?;
    let is_url = options.drive.as_ref().is_some_and(|drive| drive.contains("://"));
    let kept = if is_url { None } else { target::array(context)?.0.os };
    let root = options.root.clone().or_else(|| Some(kept.as_ref()?.root.clone()));
    let root = root.ok_or_else(|| {
        Failure::usage("name the root folder of an image with --root (`make os-image` makes one)")
    })?;
    let before = |field: fn(&OsRecord) -> u64| kept.as_ref().map(field);
    let narrow = |number: u64| u32::try_from(number).ok();
    let record = record(
        root,
        options.cpus.or_else(|| before(|kept| kept.millicpus.into()).and_then(narrow)),
        options.memory.or_else(|| before(|kept| kept.memory_bytes)),
        options.pids.or_else(|| before(|kept| kept.pids.into()).and_then(narrow)),
    );
    let key = options.key.clone().or_else(|| kept.as_ref()?.key.clone());
    let fs = options.fs.map(|fs| fs.to_string()).or_else(|| kept.as_ref()?.fs.clone());
    let cluster = kept.as_ref().is_some_and(|kept| kept.cluster);
    let record = OsRecord { key, fs, cluster, ..record };
    let wanted = Wanted::of_record(&record, options.retry)?;
    let (mut text, mut drives) = (String::new(), Vec::new());
    for target in &targets {
        let (line, object) = start(target, &wanted)?;
        text.push_str(&line);
        drives.push(object);
    }
    Ok(Report::new(text, json!({ "drives": drives })))
}

/// Starts the operating system of a drive. Returns the outcome in words and as JSON.
pub(crate) fn start(target: &OsTarget<'_>, wanted: &Wanted) -> Result<(String, Value), Failure> {
    let of_drive = |failure: Failure| {
        let message = format!("drive {}: {}", target.name, failure.message);
        Failure { message, ..failure }
    };
    let can_run = csd_os::up::check(&target.os_folder, &wanted.image, wanted.limits, wanted.fs);
    can_run.map_err(|error| of_drive(error.into()))?;
    let ends = match wanted.fs {
        Fs::Ext4 => Ends::of(target).map_err(of_drive)?.and_then(|ends| ends.addresses()),
        // The kernel of this machine has the inside of the tunnel.
        Fs::Ocfs2 => None,
    };
    let keys = wanted.keys.as_ref().map(|(keys, _)| &**keys);
    let mut tunnel = network::tunnel(target, ends, keys).map_err(of_drive)?;
    if let Some(tunnel) = tunnel.as_mut().filter(|_| wanted.cluster) {
        cluster::join(target, tunnel).map_err(of_drive)?;
    }
    let hosts = network::hosts(target, ends.as_ref());
    if ends.is_some() {
        names::write(target, &hosts).map_err(of_drive)?;
    }
    let options = Options {
        id: format!("csd-os-{}", hex(&random::<6>()?)),
        name: target.name.clone(),
        image: wanted.image.clone(),
        limits: wanted.limits,
        fs: wanted.fs,
        door: door(target, wanted.retry)?,
        log_keeper: log_keeper(target)?,
        hosts,
        tunnel,
    };
    let started = csd_os::up::up(&target.os_folder, &options, target);
    let started = started.map_err(|error| of_drive(error.into()))?;
    let Started { is_new, is_formatted, host_key } = started;
    let address = ends.as_ref().map(|ends| ends[1]);
    if let (Some(key), Some(address)) = (&host_key, address) {
        let identity = wanted.keys.as_ref().map(|(_, path)| &**path);
        network::know_host(target, key, address, identity)?;
        cluster::know_hosts(target, wanted.cluster)?;
    }
    let words = match (is_new, is_formatted) {
        (false, _) => "runs already".to_owned(),
        (true, is_formatted) => format!(
            "started  {} CPUs, {}, {} processes{}",
            wanted.limits.cpus,
            size(wanted.limits.memory_bytes),
            wanted.limits.pids,
            if is_formatted { ", new file system" } else { "" },
        ),
    };
    let object = json!({
        "name": target.name,
        "url": target.inside.to_string(),
        "started": is_new,
        "formatted": is_formatted,
        "address": address.map(|address| address.to_string()),
        "ssh": host_key.is_some(),
    });
    Ok((format!("{}  {words}\n", target.name), object))
}

/// Returns the command line that keeps the log of the first process.
fn log_keeper(target: &OsTarget<'_>) -> Result<Vec<String>, Failure> {
    let paths = [target.os_folder.log_pipe(), target.os_folder.log()];
    let mut words = vec![program()?, "os".to_owned(), "keep-log".to_owned()];
    words.extend(paths.iter().map(|path| path.to_string_lossy().into_owned()));
    Ok(words)
}

/// Returns the command line that attaches the drive's blocks.
fn door(target: &OsTarget<'_>, retry: Duration) -> Result<Vec<String>, Failure> {
    let mut words = vec![program()?, "attach".to_owned(), target.inside.to_string()];
    words.push(target.os_folder.door().to_string_lossy().into_owned());
    words.extend(["--retry".to_owned(), format!("{}ms", retry.as_millis())]);
    words.extend(target.connection()?);
    Ok(words)
}
