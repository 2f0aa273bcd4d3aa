//! The table of open handles.
//!
//! A handle is a number that C sees as a pointer, and is never dereferenced. Numbers are not used
//! again. Invariants: a fork of the process finds the table of its parent without taking its lock,
//! and makes a table of its own when it opens something; tables are never freed.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_client::{Client, Unanswered};

use crate::completion::Queue;
use crate::fault::Fault;

/// An open handle.
#[derive(Clone)]
pub(crate) enum Handle {
    Namespace(Client),
    Queue(Arc<Queue>),
}

/// The handles of one process.
struct Table {
    process: u32,
    /// First number that this process gave; smaller ones are its parent's.
    first: usize,
    open: Mutex<HashMap<usize, Handle>>,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());
static NEXT: AtomicUsize = AtomicUsize::new(1);

impl Table {
    /// Returns the last table that was made, perhaps by a parent of this process.
    fn last() -> Option<&'static Self> {
        // SAFETY: null, or a leaked table.
        unsafe { TABLE.load(SeqCst).as_ref() }
    }

    fn of_this_process() -> &'static Self {
        let process = std::process::id();
        loop {
            let last = Self::last();
            match last {
                Some(table) if table.process == process => return table,
                _ => {}
            }
            let first = NEXT.load(SeqCst);
            let made = Box::leak(Box::new(Self { process, first, open: Mutex::default() }));
            let seen = last.map_or(ptr::null_mut(), |table| ptr::from_ref(table).cast_mut());
            // A table that another thread made first is used by all; ours is a few bytes.
            let _first = TABLE.compare_exchange(seen, made, SeqCst, SeqCst);
        }
    }

    /// Locks the table. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Handle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores an open handle; returns its number as C sees it.
pub(crate) fn insert(handle: Handle) -> *mut c_void {
    let table = Table::of_this_process();
    let number = NEXT.fetch_add(1, SeqCst);
    table.lock().insert(number, handle);
    ptr::without_provenance_mut(number)
}

/// Takes a handle out of the table.
pub(crate) fn remove(handle: *const c_void) -> Result<Handle, Fault> {
    with(handle, |open, number| open.remove(&number))
}

/// Returns an open namespace.
pub(crate) fn namespace(handle: *const c_void) -> Result<Client, Fault> {
    match with(handle, |open, number| open.get(&number).cloned())? {
        Handle::Namespace(client) => Ok(client),
        Handle::Queue(_) => Err(Fault::new(libc::EBADF, "the handle is a queue, not a namespace")),
    }
}

/// Returns an open queue.
pub(crate) fn queue(handle: *const c_void) -> Result<Arc<Queue>, Fault> {
    match with(handle, |open, number| open.get(&number).cloned())? {
        Handle::Queue(queue) => Ok(queue),
        Handle::Namespace(_) => {
            Err(Fault::new(libc::EBADF, "the handle is a namespace, not a queue"))
        }
    }
}

fn with(
    handle: *const c_void,
    find: impl FnOnce(&mut HashMap<usize, Handle>, usize) -> Option<Handle>,
) -> Result<Handle, Fault> {
    let closed = || Fault::new(libc::EBADF, "the handle is closed, or never was one");
    let table = Table::last().ok_or_else(closed)?;
    let number = handle.addr();
    if table.process != std::process::id() || (1..table.first).contains(&number) {
        return Err(Unanswered::Forked.into());
    }
    find(&mut table.lock(), number).ok_or_else(closed)
}
