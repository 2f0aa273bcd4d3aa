//! [`Meeting`]: where the cores of a measurement wait for each other.
//!
//! Invariant: nobody waits for a core that has failed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use csd_reactor::sleep;

/// Pause between two looks at the other cores.
const LOOK_EVERY: Duration = Duration::from_micros(50);

/// The cores that work together.
pub(super) struct Meeting {
    cores: usize,
    arrived: AtomicUsize,
    failed: AtomicBool,
    /// The workers have ended: rivals may, too.
    done: AtomicBool,
}

impl Meeting {
    /// A meeting of so many cores.
    pub(super) fn of(cores: usize) -> Self {
        let (arrived, failed, done) = Default::default();
        Self { cores, arrived, failed, done }
    }

    /// Waits for all cores; false when one of them failed. `turn` counts the meetings, from 1.
    pub(super) async fn meet(&self, turn: usize) -> bool {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < self.cores * turn {
            if self.failed.load(Ordering::Acquire) {
                return false;
            }
            sleep(LOOK_EVERY).await;
        }
        !self.failed.load(Ordering::Acquire)
    }

    /// Says that a core has failed.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Says that the measurement has ended.
    pub(super) fn end(&self) {
        self.done.store(true, Ordering::Release);
    }

    /// Whether it has ended, well or not.
    pub(super) fn is_over(&self) -> bool {
        self.done.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}
