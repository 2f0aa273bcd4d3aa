//! Times of work in this process: wall time, and CPU time of a thread.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Runs `work` and returns its rate in wall time, GB/s.
pub fn rate(bytes: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    gb_per_s(bytes as u64, start.elapsed())
}

/// Returns bytes per nanosecond, which are GB/s.
#[allow(clippy::cast_precision_loss)] // a measure of time has fewer digits
pub fn gb_per_s(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 / elapsed.as_nanos() as f64
}

/// Runs `work` and returns the CPU time of this thread that it took, ns: what other work on the
/// machine takes is left out.
#[allow(clippy::cast_precision_loss)] // a measure of time has fewer digits
pub fn cpu_ns(work: impl FnOnce()) -> f64 {
    let before = clock_gettime(ClockId::ThreadCPUTime);
    work();
    let after = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, ns) = (after.tv_sec - before.tv_sec, after.tv_nsec - before.tv_nsec);
    seconds as f64 * 1e9 + ns as f64
}
