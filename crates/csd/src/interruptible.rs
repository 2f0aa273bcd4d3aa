//! [`Interruptible`]: a reader or a writer that fails once a signal has asked the command to stop,
//! so that what it feeds ends as after any other failure, and cleans up.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A reader or writer, and the flag of the signal.
pub(crate) struct Interruptible<T> {
    inner: T,
    asked: Arc<AtomicBool>,
}

impl<T> Interruptible<T> {
    pub(crate) fn new(inner: T, asked: &Arc<AtomicBool>) -> Self {
        Self { inner, asked: Arc::clone(asked) }
    }

    fn check(&self) -> io::Result<()> {
        match self.asked.load(Relaxed) {
            true => Err(io::Error::other("interrupted")),
            false => Ok(()),
        }
    }
}

impl<T: Read> Read for Interruptible<T> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.read(out)
    }
}

impl<T: Write> Write for Interruptible<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
