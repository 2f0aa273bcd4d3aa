//! [`Gate`]: where the services of a core wait until they may begin a step.
//!
//! Invariants: a new setting is seen at once, also by a service that waits for the time of its
//! rate; none waits here once the drive stops.

use std::cell::Cell;

use csd_kvlog::control::Control;
use csd_reactor::{Class, CoreId, Notify, core_count, core_local, now, post, timeout};

/// The gate of one core.
#[derive(Default)]
pub struct Gate {
    // Notified when a setting changes, and when the drive stops.
    changed: Notify,
    stops: Cell<bool>,
}

impl Gate {
    /// Waits until a service may begin a step; returns false if the drive stops.
    pub(crate) async fn passes(&self, control: &Control) -> bool {
        while !self.stops.get() {
            // Made before the look, so that no change falls between the two.
            let changed = self.changed.notified();
            if control.is_paused() {
                changed.await;
            } else if let Some(due) = control.due() {
                // Either way there is another look.
                let _ = timeout(due.since(now()), changed).await;
            } else {
                return true;
            }
        }
        false
    }

    /// Lets the services of this core look at their settings.
    pub fn look(&self) {
        self.changed.notify_all();
    }

    /// Lets no service of this core wait any more.
    pub(crate) fn stop(&self) {
        self.stops.set(true);
        self.look();
    }
}

/// Does something with the gate of every core.
pub(crate) fn on_all(act: fn(&Gate)) {
    for core in 0..core_count() {
        // A core that is gone has no services.
        let _ = post(CoreId(core), Class::System, move || {
            if let Some(gate) = core_local::<Gate>() {
                act(&gate);
            }
        });
    }
}
