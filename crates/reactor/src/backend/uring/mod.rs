//! Poller of the io_uring back end: one-shot polls for sockets, ring operations for files.
//!
//! The ring never owns a socket's buffer. Invariants: a file operation stays in its slot, with
//! descriptor and buffers, until the ring has answered, even if its future is dropped or the core
//! ends; every submitted entry is answered once (the notifier's multi-shot poll many times), so
//! user data can name a slot without a generation.
#![allow(unsafe_code)]

mod slot;

use std::cell::RefCell;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::backend::poller::{Event, Poller};
use crate::backend::{Direction, SocketKey, os};
use crate::file::{Action, FileDone, FileOp, FileThreads, no_thread};
use crate::oneshot::Sender;
use slot::FileSlot;

const SUBMISSIONS: u32 = 256;
/// File operations go to the kernel in groups of this size; the rest when a turn ends.
const GROUP: usize = 4;
const COMPLETIONS: u32 = 4096;

/// User data of an entry: its two upper bits give the kind. A socket key has 62 bits.
const TAG_SHIFT: u32 = 62;
const TAG_READ: u64 = 0;
const TAG_WRITE: u64 = 1;
const TAG_FILE: u64 = 2;
const TAG_OTHER: u64 = 3;
const NOTIFIER: u64 = TAG_OTHER << TAG_SHIFT;
/// User data of cancellations, whose answers are ignored.
const CANCEL: u64 = NOTIFIER | 1;

pub(crate) struct Uring {
    inner: RefCell<Inner>,
    files: FileThreads,
    notifier: Arc<os::EventFd>,
}

struct Inner {
    ring: ManuallyDrop<IoUring>,
    ops: ManuallyDrop<Vec<Option<FileSlot>>>,
    vacant: Vec<u32>,
    /// Entries that are still to be answered, the notifier's poll included.
    in_flight: usize,
    /// Answered file operations; their answers are sent after the borrow ends.
    finished: Vec<(Sender<FileDone>, FileDone)>,
    /// Operations that wait for room in the ring to be submitted again.
    restart: Vec<u32>,
    /// Operations in slots that the kernel may do on a thread.
    aside: usize,
}

impl Uring {
    /// Makes a poller. Fails where the kernel or a container's filter denies io_uring, or the
    /// kernel lacks a needed feature.
    pub(crate) fn new(notifier: Arc<os::EventFd>, name: &str) -> io::Result<Self> {
        let ring = build_ring()?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring before Linux 5.11"));
        }
        let mut inner = Inner {
            ring: ManuallyDrop::new(ring),
            ops: ManuallyDrop::new(Vec::new()),
            vacant: Vec::new(),
            in_flight: 0,
            finished: Vec::new(),
            restart: Vec::new(),
            aside: 0,
        };
        inner.watch_notifier(notifier.as_raw_fd())?;
        inner.ring.submit()?;
        Ok(Self { inner: RefCell::new(inner), files: FileThreads::new(name), notifier })
    }
}

/// Returns the cheapest ring that the kernel supports: completions handled in our own calls (6.1),
/// else without interrupts (5.19), else plain.
fn build_ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)
        .or_else(|_| {
            IoUring::builder()
                .setup_coop_taskrun()
                .setup_taskrun_flag()
                .setup_cqsize(COMPLETIONS)
                .build(SUBMISSIONS)
        })
        .or_else(|_| IoUring::builder().setup_cqsize(COMPLETIONS).build(SUBMISSIONS))
}

fn user_data(key: SocketKey, direction: Direction) -> u64 {
    let tag = match direction {
        Direction::Read => TAG_READ,
        Direction::Write => TAG_WRITE,
    };
    tag << TAG_SHIFT | key.0
}

impl Inner {
    /// Queues an entry; submits queued ones first if the ring is full.
    ///
    /// # Safety
    /// All memory that the entry points to must live until the entry is answered.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        for _ in 0..2 {
            // SAFETY: by our own contract.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                self.in_flight += 1;
                return Ok(());
            }
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "the submission queue is full"))
    }

    /// Polls the notifier, multi-shot. Each notification is an edge and gives an answer, so the
    /// counter is never read.
    fn watch_notifier(&mut self, fd: RawFd) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(fd), libc::POLLIN.cast_unsigned().into());
        // SAFETY: the entry points to nothing.
        unsafe { self.push(&entry.multi(true).build().user_data(NOTIFIER)) }
    }

    fn insert(&mut self, slot: FileSlot) -> u32 {
        self.aside += usize::from(is_aside(&slot.op.action));
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.ops.push(None);
            u32::try_from(self.ops.len() - 1).expect("fewer than 2^32 operations fit in memory")
        });
        self.ops[index as usize] = Some(slot);
        index
    }

    fn end(&mut self, index: u32, result: io::Result<u64>) {
        if let Some(slot) = self.ops[index as usize].take() {
            self.vacant.push(index);
            self.aside -= usize::from(is_aside(&slot.op.action));
            self.finished.push((slot.reply, slot.op.finish(result)));
        }
    }

    /// Submits the rest of a file operation.
    fn start(&mut self, index: u32) {
        let Some(slot) = &mut self.ops[index as usize] else { return };
        let entry = slot.entry().user_data(TAG_FILE << TAG_SHIFT | u64::from(index));
        // SAFETY: the slot owns descriptor, buffers and vectors, and is kept until the answer.
        // Buffers keep their address when the slot moves, as they are behind pointers.
        match unsafe { self.push(&entry) } {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => self.restart.push(index),
            Err(error) => self.end(index, Err(error)),
        }
    }

    /// Processes the answer to a file operation.
    fn answered(&mut self, index: u32, result: i32) {
        let Some(Some(slot)) = self.ops.get_mut(index as usize) else { return };
        let Ok(count) = usize::try_from(result) else {
            let error = io::Error::from_raw_os_error(-result);
            if is_passing(&error) {
                self.start(index);
            } else if error.raw_os_error() == Some(libc::ECANCELED) {
                // Nothing of ours cancels it: the kernel could start none of its workers for it.
                self.end(index, Err(no_thread(&error)));
            } else {
                self.end(index, Err(error));
            }
            return;
        };
        match slot.op.action {
            Action::Read { .. } | Action::Write { .. } => match slot.op.advance(count) {
                Ok(true) => {
                    let total = slot.op.transferred as u64;
                    self.end(index, Ok(total));
                }
                Ok(false) => self.start(index),
                Err(error) => self.end(index, Err(error)),
            },
            _ => self.end(index, Ok(0)),
        }
    }

    /// Processes all answers that have arrived.
    fn reap(&mut self, notifier: Option<RawFd>, events: &mut Vec<Event>) -> io::Result<()> {
        loop {
            let next = self.ring.completion().next();
            let Some(answer) = next else { break };
            let (data, result) = (answer.user_data(), answer.result());
            let more = cqueue::more(answer.flags());
            if !more {
                self.in_flight -= 1;
            }
            match data >> TAG_SHIFT {
                TAG_READ | TAG_WRITE => events.push(event_of(data, result)),
                #[expect(clippy::cast_possible_truncation, reason = "indices have 32 bits")]
                TAG_FILE => self.answered(data as u32, result),
                _ if data == NOTIFIER && !more => {
                    if let Some(notifier) = notifier {
                        self.watch_notifier(notifier)?;
                    }
                }
                _ => {}
            }
        }
        for index in std::mem::take(&mut self.restart) {
            self.start(index);
        }
        Ok(())
    }

    /// Submits queued entries, and waits up to `wait_ns` for an answer.
    fn enter(&mut self, wait_ns: Option<u64>) -> io::Result<()> {
        let entered = if wait_ns == Some(0) {
            let submission = self.ring.submission();
            let quiet = submission.is_empty() && !submission.taskrun() && !submission.cq_overflow();
            drop(submission);
            if quiet {
                return Ok(());
            }
            self.ring.submit()
        } else if let Some(ns) = wait_ns {
            let time = Timespec::from(Duration::from_nanos(ns));
            self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
        } else {
            self.ring.submit_and_wait(1)
        };
        match entered {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns true for an operation that the kernel does on a thread of its own, which may be bound to
/// the caller's CPU: a sync always, a write where it would wait, such as for blocks of a file that
/// were never written.
fn is_aside(action: &Action) -> bool {
    !matches!(action, Action::Read { .. })
}

/// Returns true for errors of `io_uring_enter` and of entries that another try may get over.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ETIME))
}

fn event_of(data: u64, result: i32) -> Event {
    let key = SocketKey(data & ((1 << TAG_SHIFT) - 1));
    let read = data >> TAG_SHIFT == TAG_READ;
    // A poll that failed or was cancelled counts as an event: the transfer will tell.
    let flags = u32::try_from(result).unwrap_or(libc::POLLIN.cast_unsigned().into());
    let has = |wanted: libc::c_short| flags & u32::from(wanted.cast_unsigned()) != 0;
    let dead = has(libc::POLLHUP | libc::POLLERR);
    Event {
        key,
        readable: read,
        writable: !read,
        read_closed: read && (dead || has(libc::POLLRDHUP)),
        write_closed: !read && dead,
    }
}

impl Poller for Uring {
    fn name(&self) -> &'static str {
        "uring"
    }

    fn add(&self, _key: SocketKey, _fd: RawFd) -> io::Result<()> {
        Ok(())
    }

    fn arm(&self, key: SocketKey, fd: RawFd, direction: Direction) -> io::Result<()> {
        let events = match direction {
            Direction::Read => libc::POLLIN | libc::POLLRDHUP,
            Direction::Write => libc::POLLOUT,
        };
        let entry = opcode::PollAdd::new(Fd(fd), events.cast_unsigned().into());
        // SAFETY: the entry points to nothing.
        unsafe { self.inner.borrow_mut().push(&entry.build().user_data(user_data(key, direction))) }
    }

    fn remove(&self, key: SocketKey, _fd: RawFd, armed: [bool; 2]) {
        let mut inner = self.inner.borrow_mut();
        for (armed, direction) in armed.into_iter().zip([Direction::Read, Direction::Write]) {
            if armed {
                // A poll holds the socket open: without this its peer would not see it close.
                let entry = opcode::PollRemove::new(user_data(key, direction)).build();
                // SAFETY: the entry points to nothing. If there is no room, the poll ends with
                // the ring.
                let _pushed = unsafe { inner.push(&entry.user_data(CANCEL)) };
            }
        }
        if armed != [false; 2] {
            // The caller closes its descriptor next; entries name it by number, so they must
            // reach the kernel before the number can mean another file.
            let _entered = inner.enter(Some(0));
        }
    }

    fn file(&self, op: Box<FileOp>, reply: Sender<FileDone>) {
        let by_ring = match &op.action {
            Action::Read { .. } | Action::Write { .. } => op.wanted() > 0,
            Action::Sync | Action::Allocate { .. } => true,
            Action::Open { .. } | Action::SetLen(_) | Action::Len => false,
        };
        if !by_ring {
            return self.files.start(op, reply);
        }
        let mut inner = self.inner.borrow_mut();
        let index = inner.insert(FileSlot::new(op, reply));
        inner.start(index);
        if inner.ring.submission().len() >= GROUP {
            // The disk begins while we go on; what fails here is reported when the turn ends.
            let _submitted = inner.ring.submit();
        }
        let finished = std::mem::take(&mut inner.finished);
        drop(inner);
        deliver(finished);
    }

    fn works_aside(&self) -> bool {
        self.inner.borrow().aside > 0 || self.files.work()
    }

    fn poll(&self, wait_ns: Option<u64>, events: &mut Vec<Event>) -> io::Result<()> {
        let mut inner = self.inner.borrow_mut();
        // What has been answered already must not wait behind a sleep.
        let idle = inner.ring.completion().is_empty() && inner.restart.is_empty();
        let wait_ns = if idle { wait_ns } else { Some(0) };
        inner.enter(wait_ns)?;
        inner.reap(Some(self.notifier.as_raw_fd()), events)?;
        let finished = std::mem::take(&mut inner.finished);
        drop(inner);
        deliver(finished);
        Ok(())
    }
}

/// Sends answers. This wakes tasks and may drop buffers.
fn deliver(finished: Vec<(Sender<FileDone>, FileDone)>) {
    for (reply, done) in finished {
        reply.send(done);
    }
}

/// Number of attempts to get all entries back from the ring before its memory is leaked.
const DRAIN_ROUNDS: usize = 1000;
/// The same when only polls are left: they end with the ring.
const DRAIN_ROUNDS_OF_POLLS: usize = 20;

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the entry points to nothing.
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(CANCEL);
        // SAFETY: as above.
        let mut pushed = unsafe { self.push(&entry) }.is_ok();
        for round in 0..DRAIN_ROUNDS {
            let only_polls = self.ops.iter().all(Option::is_none);
            let patience = if only_polls { DRAIN_ROUNDS_OF_POLLS } else { DRAIN_ROUNDS };
            if self.in_flight == 0 || !pushed || round >= patience {
                break;
            }
            pushed =
                self.enter(Some(10_000_000)).is_ok() && self.reap(None, &mut Vec::new()).is_ok();
            self.finished.clear();
        }
        if self.ops.iter().any(Option::is_some) {
            // The ring may still write into buffers: leak them rather than free them.
            return;
        }
        // SAFETY: neither is used again, and nothing is in flight.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            ManuallyDrop::drop(&mut self.ops);
        }
    }
}
