//! Pinning of servers to CPUs.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Returns the CPUs that this process may use, ascending; empty if the kernel does not say.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Returns true if servers can be pinned: the client needs a CPU of its own.
pub fn can_pin() -> bool {
    allowed().len() > 1
}

/// Restricts a thread to these CPUs; `None` is the calling thread.
///
/// # Errors
/// If the thread is gone, or may use none of them.
pub fn pin(thread: Option<Pid>, cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(thread, &set)?)
}
