//! [`Services`]: options and counts of the drive's services.

use std::sync::atomic::AtomicU64;

/// Counts of a service over all cores.
#[derive(Debug, Default)]
pub struct Counts {
    /// Steps that worked.
    pub steps: AtomicU64,
    /// Bytes that they read and compared, or moved.
    pub bytes: AtomicU64,
}

/// A drive's services: options and counts.
#[derive(Debug, Default)]
pub struct Services {
    /// Bytes per second that the scrubs of all cores read together; `None` for no scrub.
    pub scrub_bytes_per_s: Option<u64>,
    /// Counts of cleaning.
    pub clean: Counts,
    /// Counts of scrub.
    pub scrub: Counts,
}
