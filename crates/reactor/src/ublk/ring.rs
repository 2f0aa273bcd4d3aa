//! [`Ring`]: an io_uring for the ublk driver's commands, which its core watches.
//!
//! The driver hands requests only to the thread that fetched them, so the ring belongs to the
//! core's own thread, next to the ring or the epoll set that the core waits with. Invariants:
//! memory that a command names lives until the command is answered; one control command is under
//! way at a time.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};

use super::wire::{Commit, Control, DevInfo, PARAMS_BYTES, Params};
use crate::join::race;
use crate::net::Stream;
use crate::oneshot::{Sender, oneshot};
use crate::sync::Notify;

/// User data of control commands; others have their tag.
const CONTROL: u64 = u64::MAX;

/// Memory that a control command names.
pub(super) enum Argument {
    None,
    Info(Box<DevInfo>),
    Params(Box<Params>),
}

impl Argument {
    fn address(&mut self) -> u64 {
        match self {
            Self::None => 0,
            Self::Info(info) => std::ptr::from_mut(&mut **info) as u64,
            Self::Params(params) => std::ptr::from_mut(&mut **params) as u64,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Info(_) => size_of::<DevInfo>(),
            Self::Params(_) => PARAMS_BYTES,
        }
    }
}

/// A control command under way.
struct Pending {
    argument: Argument,
    answer: Sender<(i32, Argument)>,
}

/// The ring; see the module's text.
pub(super) struct Ring {
    ring: RefCell<IoUring<squeue::Entry128>>,
    watched: Stream,
    control: File,
    pending: RefCell<Option<Pending>>,
    /// Notified when entries wait to be submitted.
    filled: Notify,
    over: Cell<bool>,
}

impl Ring {
    /// Makes a ring for `depth` requests, watched by this core.
    pub(super) fn new(control: File, depth: u16) -> io::Result<Self> {
        // Twice: a request's outcome may be queued before its fetch has been taken up.
        let entries = 2 * u32::from(depth).next_power_of_two();
        let ring = IoUring::<squeue::Entry128>::builder().build(entries)?;
        // SAFETY: the descriptor of the ring, which lives longer than this line.
        let fd = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
        let watched = Stream::of_watched(fd.try_clone_to_owned()?)?;
        Ok(Self {
            ring: RefCell::new(ring),
            watched,
            control,
            pending: RefCell::default(),
            filled: Notify::new(),
            over: Cell::new(false),
        })
    }

    /// Sends a command to the driver, and waits for its answer; returns the argument as the driver
    /// has left it.
    pub(super) async fn control(
        &self,
        code: u32,
        dev_id: u32,
        data: u64,
        mut argument: Argument,
    ) -> io::Result<Argument> {
        let (answer, answered) = oneshot();
        let command = Control {
            dev_id,
            queue_id: u16::MAX,
            len: u16::try_from(argument.len()).expect("at most 64 bytes"),
            addr: argument.address(),
            data,
            dev_path_len: 0,
            pad: 0,
            reserved: 0,
        };
        // SAFETY: both are 32 bytes without padding.
        let bytes = unsafe { std::mem::transmute::<Control, [u8; 32]>(command) };
        let entry = self.entry(&self.control, code, &bytes, CONTROL);
        if self.over.get() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.pending.borrow().is_some() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        *self.pending.borrow_mut() = Some(Pending { argument, answer });
        // SAFETY: the argument is kept in `pending` until the answer.
        unsafe { self.push(&entry) }?;
        match answered.await {
            Some((0.., argument)) => Ok(argument),
            Some((error, _)) => Err(io::Error::from_raw_os_error(-error)),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Fetches a request, or ends one and fetches the next one with its tag.
    pub(super) fn commit(&self, device: &File, code: u32, commit: Commit) -> io::Result<()> {
        let tag = u64::from(commit.tag);
        // SAFETY: both are 16 bytes without padding.
        let bytes = unsafe { std::mem::transmute::<Commit, [u8; 16]>(commit) };
        let entry = self.entry(device, code, &bytes, tag);
        // SAFETY: the entry points to nothing; the kernel holds the device's file itself.
        unsafe { self.push(&entry) }
    }

    /// Returns tags and results of the requests that have come; waits until some have, a command
    /// is answered or the ring is over. Submits what was queued before, of a whole turn at once.
    pub(super) async fn arrived(&self) -> io::Result<Vec<(u16, i32)>> {
        loop {
            let filled = self.filled.notified();
            self.submit()?;
            // Clears readiness: later completions make the ring readable again.
            let _nothing = self.watched.try_recv(&mut [0])?;
            let (arrived, answered) = self.reap();
            if !arrived.is_empty() || answered || self.over.get() {
                return Ok(arrived);
            }
            let filled = async {
                filled.await;
                Ok(())
            };
            race(self.watched.readable(), filled).await?;
        }
    }

    /// Ends the wait of [`Self::arrived`], and that of a command, which gets no answer any more.
    pub(super) fn end(&self) {
        self.over.set(true);
        self.filled.notify_all();
        if let Some(pending) = self.pending.borrow_mut().take() {
            // The kernel may still write into it.
            std::mem::forget(pending.argument);
        }
    }

    fn entry(&self, to: &File, code: u32, bytes: &[u8], user_data: u64) -> squeue::Entry128 {
        let mut command = [0; 80];
        command[..bytes.len()].copy_from_slice(bytes);
        opcode::UringCmd80::new(Fd(to.as_raw_fd()), code).cmd(command).build().user_data(user_data)
    }

    /// Queues an entry.
    ///
    /// # Safety
    /// All memory that the entry points to must live until the entry is answered.
    unsafe fn push(&self, entry: &squeue::Entry128) -> io::Result<()> {
        // SAFETY: by our own contract.
        let pushed = unsafe { self.ring.borrow_mut().submission().push(entry) };
        self.filled.notify_all();
        pushed.map_err(|_| io::ErrorKind::ResourceBusy.into())
    }

    fn submit(&self) -> io::Result<()> {
        let mut ring = self.ring.borrow_mut();
        if ring.submission().is_empty() {
            return Ok(());
        }
        match ring.submit() {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {
                self.filled.notify_all();
                Ok(())
            }
            submitted => submitted.map(drop),
        }
    }

    /// Takes out what has been answered; returns the requests, and true if the control command was.
    fn reap(&self) -> (Vec<(u16, i32)>, bool) {
        let mut arrived = Vec::new();
        let mut answered = false;
        for answer in self.ring.borrow_mut().completion() {
            if let Ok(tag) = u16::try_from(answer.user_data()) {
                arrived.push((tag, answer.result()));
            } else if let Some(pending) = self.pending.borrow_mut().take() {
                pending.answer.send((answer.result(), pending.argument));
                answered = true;
            }
        }
        (arrived, answered)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.end();
    }
}
