//! [`Notifier`]: the call that wakes a sleeping core from another thread.

/// Wakes a sleeping core. A real core has an eventfd; the simulation needs no notification.
pub(crate) trait Notifier: Send + Sync {
    fn notify(&self);
}
