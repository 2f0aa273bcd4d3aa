//! [`Notifier`]: the call that wakes a sleeping core from another thread.

/// Calls a sleeping core; implemented by an eventfd, and by nothing at all in the simulation.
pub(crate) trait Notifier: Send + Sync {
    fn notify(&self);
}
