//! What failed commands say of the medium: counted, logged, and told to hosts when it can no longer
//! be written.
//!
//! Never repairs. Invariant: hosts are told once that the drive has become read-only.

use std::sync::atomic::Ordering::Relaxed;

use csd_nvme::controller::Event;
use csd_nvme::status::Status;
use csd_reactor::core_id;

use crate::controller::{CoreCounters, announce};
use crate::drive::Core;
use crate::log::Level;

impl Core {
    /// Notes a failed command: media errors are counted, and a medium that has become read-only
    /// is told to every host.
    pub fn note_failure(&self, status: Status) {
        let media = matches!(
            status,
            Status::WRITE_FAULT
                | Status::UNRECOVERED_READ_ERROR
                | Status::UNRECOVERED_ERROR
                | Status::NAMESPACE_WRITE_PROTECTED
        );
        if !media {
            return;
        }
        CoreCounters::add(&self.counters.media_errors, 1);
        let fields = [("status", status.to_string()), ("core", core_id().to_string())];
        self.shared.log().write_rated(Level::Error, "media error", &fields);
        let read_only =
            status == Status::NAMESPACE_WRITE_PROTECTED || self.shared.media().is_read_only();
        if read_only && !self.shared.read_only.swap(true, Relaxed) {
            self.shared.log().write(Level::Error, "the medium has become read-only", &[]);
            announce(Event::ReadOnly, None);
        }
    }
}
