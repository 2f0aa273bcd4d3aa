//! [`Fault`]: errors as negative numbers, with their words for `csd_kv_last_error`.
//!
//! Invariant: the words belong to the thread that made the call.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use csd_client::{Error, Status, Unanswered};

/// Reason why a call failed.
#[derive(Debug)]
pub(crate) struct Fault {
    /// A positive errno.
    pub(crate) errno: c_int,
    /// NVMe status; 0 if the drive did not answer with one.
    pub(crate) status: u16,
    words: String,
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

impl Fault {
    pub(crate) fn new(errno: c_int, words: impl Into<String>) -> Self {
        Self { errno, status: 0, words: words.into() }
    }

    pub(crate) fn invalid(words: &str) -> Self {
        Self::new(libc::EINVAL, words)
    }

    /// Returns the fault of a key that does not exist.
    pub(crate) fn no_key() -> Self {
        let status = Status::KEY_DOES_NOT_EXIST;
        Self { errno: libc::ENOENT, status: status.0, words: status.to_string() }
    }

    /// Keeps the words for `csd_kv_last_error`; returns the result of the call.
    pub(crate) fn report(self) -> c_int {
        let words = CString::new(self.words.replace('\0', " ")).unwrap_or_default();
        // A thread that is ending has no more place for words.
        let _kept = LAST.try_with(|last| last.replace(words));
        -self.errno
    }
}

impl From<Unanswered> for Fault {
    fn from(unanswered: Unanswered) -> Self {
        let errno = match unanswered {
            Unanswered::Full => libc::ENOMEM,
            Unanswered::OnCore => libc::EDEADLK,
            Unanswered::Forked => libc::ECHILD,
            Unanswered::Interrupted => libc::EINTR,
            _ => libc::ESHUTDOWN,
        };
        Self::new(errno, unanswered.to_string())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        use csd_initiator::Error as Drive;
        let status = error.status();
        let errno = match &error {
            Error::Unanswered(unanswered) => return Self::from(*unanswered),
            Error::Settings(_) | Error::KeyLength(_) | Error::PieceKey => libc::EINVAL,
            Error::NoNamespace { .. } => libc::EINVAL,
            Error::Drive(Drive::BadAddress { .. } | Drive::Misuse { .. }) => libc::EINVAL,
            Error::Replaced(_) => libc::EAGAIN,
            Error::Drive(Drive::TooLarge { .. }) => libc::EMSGSIZE,
            Error::Drive(Drive::Status { status, .. }) => of_status(*status),
            Error::Drive(Drive::Timeout { .. }) => libc::ETIMEDOUT,
            Error::Drive(Drive::Authentication { .. }) => libc::EACCES,
            Error::Drive(
                Drive::Unreachable { .. }
                | Drive::Lost { .. }
                | Drive::Protocol { .. }
                | Drive::Closed { .. },
            ) => libc::ENXIO,
            _ => libc::EIO,
        };
        let status = status.map_or(0, |status| status.0);
        Self { errno, status, words: error.to_string() }
    }
}

fn of_status(status: Status) -> c_int {
    match status {
        Status::KEY_DOES_NOT_EXIST => libc::ENOENT,
        Status::KEY_EXISTS => libc::EEXIST,
        Status::CAPACITY_EXCEEDED => libc::ENOSPC,
        Status::INVALID_VALUE_SIZE => libc::EMSGSIZE,
        Status::INVALID_FIELD | Status::INVALID_KEY_SIZE => libc::EINVAL,
        Status::CONNECT_INVALID_HOST | Status::AUTHENTICATION_REQUIRED => libc::EACCES,
        _ => libc::EIO,
    }
}

/// Runs the body of a call: turns its fault into a number, and a panic into `ENOTRECOVERABLE`.
pub(crate) fn guarded(body: impl FnOnce() -> Result<c_int, Fault>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => result,
        Ok(Err(fault)) => fault.report(),
        Err(_) => Fault::new(libc::ENOTRECOVERABLE, "a bug in libcsd_kv: it panicked").report(),
    }
}

/// Returns the words for the last error of the calling thread.
#[allow(unsafe_code)] // exported under its own name
#[unsafe(no_mangle)]
pub extern "C" fn csd_kv_last_error() -> *const c_char {
    const NONE: &CStr = c"";
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(NONE.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_number_and_words() {
        let result = guarded(|| panic!("on purpose"));
        assert_eq!(result, -libc::ENOTRECOVERABLE);
        let last = LAST.with(|last| last.borrow().to_string_lossy().into_owned());
        assert!(last.contains("a bug in libcsd_kv"), "{last}");
        assert_eq!(guarded(|| Ok(3)), 3);
        assert_eq!(guarded(|| Err(Fault::from(Unanswered::Forked))), -libc::ECHILD);
    }
}
