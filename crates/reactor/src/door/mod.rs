//! [`Door`]: requests to a core from threads that are no core.
//!
//! A request is a closure that makes a future. It travels by the core's mailbox, runs as a task of
//! the core, and its answer goes to a blocking waiter ([`Pending`]), a callback, or a queue with an
//! eventfd ([`Completions`]). This module runs nothing on the calling thread. Invariants: a request
//! is answered exactly once, with [`Unanswered`] if its core ends first, however it ends; at most
//! `capacity` requests are under way; no lock is held while a core runs a request or an answer is
//! delivered; a sleeping core is woken once, however many requests arrive before it runs.
//!
//! The simulation uses the same type: its one thread submits between two steps of the world and
//! takes answers with [`Pending::try_take`]. Waiting would stop the world, so it must not wait.
//!
//! - `room`: the bound on requests under way
//! - `pending`: an answer for a blocked thread
//! - `completions`: answers in a queue with an eventfd
//! - `hosted`: a runtime on threads of its own
//! - `interrupt`: waits that a signal can end

mod completions;
mod hosted;
mod interrupt;
mod pending;
mod room;

use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub use completions::Completions;
pub use hosted::Hosted;
pub use interrupt::interruptible;
pub use pending::Pending;

use crate::class::Class;
use crate::core::CoreId;
use crate::current::{current, try_current};
use crate::mailbox::{Message, Shared};
use room::{Permit, Room};

/// Reason why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unanswered {
    /// The core ended before it answered, or does not exist.
    #[error("the runtime has ended")]
    Closed,
    /// As many requests as the door's capacity are under way.
    #[error("too many requests are under way")]
    Full,
    /// A core's thread would wait for a core, perhaps for itself.
    #[error("a core's thread may not wait for an answer: it would wait for itself")]
    OnCore,
    /// The calling process is a fork: the runtime's threads exist only in its parent.
    #[error("this process was forked after the runtime had started: start another one here")]
    Forked,
    /// The thread that waits was interrupted. The request may still be carried out.
    #[error("interrupted: what was asked for may still be done")]
    Interrupted,
}

/// Door to the cores of a runtime; clones are the same door. See the module's text.
#[derive(Clone)]
pub struct Door(Arc<Inner>);

struct Inner {
    cores: Arc<[Arc<Shared>]>,
    room: Arc<Room>,
    process: Process,
}

impl Door {
    /// Returns a door to the cores of the current runtime, for at most `capacity` requests at a
    /// time.
    ///
    /// # Panics
    /// Outside a core, or without capacity.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a door needs room for a request");
        let cores = Arc::clone(&current().peers);
        Self(Arc::new(Inner { cores, room: Room::new(capacity), process: Process::current() }))
    }

    /// Returns the number of cores.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.0.cores.len()
    }

    /// Runs `request` on a core and waits for its answer.
    ///
    /// # Errors
    /// [`Unanswered`], but not [`Unanswered::Full`].
    pub fn call<F, Fut, T>(&self, core: CoreId, request: F) -> Result<T, Unanswered>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        self.submit(core, request)?.wait()
    }

    /// Starts `request` on a core; waits while as many requests as the capacity are under way.
    ///
    /// # Errors
    /// [`Unanswered::OnCore`] instead of waiting on a core's thread; [`Unanswered::Forked`].
    pub fn submit<F, Fut, T>(&self, core: CoreId, request: F) -> Result<Pending<T>, Unanswered>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let permit = self.wait_for_permit()?;
        let (pending, deliver) = Pending::new(self.0.process);
        self.send(core, request, deliver, permit);
        Ok(pending)
    }

    /// Starts `request` on a core without waiting; `deliver` gets its answer, on the core's thread
    /// or, if the core is gone, here. It must not block. A panic in it is caught and dropped.
    ///
    /// # Errors
    /// [`Unanswered::Full`] and [`Unanswered::Forked`]; `deliver` is not called then.
    pub fn try_submit<F, Fut, T, D>(
        &self,
        core: CoreId,
        request: F,
        deliver: D,
    ) -> Result<(), Unanswered>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
        T: 'static,
        D: FnOnce(Result<T, Unanswered>) + Send + 'static,
    {
        self.0.process.check()?;
        let permit = self.0.room.try_take().ok_or(Unanswered::Full)?;
        self.send(core, request, deliver, permit);
        Ok(())
    }

    /// Does the same as [`Self::try_submit`], but waits for room as [`Self::submit`] does.
    ///
    /// # Errors
    /// As [`Self::submit`]; `deliver` is not called then.
    pub fn submit_with<F, Fut, T, D>(
        &self,
        core: CoreId,
        request: F,
        deliver: D,
    ) -> Result<(), Unanswered>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
        T: 'static,
        D: FnOnce(Result<T, Unanswered>) + Send + 'static,
    {
        let permit = self.wait_for_permit()?;
        self.send(core, request, deliver, permit);
        Ok(())
    }

    fn wait_for_permit(&self) -> Result<Permit, Unanswered> {
        self.0.process.check()?;
        match self.0.room.try_take() {
            Some(permit) => Ok(permit),
            None if try_current().is_some() => Err(Unanswered::OnCore),
            None => self.0.room.take(),
        }
    }

    fn send<F, Fut, T, D>(&self, core: CoreId, request: F, deliver: D, permit: Permit)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
        T: 'static,
        D: FnOnce(Result<T, Unanswered>) + Send + 'static,
    {
        let answer = Answer { deliver: Some((deliver, permit)), answers: PhantomData };
        let run = move || {
            let work = async move {
                // The answer is dropped, and so given, if this panics or its core ends.
                let mut answer = answer;
                let value = request().await;
                answer.give(Ok(value));
            };
            current().spawn(Class::Foreground, Box::pin(work));
        };
        let message = Message { class: Class::Foreground, run: Box::new(run) };
        if let Some(core) = self.0.cores.get(core.0) {
            core.deliver_one(message);
        }
    }
}

/// The answer to one request. Dropping it before it is given answers [`Unanswered::Closed`].
struct Answer<T, D: FnOnce(Result<T, Unanswered>)> {
    deliver: Option<(D, Permit)>,
    answers: PhantomData<fn(T)>,
}

impl<T, D: FnOnce(Result<T, Unanswered>)> Answer<T, D> {
    fn give(&mut self, answer: Result<T, Unanswered>) {
        let Some((deliver, permit)) = self.deliver.take() else { return };
        // The receiver may submit at once, and must find room then.
        drop(permit);
        // It may run during another panic, which a second one would turn into an abort.
        let _caught = catch_unwind(AssertUnwindSafe(|| deliver(answer)));
    }
}

impl<T, D: FnOnce(Result<T, Unanswered>)> Drop for Answer<T, D> {
    fn drop(&mut self) {
        self.give(Err(Unanswered::Closed));
    }
}

/// Number of the process that started a runtime. A fork of it has none of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process(u32);

impl Process {
    fn current() -> Self {
        Self(std::process::id())
    }

    fn check(self) -> Result<(), Unanswered> {
        if self == Self::current() { Ok(()) } else { Err(Unanswered::Forked) }
    }
}
