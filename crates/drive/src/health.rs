//! Health of the medium: counts and logs media errors, and reports to hosts that the medium has
//! become read-only.
//!
//! Invariant: the event is reported once.

use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::controller::Event;
use csd_nvme::status::Status;
use csd_reactor::core_id;

use crate::controller::CoreCounters;
use crate::drive::Core;
use crate::log::Level;
use crate::transport::connections::announce;

impl Core {
    /// Notes a failed command: counts media errors, and reports to every host that the medium has
    /// become read-only.
    pub fn note_failure(&self, status: Status) {
        let media = matches!(
            status,
            Status::WRITE_FAULT
                | Status::UNRECOVERED_READ_ERROR
                | Status::UNRECOVERED_ERROR
                | Status::NAMESPACE_WRITE_PROTECTED
        );
        // A host's write protection has the same status as a read-only medium.
        let by_host =
            status == Status::NAMESPACE_WRITE_PROTECTED && !self.shared.media().is_read_only();
        if !media || by_host {
            return;
        }
        CoreCounters::add(&self.counters.media_errors, 1);
        let fields = [("status", status.to_string()), ("core", core_id().to_string())];
        self.shared.log().write_rated(Level::Error, "media error", &fields);
        if self.shared.media().is_read_only() && !self.shared.read_only.swap(true, Relaxed) {
            self.shared.log().write(Level::Error, "the medium has become read-only", &[]);
            announce(Event::ReadOnly, None);
        }
    }
}
