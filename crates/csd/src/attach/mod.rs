//! `csd attach`: a block namespace of a drive as one file, by FUSE.
//!
//! [`mod@file`] answers the kernel on FUSE's thread and hands I/O to a core, where a
//! [`csd_client::Volume`] carries it out. Nothing is cached between the file and the drive.

mod file;

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use csd_client::{Retry, Volume, VolumeError};
use csd_reactor::{Class, Door, Notify, set_core_local, spawn, stop_requested};
use fuser::{BackgroundSession, MountOption};
use rustix::mount::{UnmountFlags, unmount};
use serde_json::{Value, json};

use crate::cli::attach::Attach;
use crate::context::Context;
use crate::query::address_of;
use crate::report::{self, Failure, Report};
use crate::runtime::runtime;
use file::OneFile;

/// Name of the file in the folder.
const NAME: &str = "block";
/// Most requests of the kernel under way.
const REQUESTS_MAX: usize = 256;

/// A volume on its core.
struct Attached {
    volume: Volume,
    /// Last failure that was printed.
    said: RefCell<Option<String>>,
    ended: Cell<bool>,
    changed: Notify,
}

impl Attached {
    /// Prints why an operation failed, once until another one succeeds.
    fn say<T>(&self, done: &Result<T, VolumeError>) {
        let why = done.as_ref().err().map(VolumeError::to_string);
        let before = self.said.replace(why.clone());
        if let Some(why) = why.filter(|why| before.as_ref() != Some(why)) {
            report::print_error(&format!("warning: I/O fails: {why}"));
        }
    }

    /// Ends the command: the folder is not mounted any more, or a signal came.
    fn end(&self) {
        self.ended.set(true);
        self.changed.notify_all();
    }
}

/// Attaches a drive until the folder is unmounted or the process is asked to stop.
pub(crate) fn attach(options: &Attach, context: &Context) -> Result<Report, Failure> {
    let address = address_of(&options.drive, context)?;
    let connection = context.options()?;
    let folder = mount_point(&options.folder)?;
    let retry = Retry { patience: options.retry, ..Retry::default() };
    let (json, quiet) = (context.json, context.quiet);
    let served = csd_reactor::block_on(&runtime(), move || async move {
        let volume = Volume::connect(&address, &connection, retry).await.map_err(failed)?;
        let attached = Rc::new(Attached {
            volume: volume.clone(),
            said: RefCell::default(),
            ended: Cell::new(false),
            changed: Notify::new(),
        });
        set_core_local(Rc::clone(&attached));
        let session = mount(OneFile::new(&volume, Door::new(REQUESTS_MAX)), &folder)?;
        announce(&folder, &volume, json, quiet);
        let asked = Rc::clone(&attached);
        drop(spawn(Class::System, async move {
            stop_requested().await;
            asked.end();
        }));
        while !attached.ended.get() {
            attached.changed.notified().await;
        }
        unmount_all(&folder, session);
        // Programs may have written without a sync.
        let flushed = volume.flush().await.map_err(failed);
        volume.disconnect().await;
        flushed
    });
    served.map_err(Failure::run)??;
    Ok(Report::new("", Value::Null))
}

fn failed(error: VolumeError) -> Failure {
    match error {
        VolumeError::Drive(error) => csd_client::Error::Drive(error).into(),
        error => Failure::run(error),
    }
}

/// Checks that this machine has FUSE, and returns the folder's whole path. A mount whose process
/// was killed is removed.
fn mount_point(folder: &Path) -> Result<PathBuf, Failure> {
    if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        return Err(Failure::usage(format!(
            "csd attach needs FUSE, and /dev/fuse cannot be opened: {error}"
        )));
    }
    let whole = std::path::absolute(folder).map_err(|e| Failure::os(folder.display(), &e))?;
    if std::fs::metadata(&whole).is_err_and(|error| error.kind() == ErrorKind::NotConnected) {
        let gone = unmount(&whole, UnmountFlags::DETACH);
        gone.map_err(|error| Failure::os(whole.display(), &error.into()))?;
    }
    match std::fs::metadata(&whole) {
        Ok(metadata) if metadata.is_dir() => Ok(whole),
        Ok(_) => Err(Failure::usage(format!("{}: not a folder", whole.display()))),
        Err(error) => Err(Failure::os(whole.display(), &error)),
    }
}

fn mount(file: OneFile, folder: &Path) -> Result<BackgroundSession, Failure> {
    let mut config = fuser::Config::default();
    config.mount_options = vec![
        MountOption::FSName("csd".to_owned()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
    ];
    let mounted = fuser::spawn_mount(file, folder, &config);
    mounted.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::NotFound => Failure::usage(format!(
            "{}: mounting takes root, or the program fusermount3: {error}",
            folder.display()
        )),
        _ => Failure::os(format!("{}: cannot mount", folder.display()), &error),
    })
}

/// Unmounts the folder. Files that are still open are cut off.
fn unmount_all(folder: &Path, session: BackgroundSession) {
    let is_free = unmount(folder, UnmountFlags::empty());
    if is_free == Err(rustix::io::Errno::BUSY) {
        let why = "is in use: programs that have its file open get errors from now on";
        report::print_error(&format!("warning: {} {why}", folder.display()));
        // Nothing is left to be done if this fails.
        let _ = unmount(folder, UnmountFlags::DETACH);
    }
    // For users who are not root this asks fusermount3; else it finds nothing to do.
    drop(session);
}

/// Prints that the file is there.
fn announce(folder: &Path, volume: &Volume, json: bool, quiet: bool) {
    let (file, url) = (folder.join(NAME), volume.address().to_string());
    let bytes = volume.bytes();
    if json {
        let result = json!({ "file": file, "url": url, "bytes": bytes });
        report::print_json("attach", &Ok(Report::new("", result)));
    } else if !quiet {
        report::print(&format!("attached {url}\n  file     {}\n", file.display()));
    }
}
