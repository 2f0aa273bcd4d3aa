//! Waiting without the interpreter's lock, signals meanwhile, and the end of the interpreter.
//!
//! The interpreter runs handlers of signals on its main thread, between two steps of it. So a wait
//! asks now and then if there is a signal, and ends with what its handler raises, such as
//! `KeyboardInterrupt`.
//!
//! A thread that wants the lock back after the interpreter has ended is ended by it, in the middle
//! of Rust, which aborts the process. So at exit the package closes every client, which ends every
//! wait, and then calls [`settle`]. Invariant: no thread waits in here after that.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use csd_client::{Unanswered, interruptible};
use pyo3::marker::Ungil;
use pyo3::prelude::*;

use crate::convert::fail;

static WAITING: AtomicUsize = AtomicUsize::new(0);
static EXITING: AtomicBool = AtomicBool::new(false);
/// Longest wait for other threads at exit, in steps of a millisecond.
const STEPS_MAX: u32 = 10_000;

/// Counts a thread from before it gives the lock up until it has it back.
struct Counted;

impl Counted {
    fn new() -> Self {
        WAITING.fetch_add(1, SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, SeqCst);
    }
}

/// Runs `body` of a client without the interpreter's lock, as [`detached`] does.
pub(crate) fn wait<T: Ungil + Send>(
    py: Python<'_>,
    body: impl Ungil + Send + FnOnce() -> Result<T, csd_client::Error>,
) -> PyResult<T> {
    detached(py, body)?.map_err(fail)
}

/// Runs `body` without the interpreter's lock; refuses once the interpreter is about to end.
///
/// # Errors
/// Also what the handler of a signal raises meanwhile.
pub(crate) fn detached<T: Ungil + Send>(
    py: Python<'_>,
    body: impl Ungil + Send + FnOnce() -> T,
) -> PyResult<T> {
    let _counted = Counted::new();
    if EXITING.load(SeqCst) {
        return Err(fail(Unanswered::Closed.into()));
    }
    at_any_time(py, body)
}

/// As [`detached`], also when the interpreter is about to end.
pub(crate) fn at_any_time<T: Ungil + Send>(
    py: Python<'_>,
    body: impl Ungil + Send + FnOnce() -> T,
) -> PyResult<T> {
    let done = py.detach(|| interruptible(is_interrupted, body));
    RAISED.take().map_or(Ok(done), Err)
}

thread_local! {
    /// Exception that the handler of a signal has raised while this thread waited.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs the handlers of signals, on the interpreter's main thread; returns true if one raised.
fn is_interrupted() -> bool {
    Python::attach(|py| match py.check_signals() {
        Ok(()) => false,
        Err(raised) => {
            RAISED.set(Some(raised));
            true
        }
    })
}

/// Refuses calls from now on, because the interpreter is about to end.
#[pyfunction]
pub(crate) fn shut() {
    EXITING.store(true, SeqCst);
}

/// Forgets the threads that waited in the parent of this process: they are not in a fork of it.
#[pyfunction]
pub(crate) fn forked() {
    WAITING.store(0, SeqCst);
}

/// Waits until no thread is in a call.
#[pyfunction]
pub(crate) fn settle(py: Python<'_>) {
    py.detach(|| {
        for _ in 0..STEPS_MAX {
            if WAITING.load(SeqCst) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}
