//! [`ServiceChange`]: a change of the log that a service makes. When the drive stops no command
//! runs, but a step of a service may: the seals wait for its change, and none begins any more.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use csd_nvme::status::Status;

use crate::segments::Segments;

/// A change under way, until it is dropped.
pub(crate) struct ServiceChange(Arc<Segments>);

impl ServiceChange {
    /// Begins a change.
    ///
    /// # Errors
    /// [`Status::NAMESPACE_NOT_READY`] when the log closes.
    pub(crate) fn begin(segments: &Arc<Segments>) -> Result<Self, Status> {
        segments.service_changes.fetch_add(1, SeqCst);
        let change = Self(Arc::clone(segments));
        // Counted first: a stop closes the log first, and then looks at the count.
        if segments.is_closing() { Err(Status::NAMESPACE_NOT_READY) } else { Ok(change) }
    }

    /// Returns true if a change is under way.
    pub(crate) fn is_any(segments: &Segments) -> bool {
        segments.service_changes.load(SeqCst) > 0
    }
}

impl Drop for ServiceChange {
    fn drop(&mut self) {
        self.0.service_changes.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_log_waits_for_changes_and_begins_none() {
        let segments = Arc::new(Segments::new([0; 16], 0, 4 << 20, 8, &[2]));
        let change = ServiceChange::begin(&segments).ok();
        assert!(change.is_some() && ServiceChange::is_any(&segments));
        segments.close();
        assert!(ServiceChange::begin(&segments).is_err());
        assert!(ServiceChange::is_any(&segments));
        drop(change);
        assert!(!ServiceChange::is_any(&segments));
    }
}
