//! `csd attach`: a block namespace of a drive as one file, by FUSE, or as a block device, by ublk.
//!
//! [`mod@file`] answers the kernel on FUSE's thread and hands I/O to a core, [`mod@device`] answers
//! it on that core, where a [`csd_client::Volume`] carries it out. Nothing is cached between the
//! file or the device and the drive.

mod device;
mod file;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use csd_client::{Retry, Status, Volume, VolumeError};
use csd_reactor::{Buffer, Door, set_core_local};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::ask_drives::address_of;
use crate::cli::attach::Attach;
use crate::context::Context;
use crate::mounted::{End, Mounted, REQUESTS_MAX, Said, mount_point};
use crate::report::{self, Failure, Report};
use crate::runtime::runtime;
use device::Device;
use file::OneFile;

/// Name of the file in the folder.
const NAME: &str = "block";

/// A volume on its core.
struct Attached {
    volume: Volume,
    said: Said,
}

impl Attached {
    async fn read(&self, offset: u64, length: usize) -> Result<Buffer, Errno> {
        self.checked(self.volume.read(offset, length).await)
    }

    /// Writes bytes; they are durable afterwards if `durable`.
    async fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<(), Errno> {
        self.checked(match durable {
            true => self.volume.write_through(offset, data).await,
            false => self.volume.write(offset, data).await,
        })
    }

    /// Makes a range read as zeros.
    async fn zero(&self, offset: u64, length: u64, deallocate: bool) -> Result<(), Errno> {
        self.checked(self.volume.zero(offset, length, deallocate).await)
    }

    async fn flush(&self) -> Result<(), Errno> {
        self.checked(self.volume.flush().await)
    }

    /// Returns the error number that programs get. Prints why an operation failed, once until
    /// another one succeeds.
    fn checked<T>(&self, done: Result<T, VolumeError>) -> Result<T, Errno> {
        self.said.say(done.as_ref().err().map(|why| format!("I/O fails: {why}")));
        done.map_err(|error| errno(&error))
    }
}

fn errno(error: &VolumeError) -> Errno {
    let status = match error {
        VolumeError::Beyond { .. } => return Errno::NOSPC,
        VolumeError::Drive(error) => error.status(),
        _ => None,
    };
    match status {
        Some(Status::NAMESPACE_WRITE_PROTECTED) => Errno::ROFS,
        Some(Status::CAPACITY_EXCEEDED) => Errno::NOSPC,
        _ => Errno::IO,
    }
}

/// Folder or device at which the volume appears, checked before the drive is asked.
enum AttachPoint {
    Folder(PathBuf),
    /// The driver's control device.
    Device(File),
}

/// Form in which the volume appears.
enum Shown {
    File(Mounted),
    Device(Device),
}

impl AttachPoint {
    fn of(options: &Attach) -> Result<Self, Failure> {
        match &options.folder {
            Some(folder) => mount_point(folder).map(Self::Folder),
            None => device::driver().map(Self::Device),
        }
    }

    async fn show(self, attached: &Rc<Attached>, end: &Rc<End>) -> Result<Shown, Failure> {
        match self {
            Self::Folder(folder) => {
                let file = OneFile::new(&attached.volume, Door::new(REQUESTS_MAX));
                Mounted::show(folder, file, &[]).map(Shown::File)
            }
            Self::Device(driver) => Device::show(attached, driver, end).await.map(Shown::Device),
        }
    }
}

impl Shown {
    fn path(&self) -> PathBuf {
        match self {
            Self::File(folder) => folder.path().join(NAME),
            Self::Device(device) => device.path(),
        }
    }

    async fn remove(self) {
        match self {
            Self::File(folder) => folder.remove(),
            Self::Device(device) => device.remove().await,
        }
    }
}

/// Attaches a drive until the file or the device is gone or the process is asked to stop.
pub(crate) fn attach(options: &Attach, context: &Context) -> Result<Report, Failure> {
    let address = address_of(&options.drive, context)?;
    let connection = context.options()?;
    let point = AttachPoint::of(options)?;
    let retry = Retry { patience: options.retry, ..Retry::default() };
    let (json, quiet) = (context.json, context.quiet);
    // A core that spins takes time from the drive and from the kernel's side of the file:
    // bench/notes/attach-without-spinning.md.
    let runtime = csd_reactor::Config { spin_us: 0, ..runtime() };
    let served = csd_reactor::block_on(&runtime, move || async move {
        let volume = Volume::connect(&address, &connection, retry).await.map_err(failed)?;
        let attached = Rc::new(Attached { volume: volume.clone(), said: Said::default() });
        set_core_local(Rc::clone(&attached));
        let end = End::of_core();
        let shown = point.show(&attached, &end).await?;
        announce(&shown.path(), &volume, json, quiet);
        end.wait().await;
        shown.remove().await;
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

/// Prints that the file or the device is there.
fn announce(file: &Path, volume: &Volume, json: bool, quiet: bool) {
    let (url, bytes) = (volume.address().to_string(), volume.bytes());
    if json {
        let result = json!({ "file": file, "url": url, "bytes": bytes });
        report::print_json("attach", &Ok(Report::new("", result)));
    } else if !quiet {
        report::print(&format!("attached {url}\n  file     {}\n", file.display()));
    }
}
