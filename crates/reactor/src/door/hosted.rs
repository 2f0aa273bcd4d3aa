//! [`Hosted`]: a runtime on threads of its own, which other threads use through its [`Door`].
//!
//! For libraries inside programs that are not built on this crate. Invariants: closing it answers
//! every request under way; a fork of the process leaves it alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use super::{Door, Process, Unanswered};
use crate::config::Config;
use crate::core::CoreId;
use crate::current::try_current;
use crate::oneshot::{Receiver, Sender, oneshot};
use crate::runtime::{Error, run};

/// A runtime in the background. Dropping it closes it.
pub struct Hosted {
    door: Door,
    running: Mutex<Option<Running>>,
    process: Process,
}

struct Running {
    /// Dropping them ends the cores.
    stop: Vec<Sender<()>>,
    thread: JoinHandle<Result<Vec<()>, Error>>,
}

impl Hosted {
    /// Starts `config.cores` cores that run until [`Self::close`]; at most `capacity` requests are
    /// under way at a time.
    ///
    /// # Errors
    /// As [`run`].
    ///
    /// # Panics
    /// Without capacity.
    pub fn start(config: &Config, capacity: usize) -> Result<Self, Error> {
        assert!(capacity > 0, "a door needs room for a request");
        let (stop, stopped): (Vec<_>, Vec<_>) = (0..config.cores).map(|_| oneshot()).unzip();
        let stopped: Arc<[Mutex<Option<Receiver<()>>>]> =
            stopped.into_iter().map(|one| Mutex::new(Some(one))).collect();
        let (ready, door) = mpsc::channel();
        let main = move |core: CoreId| {
            let stopped = lock(&stopped[core.0]).take();
            if core == CoreId(0) {
                // The receiver is there until the first door has come.
                let _sent = ready.send(Door::new(capacity));
            }
            async move {
                if let Some(stopped) = stopped {
                    stopped.await;
                }
            }
        };
        let of_runtime = config.clone();
        let builder = std::thread::Builder::new().name(format!("{}-runtime", config.name));
        let thread = builder
            .spawn(move || run(&of_runtime, main))
            .map_err(|source| Error::Start { core: CoreId(0), source })?;
        match door.recv() {
            Ok(door) => {
                let running = Mutex::new(Some(Running { stop, thread }));
                Ok(Self { door, running, process: Process::current() })
            }
            // It has ended without a door: it says why.
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error),
                Ok(Ok(_)) | Err(_) => {
                    let message = "it ended at once".to_owned();
                    Err(Error::Panicked { core: CoreId(0), message })
                }
            },
        }
    }

    /// Returns the door.
    #[must_use]
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// Returns an error in a fork of the process that started the runtime.
    ///
    /// # Errors
    /// [`Unanswered::Forked`].
    pub fn check_process(&self) -> Result<(), Unanswered> {
        self.process.check()
    }

    /// Ends the runtime, answers every request under way with [`Unanswered::Closed`], and waits for
    /// its threads. On one of its own threads, in a callback, it does not wait. Closing twice, or
    /// in a fork, has no effect.
    ///
    /// # Errors
    /// The error that had ended the runtime before.
    pub fn close(&self) -> Result<(), Error> {
        if self.process.check().is_err() {
            return Ok(());
        }
        let Some(Running { stop, thread }) = lock(&self.running).take() else { return Ok(()) };
        drop(stop);
        if try_current().is_some() {
            return Ok(());
        }
        match thread.join() {
            Ok(ended) => ended.map(drop),
            Err(_) => {
                let message = "the thread that started the cores panicked".to_owned();
                Err(Error::Panicked { core: CoreId(0), message })
            }
        }
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        if self.process.check().is_err() {
            // Another thread may have held locks at the fork, and the threads are not here to join.
            std::mem::forget(self.running.get_mut().ok().and_then(Option::take));
            return;
        }
        // Every request has its own error already.
        let _ended = self.close();
    }
}

/// Locks a value. No code under these locks can panic, so a poisoned one is still consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
