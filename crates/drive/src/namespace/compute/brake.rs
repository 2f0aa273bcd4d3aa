//! Executions under way, and how they are ended early: by their hosts, or because their time is up.
//!
//! Never ends a step: whoever steps a program looks at its [`Brake`] before each. Invariant: an
//! execution whose brake is pulled ends with the first reason that was given.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csd_nvme::status::Status;
use csd_reactor::{Class, JoinHandle, sleep, spawn, timeout};

use super::Failure;
use super::engine::{Engine, Limits};

/// Time between two looks of an engine at its programs.
const TICK: Duration = Duration::from_millis(1);

const RELEASED: u8 = 0;
const ABORTED: u8 = 1;
const OVERDUE: u8 = 2;

/// Ends one execution early. Clones are the same brake.
#[derive(Clone, Debug, Default)]
pub struct Brake(Arc<AtomicU8>);

impl Brake {
    /// The host wants it to end.
    pub fn abort(&self) {
        self.pull(ABORTED);
    }

    /// Its time is up.
    pub(super) fn overdue(&self) {
        self.pull(OVERDUE);
    }

    fn pull(&self, why: u8) {
        // One that is pulled already stays as it is.
        let _ = self.0.compare_exchange(RELEASED, why, Relaxed, Relaxed);
    }

    /// Whether the execution may go on.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn look(&self) -> Result<(), Failure> {
        match self.0.load(Relaxed) {
            RELEASED => Ok(()),
            ABORTED => Err(Failure::new(Status::ABORT_REQUESTED, "aborted by its host")),
            _ => Err(Failure::new(Status::PROGRAM_FAILED, "its time was up")),
        }
    }
}

/// Pulls the brake of an execution when its time is up, and tells an engine that time passes, until
/// it is dropped.
pub(super) struct Watch(JoinHandle<()>);

impl Watch {
    pub(super) fn begin(brake: Brake, limits: Limits, engine: Option<Arc<dyn Engine>>) -> Self {
        let time = Duration::from_millis(limits.time_ms.into());
        Self(spawn(Class::System, async move {
            let end = sleep(time);
            let Some(engine) = engine else {
                end.await;
                return brake.overdue();
            };
            let ticks = async {
                loop {
                    sleep(TICK).await;
                    engine.tick();
                }
            };
            // Ticks go on after the end of the time: a program that does not end its step must.
            timeout(time, ticks).await.unwrap_or_else(|_| brake.overdue());
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

    fn all(&self) -> MutexGuard<'_, BTreeMap<Caller, Brake>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An execution that can be aborted; no more when dropped.
#[derive(Debug)]
pub struct Listed {
    all: Arc<Executions>,
    caller: Caller,
    /// Its brake.
    pub brake: Brake,
}

impl Drop for Listed {
    fn drop(&mut self) {
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
        assert!(all.abort((1, 2, 3)));
        let why = listed.brake.look().unwrap_err();
        assert_eq!(why.status, Status::ABORT_REQUESTED);
        listed.brake.overdue();
        assert_eq!(listed.brake.look(), Err(why), "the first reason stays");
        drop(listed);
        assert!(!all.abort((1, 2, 3)));
    }
}
