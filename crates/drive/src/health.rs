//! Health of the medium: logs accesses that failed, and reports to hosts that the medium has become
//! read-only.
//!
//! The medium counts its failures itself. Invariant: that it has become read-only is reported once.

use std::sync::atomic::Ordering::Relaxed;

use csd_kvlog::media::{Failure, Operation};
use csd_nvme::controller::Event;
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_COMPUTE;
use csd_nvme::vendor::media_errors::MediaErrors;
use csd_reactor::{core_id, core_local};

use crate::drive::{Core, Shared};
use crate::log::Level;
use crate::transport::connections::announce;

/// Advice in the log when a medium becomes read-only.
const ADVICE: &str = "what was acknowledged can still be read: copy it to another drive";

/// Logs an access that failed, on the core that made it. A core that has not started yet logs
/// nothing: its start fails with the reason.
pub(crate) fn failed(failure: &Failure) {
    let Some(core) = core_local::<Core>() else { return };
    let shared = &core.shared;
    let (place, reason) = (shared.media().place(), failure.reason.clone());
    let fields = [
        ("operation", failure.operation.to_string()),
        ("offset", failure.offset.to_string()),
        ("bytes", failure.bytes.to_string()),
        ("media", place.clone()),
        ("reason", reason.clone()),
        ("core", core_id().to_string()),
    ];
    shared.log().write_rated(Level::Error, "media error", &fields);
    if shared.media().is_read_only() && !shared.read_only.swap(true, Relaxed) {
        let fields = [("media", place), ("reason", reason), ("advice", ADVICE.to_owned())];
        shared.log().write(Level::Error, "the medium has become read-only", &fields);
        announce(Event::ReadOnly, None);
    }
}

/// Returns the number of failures, and the last one, for hosts.
pub(crate) fn media_errors(shared: &Shared) -> MediaErrors {
    let failures = shared.media().failures();
    let mut log = MediaErrors::none();
    log.set_count(failures.count());
    if let Some(last) = failures.last() {
        log.set_operation(match last.operation {
            Operation::Read => 1,
            Operation::Write => 2,
            Operation::Discard => 3,
            Operation::Sync => 4,
        });
        log.set_offset(last.offset).set_bytes(last.bytes);
        log.explain(&shared.media().place(), &last.reason);
    }
    log
}

impl Core {
    /// Notes a command that failed: an execution that met bytes that do not have their checksum.
    /// Failed accesses, and values found damaged when they are read, the medium notes itself.
    pub fn note_failure(&self, nsid: u32, status: Status) {
        if nsid == NSID_COMPUTE && status == Status::UNRECOVERED_ERROR {
            let reason = "a source of an execution does not have its checksum".to_owned();
            let (operation, offset, bytes) = (Operation::Read, 0, 0);
            self.shared.media().failures().note(Failure { operation, offset, bytes, reason });
        }
    }
}
