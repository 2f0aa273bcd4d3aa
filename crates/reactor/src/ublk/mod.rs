//! [`UblkDevice`]: a block device of this machine that this process answers for, by the kernel's
//! ublk driver.
//!
//! The driver is asked through `/dev/ublk-control`; `/dev/ublkcN` carries the requests of the block
//! device `/dev/ublkbN`, and their data (its "user copy" mode). A device of a process that was
//! killed fails its requests and goes; what stays of it, `/dev/ublkcN`, is removed by the next
//! device with the same label. Not in the simulation. Invariant: a request is answered once.

mod queue;
mod request;
mod ring;
mod wire;

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions, read_dir};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use crate::backend::thread;
use crate::class::Class;
use crate::core::spawn;
use crate::sync::Notify;
use queue::Queue;
pub use request::{UblkAction, UblkRequest};
use ring::{Argument, Ring};
use wire::{Basic, Commit, DevInfo, Discard, Params, SECTOR_BYTES};

/// Requests under way at most.
const DEPTH: u16 = 128;
/// Most bytes of a read or a write.
const IO_BYTES_MAX: u32 = 1 << 20;
/// Most bytes of a discard or of written zeros.
const ZERO_BYTES_MAX: u32 = 1 << 30;
/// Number that asks for any free number of a device.
const ANY: u32 = u32::MAX;
/// Folder of the devices that there are.
const DEVICES: &str = "/sys/class/ublk-char";

/// Properties of a device.
#[derive(Clone, Copy, Debug)]
pub struct UblkOptions {
    /// Size in bytes.
    pub bytes: u64,
    /// Size of a block in bytes: a power of two from 512 to the size of a page.
    pub block_bytes: u32,
    /// Label of the program: devices with it whose process is gone are removed.
    pub label: u64,
}

/// A block device; see the module's text. Clones are the same one.
#[derive(Clone)]
pub struct UblkDevice(Rc<Inner>);

struct Inner {
    ring: Rc<Ring>,
    number: Cell<u32>,
    queue: RefCell<Option<Rc<Queue>>>,
    /// Number of tags that the kernel has, or that are being answered.
    fetched: Cell<u16>,
    ended: Cell<bool>,
    /// Notified when the device has ended.
    changed: Notify,
}

impl UblkDevice {
    /// Opens the driver's control device.
    ///
    /// # Errors
    /// Those of `open(2)`: `NotFound` without the driver, `PermissionDenied` without the right.
    pub fn driver() -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open("/dev/ublk-control")
    }

    /// Makes a block device, whose requests `handle` answers, each in a task of its own. The device
    /// is there when this returns; before, the kernel looks for partitions on it.
    ///
    /// # Errors
    /// `Unsupported` before Linux 6.5; else those of the kernel, such as `PermissionDenied`.
    pub async fn start<F: Future<Output = ()> + 'static>(
        driver: File,
        options: UblkOptions,
        handle: impl Fn(UblkRequest) -> F + 'static,
    ) -> io::Result<Self> {
        let inner = Rc::new(Inner {
            ring: Rc::new(Ring::new(driver, DEPTH)?),
            number: Cell::new(ANY),
            queue: RefCell::default(),
            fetched: Cell::new(0),
            ended: Cell::new(false),
            changed: Notify::new(),
        });
        drop(spawn(Class::System, serve(Rc::clone(&inner), handle)));
        let device = Self(inner);
        match device.bring_up(options).await {
            Ok(()) => Ok(device),
            Err(error) => {
                device.stop().await;
                Err(error)
            }
        }
    }

    /// Returns the path of the block device.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/dev/ublkb{}", self.0.number.get()).into()
    }

    /// Waits until no request comes any more, for example because somebody else stopped the device.
    pub async fn ended(&self) {
        while self.0.fetched.get() > 0 && !self.0.ended.get() {
            self.0.changed.notified().await;
        }
    }

    /// Removes the device: what programs have written to the kernel's cache is written out before.
    /// Programs that have it open get errors from then on.
    pub async fn stop(&self) {
        let (inner, number) = (&self.0, self.0.number.get());
        if number != ANY {
            // Gone already if this fails.
            let _stopped = inner.ring.control(wire::STOP_DEV, number, 0, Argument::None).await;
            self.ended().await;
            // The driver keeps the device until this is closed.
            drop(inner.queue.take());
            let removed = inner.ring.control(wire::DEL_DEV_ASYNC, number, 0, Argument::None).await;
            if removed.is_err() {
                // Before Linux 6.9. It waits for programs that have the device open.
                let _removed = inner.ring.control(wire::DEL_DEV, number, 0, Argument::None).await;
            }
        }
        inner.end();
    }

    async fn bring_up(&self, options: UblkOptions) -> io::Result<()> {
        let inner = &self.0;
        inner.remove_left(options.label).await;
        // Memory for requests must not be had by writing to the device that they belong to. Where
        // this is refused, only a machine without free memory would notice.
        let _refused = thread::serves_a_block_device();
        let pid = std::process::id().cast_signed();
        let info = DevInfo {
            queues: 1,
            queue_depth: DEPTH,
            io_bytes_max: IO_BYTES_MAX,
            dev_id: ANY,
            pid,
            flags: wire::FEATURE_USER_COPY,
            label: options.label,
            ..DevInfo::default()
        };
        let info = inner.info(wire::ADD_DEV, ANY, info).await?;
        let number = info.dev_id;
        inner.number.set(number);
        if info.flags & wire::FEATURE_USER_COPY == 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "ublk before Linux 6.5"));
        }
        let params = Argument::Params(Box::new(params(options)));
        inner.ring.control(wire::SET_PARAMS, number, 0, params).await?;
        let device = format!("/dev/ublkc{number}");
        let device = OpenOptions::new().read(true).write(true).open(device)?;
        let queue = Rc::new(Queue::new(device, DEPTH)?);
        for tag in 0..DEPTH {
            let fetch = Commit { queue: 0, tag, result: 0, addr: 0 };
            inner.ring.commit(&queue.device, wire::FETCH, fetch)?;
        }
        inner.fetched.set(DEPTH);
        *inner.queue.borrow_mut() = Some(queue);
        let pid = u64::from(std::process::id());
        inner.ring.control(wire::START_DEV, number, pid, Argument::None).await.map(drop)
    }
}

impl Inner {
    /// Sends a command that exchanges what is known of a device.
    async fn info(&self, code: u32, number: u32, info: DevInfo) -> io::Result<DevInfo> {
        match self.ring.control(code, number, 0, Argument::Info(Box::new(info))).await? {
            Argument::Info(info) => Ok(*info),
            _ => unreachable!("the argument comes back"),
        }
    }

    /// Removes devices with this label that were stopped because their process was killed.
    async fn remove_left(&self, label: u64) {
        let Ok(devices) = read_dir(DEVICES) else { return };
        for device in devices.flatten() {
            let name = device.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("ublkc")?.parse().ok());
            let Some(number) = number else { continue };
            let known = self.info(wire::GET_DEV_INFO, number, DevInfo::default()).await;
            // One that is being started is dead, too, but has a process.
            let is_left = known.is_ok_and(|info| {
                let is_stopped = (info.state, info.pid) == (wire::STATE_DEAD, wire::PID_STOPPED);
                is_stopped && info.label == label
            });
            if is_left {
                // Another process may have been faster.
                let delete = wire::DEL_DEV_ASYNC;
                let _removed = self.ring.control(delete, number, 0, Argument::None).await;
            }
        }
    }

    fn end(&self) {
        self.ended.set(true);
        self.changed.notify_all();
        self.ring.end();
    }
}

/// Hands out requests until the device has ended.
async fn serve<F: Future<Output = ()> + 'static>(
    inner: Rc<Inner>,
    handle: impl Fn(UblkRequest) -> F,
) {
    while !inner.ended.get() {
        let Ok(arrived) = inner.ring.arrived().await else { break };
        for (tag, result) in arrived {
            let queue = inner.queue.borrow().clone();
            match (queue, result) {
                (Some(queue), 0) => {
                    let request = UblkRequest::new(&inner.ring, &queue, tag);
                    drop(spawn(Class::Foreground, handle(request)));
                }
                _ => {
                    // The device is being stopped: nothing comes with this tag any more.
                    inner.fetched.set(inner.fetched.get().saturating_sub(1));
                    inner.changed.notify_all();
                }
            }
        }
    }
    inner.end();
}

fn params(options: UblkOptions) -> Params {
    let shift = u8::try_from(options.block_bytes.trailing_zeros()).expect("at most 32");
    let len = u32::try_from(wire::PARAMS_BYTES).expect("60");
    Params {
        len,
        types: wire::PARAMS_BASIC | wire::PARAMS_DISCARD,
        basic: Basic {
            attributes: wire::ATTRIBUTE_VOLATILE_CACHE | wire::ATTRIBUTE_FUA,
            logical_shift: shift,
            physical_shift: shift,
            io_opt_shift: shift,
            io_min_shift: shift,
            sectors_max: IO_BYTES_MAX / SECTOR_BYTES,
            sectors: options.bytes / u64::from(SECTOR_BYTES),
            ..Basic::default()
        },
        discard: Discard {
            alignment: 0,
            granularity: options.block_bytes,
            discard_sectors_max: ZERO_BYTES_MAX / SECTOR_BYTES,
            write_zeroes_sectors_max: ZERO_BYTES_MAX / SECTOR_BYTES,
            segments_max: 1,
            reserved: 0,
        },
    }
}
