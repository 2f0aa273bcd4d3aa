//! [`InsideOnly`]: while it is set, only the inside changes blocks.
//!
//! The drive's own operating system sets it before it mounts a file system, by feature C0h, and the
//! settings keep it over restarts. Invariants: after [`InsideOnly::settle`] no change from the
//! outside is under way; a drive that serves no inside refuses changes all the same, as the file
//! system may still be mounted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use csd_nvme::status::Status;
use csd_reactor::sleep;

use crate::side::Side;

/// Pause between two looks at changes that are under way.
const PAUSE: Duration = Duration::from_micros(50);

/// Changes of the block namespace by side; see the module's text.
#[derive(Debug, Default)]
pub struct InsideOnly {
    served: AtomicBool,
    set: AtomicBool,
    /// Changes from the outside that are under way; counted only if an inside is served.
    changes: AtomicUsize,
}

impl InsideOnly {
    /// Makes the state of a drive that serves no inside yet.
    pub fn new(set: bool) -> Self {
        Self { set: AtomicBool::new(set), ..Self::default() }
    }

    /// Notes that the drive serves its inside.
    pub fn serve(&self) {
        self.served.store(true, SeqCst);
    }

    /// Returns true if the drive serves its inside.
    pub fn is_served(&self) -> bool {
        self.served.load(SeqCst)
    }

    /// Sets that only the inside changes blocks, or that both sides do.
    pub fn set(&self, only: bool) {
        self.set.store(only, SeqCst);
    }

    /// Returns true if changes from the outside are refused.
    pub fn is_set(&self) -> bool {
        self.set.load(SeqCst)
    }

    /// Begins a change from this side, which lasts until the guard is dropped. The change must
    /// need nothing more of its host, so that [`Self::settle`] ends.
    ///
    /// # Errors
    /// [`Status::NAMESPACE_WRITE_PROTECTED`] on the outside while only the inside may.
    pub fn begin(&self, side: Side) -> Result<Change<'_>, Status> {
        if side == Side::Inside || !self.is_served() && !self.is_set() {
            return Ok(Change(None));
        }
        // The count comes before the look at the flag, and the inside does both in the other order:
        // at least one of the two sees the other.
        self.changes.fetch_add(1, SeqCst);
        let change = Change(Some(&self.changes));
        if self.is_set() { Err(Status::NAMESPACE_WRITE_PROTECTED) } else { Ok(change) }
    }

    /// Waits until no change from the outside is under way, if none may begin.
    pub async fn settle(&self) {
        while self.is_set() && self.changes.load(SeqCst) > 0 {
            sleep(PAUSE).await;
        }
    }
}

/// A change that is under way, until it is dropped.
#[derive(Debug)]
pub struct Change<'a>(Option<&'a AtomicUsize>);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if let Some(changes) = self.0 {
            changes.fetch_sub(1, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outside_is_refused() {
        let only = InsideOnly::default();
        only.set(true);
        for is_served in [false, true] {
            let refused = only.begin(Side::Outside).err();
            assert_eq!(refused, Some(Status::NAMESPACE_WRITE_PROTECTED), "{is_served}");
            assert!(only.begin(Side::Inside).is_ok());
            only.serve();
        }
        only.set(false);
        let change = only.begin(Side::Outside).unwrap();
        assert_eq!(only.changes.load(SeqCst), 1);
        drop(change);
        assert_eq!(only.changes.load(SeqCst), 0, "refused ones are not counted");
    }
}
