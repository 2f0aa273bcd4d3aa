//! Thread affinity, priority and CPU time, and the process's session and standard error: system
//! calls that the standard library does not offer, each wrapped to be safe.
//!
//! This module starts no threads and changes only threads of this process.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

use libc::c_int;

use super::os::check;
use crate::instant::nanos;

/// Beginning of the error of work for which the system gave no thread.
pub(crate) const NO_THREAD: &str = "no thread could be started: the limit of processes or threads \
     is reached (pids.max of the control group, ulimit -u)";

/// Binds the calling thread to one of the CPUs it may use: number `index`, modulo their count.
pub(crate) fn pin_thread(index: usize) -> io::Result<()> {
    // SAFETY: the sets are live values of the size given, zeroed as CPU_ZERO would.
    unsafe {
        let mut allowed: libc::cpu_set_t = mem::zeroed();
        let size = mem::size_of::<libc::cpu_set_t>();
        check(libc::sched_getaffinity(0, size, &raw mut allowed))?;
        let limit = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
        let cpus: Vec<usize> = (0..limit).filter(|&cpu| libc::CPU_ISSET(cpu, &allowed)).collect();
        let Some(&cpu) = cpus.get(index % cpus.len().max(1)) else { return Ok(()) };
        let mut one: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        check(libc::sched_setaffinity(0, size, &raw const one)).map(drop)
    }
}

/// Gives a thread of this process (0: the calling one) the lowest priority: `SCHED_IDLE`, or nice
/// 19 where that is refused. Returns true if nice 19 had to do.
pub(crate) fn lower_thread(id: libc::pid_t) -> io::Result<bool> {
    if schedule(id, libc::SCHED_IDLE).is_ok() {
        return Ok(false);
    }
    let id = libc::id_t::try_from(id).map_err(io::Error::other)?;
    // SAFETY: no pointers; a "process" of Linux's setpriority is a thread, and 0 is the caller.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, id, 19) })?;
    Ok(true)
}

/// Undoes [`lower_thread`]: gives the thread normal priority. Usually needs privileges.
pub(crate) fn raise_thread(id: libc::pid_t) -> io::Result<()> {
    schedule(id, libc::SCHED_OTHER)
}

fn schedule(id: libc::pid_t, policy: c_int) -> io::Result<()> {
    // SAFETY: the parameter is a live value, and zeros are a valid one; a thread that there is not
    // is refused.
    let set = unsafe {
        let parameter: libc::sched_param = mem::zeroed();
        libc::sched_setscheduler(id, policy, &raw const parameter)
    };
    check(set).map(drop)
}

/// Returns the calling thread's id, in the form that [`lower_thread`] takes.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: no arguments; it cannot fail.
    u32::try_from(unsafe { libc::gettid() }).expect("ids are positive")
}

/// Returns the CPU time of the calling thread, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time of a running thread, ns.
#[allow(clippy::unnecessary_cast, reason = "the type of the id differs by platform")]
pub(crate) fn thread_cpu_ns_of(thread: &JoinHandle<()>) -> u64 {
    let mut clock = 0;
    let id = thread.as_pthread_t() as libc::pthread_t;
    // SAFETY: the pointer is to a live, writable value, and a handle keeps its thread's id valid.
    match unsafe { libc::pthread_getcpuclockid(id, &raw mut clock) } {
        0 => clock_ns(clock),
        _ => 0,
    }
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    // SAFETY: the pointer is to a live, writable value; a clock that there is not leaves it zero.
    let time = unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(clock, &raw mut time);
        time
    };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let subsecond_ns = u32::try_from(time.tv_nsec).unwrap_or(0);
    nanos(std::time::Duration::new(seconds, subsecond_ns))
}

/// Tells the kernel that the calling thread answers for a block device, so that it gets memory
/// without waiting for writes to that device. Takes `CAP_SYS_RESOURCE`.
pub(crate) fn serves_a_block_device() -> io::Result<()> {
    /// `PR_SET_IO_FLUSHER` of Linux 5.6, which not every C library names.
    const SET_IO_FLUSHER: c_int = 57;
    // SAFETY: no pointers; it changes only the calling thread.
    check(unsafe { libc::prctl(SET_IO_FLUSHER, 1, 0, 0, 0) }).map(drop)
}

/// Returns how many threads of this process can run at once, at least 1: on as many processors as
/// it may use, or as many whole ones as its control groups give it the time of.
#[must_use]
pub fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Makes this process the leader of a new session.
///
/// # Errors
/// When it already leads a process group.
pub fn lead_session() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Lets the kernel kill this process when the thread that started it ends, however it ends.
/// `parent` is that process.
///
/// # Errors
/// When `parent` has ended already.
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
    // The parent may have ended before the signal was asked for.
    // SAFETY: no pointers, and it cannot fail.
    if u32::try_from(unsafe { libc::getppid() }) == Ok(parent) {
        return Ok(());
    }
    Err(io::Error::other(format!("process {parent}, which started this one, has ended")))
}

/// Redirects this process's standard error to a file.
///
/// # Errors
/// When the process may open no more descriptors.
pub fn redirect_stderr(file: &File) -> io::Result<()> {
    // SAFETY: no pointers, and the file is open.
    check(unsafe { libc::dup2(file.as_raw_fd(), libc::STDERR_FILENO) }).map(drop)
}
