//! Executions under way, and how they are ended early: by their hosts, or because their time is up.
//! Time is what the compute lane really spent on it, so that a busy machine ends no program that
//! is sound; time on the clock is bounded, too, so that a host is answered before it gives up.
//!
//! Never ends a step: whoever steps a program looks at its [`Brake`] before each. Invariant: an
//! execution whose brake is pulled ends with the first reason that was given.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use csd_nvme::status::Status;
use csd_reactor::{Class, JoinHandle, sleep, spawn, timeout};

use super::Failure;
use super::engine::{Engine, Limits};

/// Time between two looks of an engine at its programs.
const TICK: Duration = Duration::from_millis(1);

/// Time between two looks at whether an execution that waits for its turn is still wanted.
const LOOK: Duration = Duration::from_millis(5);

const RELEASED: u8 = 0;
const ABORTED: u8 = 1;
const OVERDUE: u8 = 2;
const LATE: u8 = 3;
const FAILED: u8 = 4;

/// Ends one execution early. Clones are the same brake.
#[derive(Clone, Debug, Default)]
pub struct Brake(Arc<Held>);

#[derive(Debug, Default)]
struct Held {
    why: AtomicU8,
    /// Time that lanes have spent on it, ns.
    ran_ns: AtomicU64,
    /// Most of that; 0 before it is known.
    time_ns: AtomicU64,
    /// Why a part of it failed.
    failure: OnceLock<Failure>,
}

impl Brake {
    /// The host wants it to end.
    pub fn abort(&self) {
        self.pull(ABORTED);
    }

    /// A lane has spent so much on it.
    pub(super) fn ran(&self, spent_ns: u64) {
        let ran_ns = self.0.ran_ns.fetch_add(spent_ns, Relaxed) + spent_ns;
        let time_ns = self.0.time_ns.load(Relaxed);
        if time_ns > 0 && ran_ns > time_ns {
            self.pull(OVERDUE);
        }
    }

    /// One of its parts has failed: the others end, too.
    pub(super) fn fail(&self, failure: &Failure) {
        // The first failure stays.
        let _ = self.0.failure.set(failure.clone());
        self.pull(FAILED);
    }

    /// Waits for something, unless the execution is to end before.
    ///
    /// # Errors
    /// Why it is to end.
    pub(super) async fn unless_pulled<F: Future>(&self, what: F) -> Result<F::Output, Failure> {
        let mut what = pin!(what);
        loop {
            match timeout(LOOK, what.as_mut()).await {
                Ok(output) => return Ok(output),
                Err(_) => self.look()?,
            }
        }
    }

    fn pull(&self, why: u8) {
        // One that is pulled already stays as it is.
        let _ = self.0.why.compare_exchange(RELEASED, why, Relaxed, Relaxed);
    }

    /// Whether the execution may go on.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn look(&self) -> Result<(), Failure> {
        match self.0.why.load(Relaxed) {
            RELEASED => Ok(()),
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

/// What goes on beside an execution until it is dropped.
pub(super) struct Watch(JoinHandle<()>);

impl Watch {
    /// Pulls the brake when its time on the clock is up, and holds it to its time in lanes.
    pub(super) fn clock(brake: Brake, limits: Limits) -> Self {
        brake.0.time_ns.store(u64::from(limits.time_ms) * 1_000_000, Relaxed);
        let wall = Duration::from_millis(limits.wall_ms.into());
        Self(spawn(Class::System, async move {
            sleep(wall).await;
            brake.pull(LATE);
        }))
    }

    /// Tells an engine that time passes: a program that does not end its step must.
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

/// An execution from when its host asks for it until it is answered: it can be aborted, and its
/// time on the clock runs.
pub struct UnderWay {
    listed: Listed,
    _clock: Watch,
}

impl UnderWay {
    /// Begins its clock.
    pub(super) fn new(listed: Listed, limits: Limits) -> Self {
        let clock = Watch::clock(listed.brake.clone(), limits);
        Self { listed, _clock: clock }
    }

    /// Waits for something, unless the execution is to end before.
    ///
    /// # Errors
    /// The status that it ends with.
    pub async fn wait<F: Future>(&self, what: F) -> Result<F::Output, Status> {
        self.brake().unless_pulled(what).await.map_err(|failure| failure.status)
    }

    /// Its brake.
    pub(super) fn brake(&self) -> &Brake {
        &self.listed.brake
    }
}

/// Controller, queue and command that an execution answers to.
pub type Caller = (u16, u16, u16);

/// The executions of a drive that can be aborted.
#[derive(Debug, Default)]
pub struct Executions(Mutex<BTreeMap<Caller, Brake>>);

impl Executions {
    /// Notes an execution until the returned guard is dropped.
    pub fn begin(self: &Arc<Self>, caller: Caller) -> Listed {
        let brake = Brake::default();
        self.all().insert(caller, brake.clone());
        Listed { all: Arc::clone(self), caller, brake }
    }

    /// Pulls the brake of an execution; false when there is none such.
    pub fn abort(&self, caller: Caller) -> bool {
        let found = self.all().get(&caller).cloned();
        found.inspect(Brake::abort).is_some()
    }

    /// Pulls the brakes of all executions of a queue.
    pub fn abort_all(&self, controller: u16, queue: u16) {
        let of_queue = (controller, queue, 0)..=(controller, queue, u16::MAX);
        self.all().range(of_queue).for_each(|(_, brake)| brake.abort());
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Caller, Brake>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An execution that can be aborted; no more when dropped, and what is left of it ends.
#[derive(Debug)]
pub struct Listed {
    all: Arc<Executions>,
    caller: Caller,
    /// Its brake.
    pub brake: Brake,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.brake.abort();
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
        assert_eq!(listed.brake.look(), Ok(()));
        all.abort_all(1, 1);
        assert_eq!(listed.brake.look(), Ok(()));
        let other = all.begin((1, 2, 9));
        all.abort_all(1, 2);
        assert!(other.brake.look().is_err());
        assert!(all.abort((1, 2, 3)));
        let why = listed.brake.look().unwrap_err();
        assert_eq!(why.status, Status::ABORT_REQUESTED);
        listed.brake.pull(LATE);
        assert_eq!(listed.brake.look(), Err(why), "the first reason stays");
        drop(listed);
        assert!(!all.abort((1, 2, 3)));
    }

    #[test]
    fn what_is_given_up_ends_and_a_part_that_fails_ends_the_others() {
        let all = Arc::<Executions>::default();
        let listed = all.begin((1, 2, 3));
        let (part, other) = (listed.brake.clone(), all.begin((1, 2, 4)));
        drop(listed);
        assert_eq!(part.look().unwrap_err().status, Status::ABORT_REQUESTED);
        let failure = Failure::new(Status::SOURCE_TYPE, "no");
        other.brake.fail(&failure);
        other.brake.fail(&Status::INTERNAL_ERROR.into());
        assert_eq!(other.brake.look(), Err(failure));
    }

    #[test]
    fn the_lanes_time_is_bounded_once_it_is_known() {
        let brake = Brake::default();
        brake.ran(1 << 40);
        assert_eq!(brake.look(), Ok(()));
        brake.0.time_ns.store((1 << 40) + 1, Relaxed);
        brake.ran(1);
        assert_eq!(brake.look(), Ok(()));
        brake.ran(1);
        assert_eq!(brake.look().unwrap_err().reason, "its time was up");
    }
}
