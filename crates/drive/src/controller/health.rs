//! What a drive tells its hosts of itself: events to every controller, on whatever core.
//!
//! Never: which events a host wants (that is its controller's). Invariant: an event is noted on
//! every core that is there, the caller's too, but only after the caller's turn.

use csd_nvme::controller::Event;
use csd_reactor::{Class, CoreId, core_count, core_local, post};

use crate::drive::Core;

/// Tells every controller of an event, but not that of `except`, which caused it.
pub(crate) fn announce(event: Event, except: Option<u16>) {
    for core in 0..core_count() {
        // A core that is gone has no hosts to tell.
        let _ = post(CoreId(core), Class::System, move || {
            if let Some(core) = core_local::<Core>() {
                core.connections.raise(event, except);
            }
        });
    }
}
