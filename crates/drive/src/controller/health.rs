//! What a drive tells its hosts of itself: events to every controller, on whatever core.
//!
//! Never: which events a host wants (that is its controller's). Invariant: an event is noted on
//! every core that is there, the caller's too, but only after the caller's turn.

use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::controller::Event;
use csd_nvme::status::Status;
use csd_reactor::{Class, CoreId, core_count, kept, post};

use super::CoreCounters;
use crate::drive::Core;

/// Tells every controller of an event, but not that of `except`, which caused it.
pub(super) fn announce(event: Event, except: Option<u16>) {
    for core in 0..core_count() {
        // A core that is gone has no hosts to tell.
        let _ = post(CoreId(core), Class::System, move || {
            if let Some(core) = kept::<Core>() {
                core.connections.raise(event, except);
            }
        });
    }
}

impl Core {
    /// Notes a failed command: media errors are counted, and a medium that has become read-only
    /// is told to every host.
    pub fn note_failure(&self, status: Status) {
        let media = matches!(
            status,
            Status::WRITE_FAULT
                | Status::UNRECOVERED_READ_ERROR
                | Status::NAMESPACE_WRITE_PROTECTED
        );
        if !media {
            return;
        }
        CoreCounters::add(&self.counters.media_errors, 1);
        let read_only = status == Status::NAMESPACE_WRITE_PROTECTED;
        if read_only && !self.shared.read_only.swap(true, Relaxed) {
            announce(Event::ReadOnly, None);
        }
    }
}
