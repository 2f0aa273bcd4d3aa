//! Network of operating systems: the ends of their drives' tunnels.

use csd_initiator::Controller;
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::status::Status;
use csd_nvme::tunnel::{LogEntry, LogHeader, parse_log};
use csd_nvme::vendor::NSID_COMPUTE;
use serde_json::{Value, json};

use super::target::Target;
use crate::report::Failure;
use crate::units::size;

/// The ends of a drive's tunnel: the host's, and that of the operating system.
pub(super) struct Ends([LogEntry; 2]);

impl Ends {
    /// Returns the ends of a drive's tunnel; `None` if it has no tunnel.
    ///
    /// # Errors
    /// If the drive does not answer.
    pub(super) fn of(target: &Target<'_>) -> Result<Option<Self>, Failure> {
        let bytes = u32::try_from(LogHeader::SIZE + 2 * LogEntry::SIZE).expect("832");
        let data = target.ask(async move |controller: &Controller| {
            let sqe = get_log_page(LogId::TUNNEL, NSID_COMPUTE, Csi::CP, 0, bytes);
            match controller.admin(sqe, &[], bytes).await {
                Err(error) if error.status() == Some(Status::INVALID_LOG_PAGE) => Ok(Vec::new()),
                reply => reply.map(|reply| reply.data.to_vec()),
            }
        })?;
        let ends = parse_log(&data).map(|(_, ends)| ends);
        Ok(ends.and_then(|ends| ends.try_into().ok()).map(Self))
    }

    /// Returns the bytes that the operating system has sent and received.
    pub(super) fn shown(&self) -> String {
        let inside = &self.0[1];
        match inside.network() {
            Some((address, _)) if inside.present() == 1 => {
                let (sent, received) = (size(inside.sent_bytes()), size(inside.received_bytes()));
                format!("{address}, {sent} sent, {received} received")
            }
            _ => "no device inside".to_owned(),
        }
    }

    /// Describes the ends for programs.
    pub(super) fn describe(&self) -> Value {
        let [outside, inside] = &self.0;
        json!({
            "address": inside.network().map(|(address, _)| address.to_string()),
            "host": (outside.present() == 1).then(|| outside.host_nqn()),
            "inside": inside.present() == 1,
            "sent_bytes": inside.sent_bytes(),
            "received_bytes": inside.received_bytes(),
            "dropped_packets": outside.dropped_packets() + inside.dropped_packets(),
        })
    }
}
