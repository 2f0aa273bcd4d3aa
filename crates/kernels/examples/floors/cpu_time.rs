//! CPU time of this thread: what a call takes when other work on the machine is left out.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long};

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
}

/// `CLOCK_THREAD_CPUTIME_ID` of Linux.
const THREAD: c_int = 3;

/// Returns nanoseconds.
#[allow(clippy::cast_precision_loss)] // a measure of time has fewer digits
pub(crate) fn nanoseconds() -> f64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the structure is that of 64-bit Linux, and lives during the call.
    let code = unsafe { clock_gettime(THREAD, &raw mut time) };
    assert_eq!(code, 0, "no CPU time");
    time.seconds as f64 * 1e9 + time.nanoseconds as f64
}
