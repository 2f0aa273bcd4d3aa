//! [`Command`] and [`Completion`]: the end of a command, as its caller sees it.
//!
//! Invariant: buffers are written and callbacks called on the thread that reaps, outside of locks.
#![allow(unsafe_code)]

use std::ffi::c_void;

use csd_client::{Completions, Error, Outcome};

use crate::fault::Fault;
use crate::memory::{Target, list_data};

/// `struct csd_kv_cpl`.
#[repr(C)]
pub struct Completion {
    error: i32,
    status: u16,
    reserved: u16,
    cdw0: u32,
}

/// `csd_kv_cmd_cb`.
pub type Callback = Option<unsafe extern "C" fn(*mut c_void, *const Completion)>;

/// A queue of commands that have ended.
pub(crate) type Queue = Completions<(Command, Result<Outcome, Error>)>;

/// The caller's part of a command under way.
pub(crate) struct Command {
    pub(crate) callback: Callback,
    pub(crate) argument: *mut c_void,
    pub(crate) target: Option<Target>,
    /// Length of the target, bytes.
    pub(crate) size: u32,
}

// SAFETY: the argument is only handed back to the caller, who may reap on any thread.
unsafe impl Send for Command {}

impl Command {
    /// Writes the caller's buffer and calls the callback.
    pub(crate) fn finish(self, outcome: Result<Outcome, Error>) {
        let done = self.deliver(outcome);
        let completion = match done {
            Ok(cdw0) => Completion { error: 0, status: 0, reserved: 0, cdw0 },
            Err(fault) => {
                let status = fault.status;
                Completion { error: fault.report(), status, reserved: 0, cdw0: 0 }
            }
        };
        if let Some(callback) = self.callback {
            // SAFETY: the caller's function, with the argument that belongs to it.
            unsafe { callback(self.argument, &raw const completion) };
        }
    }

    fn deliver(&self, outcome: Result<Outcome, Error>) -> Result<u32, Fault> {
        let write = |bytes: &[u8]| {
            if let Some(target) = self.target {
                // SAFETY: the header: the buffer stays valid until the callback was called.
                unsafe { target.write(bytes) };
            }
        };
        match outcome? {
            Outcome::Exists(false) | Outcome::Delete(false) | Outcome::Front(None) => {
                Err(Fault::no_key())
            }
            Outcome::Front(Some((bytes, whole))) => {
                write(&bytes);
                Ok(u32::try_from(whole).unwrap_or(u32::MAX))
            }
            Outcome::List(keys) => {
                write(&list_data(&keys, self.size)?);
                Ok(0)
            }
            _ => Ok(0),
        }
    }
}
