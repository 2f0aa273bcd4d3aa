//! [`Device`]: a volume as a block device of this machine, by the kernel's ublk driver.
//!
//! Requests come on the volume's own core. Nothing is cached here; the kernel has its cache of a
//! block device, which programs go past with O_DIRECT.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::rc::Rc;

use csd_client::Volume;
use csd_reactor::{Class, UblkAction, UblkDevice, UblkOptions, UblkRequest, spawn};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Attached;
use crate::mounted::End;
use crate::report::{self, Failure};

/// Label of our devices: what a killed process leaves is known by it.
const LABEL: u64 = u64::from_be_bytes(*b"csdstore");

/// A block device that is there.
pub(super) struct Device(UblkDevice);

/// Opens the driver, or says what is missing.
pub(super) fn driver() -> Result<File, Failure> {
    UblkDevice::driver().map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::NotFound => "; `modprobe ublk_drv` makes it where the kernel has the driver",
            ErrorKind::PermissionDenied => "; it takes root",
            _ => "",
        };
        let needs = "csd attach --ublk needs the kernel's ublk driver";
        Failure::usage(format!("{needs}, and /dev/ublk-control cannot be opened: {error}{hint}"))
    })
}

impl Device {
    /// Makes a block device of the volume. The command ends when somebody else removes it.
    pub(super) async fn show(
        attached: &Rc<Attached>,
        driver: File,
        end: &Rc<End>,
    ) -> Result<Self, Failure> {
        let volume = &attached.volume;
        let (bytes, block_bytes) = (volume.bytes(), volume.block_bytes());
        let options = UblkOptions { bytes, block_bytes, label: LABEL };
        let answering = Rc::clone(attached);
        let handle = move |request| answer(Rc::clone(&answering), request);
        let device = UblkDevice::start(driver, options, handle)
            .await
            .map_err(|error| refused(&error, volume))?;
        let (watched, end) = (device.clone(), Rc::clone(end));
        drop(spawn(Class::System, async move {
            watched.ended().await;
            end.set();
        }));
        Ok(Self(device))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path()
    }

    /// Removes the device. The kernel's cache is written out before; a file system on it is cut
    /// off.
    pub(super) async fn remove(self) {
        let path = self.path();
        let mut alone = OpenOptions::new();
        alone.read(true).custom_flags(OFlags::EXCL.bits().cast_signed());
        let is_used = alone
            .open(&path)
            .is_err_and(|error| error.raw_os_error() == Some(Errno::BUSY.raw_os_error()));
        if is_used {
            let why = "is in use: what has it open or mounted gets errors from now on";
            report::print_error(&format!("warning: {} {why}", path.display()));
        }
        self.0.stop().await;
    }
}

/// Explains why the kernel makes no block device.
fn refused(error: &std::io::Error, volume: &Volume) -> Failure {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            Failure::usage(format!("a block device takes root (CAP_SYS_ADMIN): {error}"))
        }
        ErrorKind::Unsupported => {
            Failure::usage(format!("csd attach --ublk needs Linux 6.5 or later: {error}"))
        }
        _ => {
            let block = volume.block_bytes();
            let what = format!("cannot make a block device with blocks of {block} bytes");
            Failure::os(what, error)
        }
    }
}

/// Answers a request of the kernel.
async fn answer(attached: Rc<Attached>, request: UblkRequest) {
    let done = carry_out(&attached, &request).await;
    request.end(done.map_err(Errno::raw_os_error));
}

async fn carry_out(attached: &Attached, request: &UblkRequest) -> Result<(), Errno> {
    let (offset, bytes) = (request.offset(), request.bytes());
    match request.action() {
        UblkAction::Read => {
            let length = usize::try_from(bytes).map_err(|_| Errno::INVAL)?;
            let data = attached.read(offset, length).await?;
            request.fill(&data).map_err(|_| Errno::IO)
        }
        UblkAction::Write { durable } => {
            let data = request.data().map_err(|_| Errno::IO)?;
            attached.write(offset, &data, durable).await
        }
        UblkAction::Flush => attached.flush().await,
        UblkAction::Discard => attached.zero(offset, bytes, true).await,
        UblkAction::WriteZeroes { unmap } => attached.zero(offset, bytes, unmap).await,
        _ => Err(Errno::OPNOTSUPP),
    }
}
