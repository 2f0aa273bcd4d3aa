//! Queues of completions: making, freeing, waiting, reaping.
#![allow(unsafe_code, clippy::missing_safety_doc, reason = "the header documents the functions")]

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use crate::completion::Queue;
use crate::fault::{Fault, guarded};
use crate::handle::{self, Handle};

/// Makes a queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn csd_kv_qpair_alloc(qpair: *mut *mut c_void) -> c_int {
    guarded(|| {
        if qpair.is_null() {
            return Err(Fault::invalid("the place for the handle is null"));
        }
        let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
        let queue = Queue::new().map_err(|error| Fault::new(errno(error), "no descriptor"))?;
        // SAFETY: the caller's variable.
        unsafe { qpair.write(handle::insert(Handle::Queue(Arc::new(queue)))) };
        Ok(0)
    })
}

/// Frees a queue.
#[unsafe(no_mangle)]
pub extern "C" fn csd_kv_qpair_free(qpair: *mut c_void) -> c_int {
    guarded(|| {
        handle::queue(qpair)?;
        handle::remove(qpair).map(|_| 0)
    })
}

/// Returns the queue's descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn csd_kv_qpair_get_fd(qpair: *mut c_void) -> c_int {
    guarded(|| Ok(handle::queue(qpair)?.as_fd().as_raw_fd()))
}

/// Calls the callbacks of commands that have ended.
#[unsafe(no_mangle)]
pub extern "C" fn csd_kv_qpair_process_completions(qpair: *mut c_void, most: u32) -> c_int {
    guarded(|| {
        let most = if most == 0 { usize::MAX } else { most as usize };
        let done = handle::queue(qpair)?.drain(most.min(c_int::MAX as usize))?;
        let count = c_int::try_from(done.len()).unwrap_or(c_int::MAX);
        for (command, outcome) in done {
            command.finish(outcome);
        }
        Ok(count)
    })
}
