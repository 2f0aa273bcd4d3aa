//! [`CancelToken`]: cancellation of executions, by their hosts or because their time is up.
//!
//! Two times are bounded: the time that compute threads spent on an execution, so that a busy
//! machine ends no sound program; and the time on the clock, so that a host is answered before it
//! gives the command up. A step is not interrupted: the token is checked before each. Invariant: a
//! cancelled execution ends with the first reason that was given.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use csd_kernels::program::{Engine, Limits};
use csd_nvme::status::Status;
use csd_reactor::{Class, JoinHandle, sleep, spawn, timeout};

use super::Failure;

/// Time between two ticks of an engine.
const TICK: Duration = Duration::from_millis(1);

/// Time between two checks of an execution that waits for its turn.
const CHECK_EVERY: Duration = Duration::from_millis(5);

const RUNNING: u8 = 0;
const ABORTED: u8 = 1;
const OVERDUE: u8 = 2;
const LATE: u8 = 3;
const FAILED: u8 = 4;

/// Cancels one execution. Clones are the same token.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<State>);

#[derive(Debug, Default)]
struct State {
    why: AtomicU8,
    /// Time that compute threads have spent on it, ns.
    ran_ns: AtomicU64,
    /// Limit of that time; 0 before it is known.
    time_ns: AtomicU64,
    /// Failure of one of its parts.
    failure: OnceLock<Failure>,
}

impl CancelToken {
    /// Cancels the execution for its host.
    pub fn abort(&self) {
        self.cancel(ABORTED);
    }

    /// Adds time that a compute thread has spent on it.
    pub(super) fn ran(&self, spent_ns: u64) {
        let ran_ns = self.0.ran_ns.fetch_add(spent_ns, Relaxed) + spent_ns;
        let time_ns = self.0.time_ns.load(Relaxed);
        if time_ns > 0 && ran_ns > time_ns {
            self.cancel(OVERDUE);
        }
    }

    /// Notes that one of its parts has failed, which ends the others.
    pub(super) fn fail(&self, failure: &Failure) {
        // The first failure stays.
        let _ = self.0.failure.set(failure.clone());
        self.cancel(FAILED);
    }

    /// Waits for a future, unless the execution is cancelled before.
    ///
    /// # Errors
    /// The reason of the cancellation.
    pub(super) async fn unless_cancelled<F: Future>(&self, what: F) -> Result<F::Output, Failure> {
        let mut what = pin!(what);
        loop {
            match timeout(CHECK_EVERY, what.as_mut()).await {
                Ok(output) => return Ok(output),
                Err(_) => self.check()?,
            }
        }
    }

    fn cancel(&self, why: u8) {
        // The first reason stays.
        let _ = self.0.why.compare_exchange(RUNNING, why, Relaxed, Relaxed);
    }

    /// Checks that the execution may go on.
    ///
    /// # Errors
    /// The reason of the cancellation.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.0.why.load(Relaxed) {
            RUNNING => Ok(()),
            ABORTED => Err(Failure::new(Status::ABORT_REQUESTED, "aborted by its host")),
            OVERDUE => Err(Failure::new(Status::PROGRAM_FAILED, "its time was up")),
            FAILED => {
                let failure = self.0.failure.get().cloned();
                Err(failure.unwrap_or_else(|| Status::PROGRAM_FAILED.into()))
            }
            _ => {
                let reason = "it was not done in time: the drive or its machine is busy";
                Err(Failure::new(Status::PROGRAM_FAILED, reason))
            }
        }
    }
}

/// A background task of an execution, which ends when this is dropped.
pub(super) struct Watch(JoinHandle<()>);

impl Watch {
    /// Cancels the execution when its time on the clock is up, and sets its limit of compute time.
    pub(super) fn clock(token: CancelToken, limits: Limits) -> Self {
        token.0.time_ns.store(u64::from(limits.time_ms) * 1_000_000, Relaxed);
        let wall = Duration::from_millis(limits.wall_ms.into());
        Self(spawn(Class::System, async move {
            sleep(wall).await;
            token.cancel(LATE);
        }))
    }

    /// Ticks an engine, so that a program that does not end its step must.
    pub(super) fn ticks(engine: Arc<dyn Engine>) -> Self {
        Self(spawn(Class::System, async move {
            loop {
                sleep(TICK).await;
                engine.tick();
            }
        }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An execution from its command to its answer: it can be aborted, and its time on the clock runs.
pub struct UnderWay {
    listed: Listed,
    _clock: Watch,
}

impl UnderWay {
    /// Starts its clock.
    pub(super) fn new(listed: Listed, limits: Limits) -> Self {
        let clock = Watch::clock(listed.token.clone(), limits);
        Self { listed, _clock: clock }
    }

    /// Waits for a future, unless the execution is cancelled before.
    ///
    /// # Errors
    /// The status of the cancellation.
    pub async fn wait<F: Future>(&self, what: F) -> Result<F::Output, Status> {
        self.token().unless_cancelled(what).await.map_err(|failure| failure.status)
    }

    /// Returns its token.
    pub(super) fn token(&self) -> &CancelToken {
        &self.listed.token
    }
}

/// Identifiers of the controller, the queue and the command of an execution.
pub type Caller = (u16, u16, u16);

/// The executions of a drive that can be aborted.
#[derive(Debug, Default)]
pub struct Executions(Mutex<BTreeMap<Caller, CancelToken>>);

impl Executions {
    /// Lists an execution until the returned guard is dropped.
    pub fn begin(self: &Arc<Self>, caller: Caller) -> Listed {
        let token = CancelToken::default();
        self.all().insert(caller, token.clone());
        Listed { all: Arc::clone(self), caller, token }
    }

    /// Cancels an execution; false when there is no such execution.
    pub fn abort(&self, caller: Caller) -> bool {
        let found = self.all().get(&caller).cloned();
        found.inspect(CancelToken::abort).is_some()
    }

    /// Cancels all executions of a queue.
    pub fn abort_all(&self, controller: u16, queue: u16) {
        let of_queue = (controller, queue, 0)..=(controller, queue, u16::MAX);
        self.all().range(of_queue).for_each(|(_, token)| token.abort());
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Caller, CancelToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard of an execution that can be aborted. Dropping it cancels the rest of the execution.
#[derive(Debug)]
pub struct Listed {
    all: Arc<Executions>,
    caller: Caller,
    /// Token of the execution.
    pub token: CancelToken,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.token.abort();
        self.all.all().remove(&self.caller);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_is_aborted_while_it_is_listed() {
        let all = Arc::<Executions>::default();
        let listed = all.begin((1, 2, 3));
        assert!(!all.abort((1, 2, 4)) && !all.abort((2, 2, 3)));
        assert_eq!(listed.token.check(), Ok(()));
        all.abort_all(1, 1);
        assert_eq!(listed.token.check(), Ok(()));
        let other = all.begin((1, 2, 9));
        all.abort_all(1, 2);
        assert!(other.token.check().is_err());
        assert!(all.abort((1, 2, 3)));
        let why = listed.token.check().unwrap_err();
        assert_eq!(why.status, Status::ABORT_REQUESTED);
        listed.token.cancel(LATE);
        assert_eq!(listed.token.check(), Err(why), "the first reason stays");
        drop(listed);
        assert!(!all.abort((1, 2, 3)));
    }

    #[test]
    fn an_execution_that_is_given_up_ends_and_a_part_that_fails_ends_the_others() {
        let all = Arc::<Executions>::default();
        let listed = all.begin((1, 2, 3));
        let (part, other) = (listed.token.clone(), all.begin((1, 2, 4)));
        drop(listed);
        assert_eq!(part.check().unwrap_err().status, Status::ABORT_REQUESTED);
        let failure = Failure::new(Status::SOURCE_TYPE, "no");
        other.token.fail(&failure);
        other.token.fail(&Status::INTERNAL_ERROR.into());
        assert_eq!(other.token.check(), Err(failure));
    }

    #[test]
    fn the_lanes_time_is_bounded_once_it_is_known() {
        let token = CancelToken::default();
        token.ran(1 << 40);
        assert_eq!(token.check(), Ok(()));
        token.0.time_ns.store((1 << 40) + 1, Relaxed);
        token.ran(1);
        assert_eq!(token.check(), Ok(()));
        token.ran(1);
        assert_eq!(token.check().unwrap_err().reason, "its time was up");
    }
}
