//! [`Interruptible`]: a reader or a writer that fails once a signal has asked the command to stop,
//! so that what it feeds ends as after any other failure, and cleans up.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::report::Failure;
use crate::runtime::Interrupt;

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

/// The signal that ends a command over one file, if it is watched for.
pub(crate) struct Watch(Option<Interrupt>);

impl Watch {
    /// Watches for the signal if `may_watch`; else it ends the process.
    pub(crate) fn begin(may_watch: bool) -> Result<Self, Failure> {
        Ok(Self(may_watch.then(Interrupt::watch).transpose()?))
    }

    /// Returns a reader that the signal ends.
    pub(crate) fn reader(&self, inner: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        match &self.0 {
            Some(interrupt) => Box::new(Interruptible::new(inner, &interrupt.asked)),
            None => inner,
        }
    }

    /// Returns a writer that the signal ends.
    pub(crate) fn writer(&self, inner: Box<dyn Write + Send>) -> Box<dyn Write + Send> {
        match &self.0 {
            Some(interrupt) => Box::new(Interruptible::new(inner, &interrupt.asked)),
            None => inner,
        }
    }

    /// Returns the outcome; the failure after a signal is that of `why`.
    pub(crate) fn end<T>(&self, done: Result<T, Failure>, why: &str) -> Result<T, Failure> {
        let is_asked = |interrupt: &Interrupt| interrupt.asked.load(Relaxed);
        done.map_err(|failure| match self.0.as_ref().is_some_and(is_asked) {
            true => Failure::run(format!("interrupted: {why}")),
            false => failure,
        })
    }
}
