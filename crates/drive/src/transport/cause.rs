//! [`Cause`]: why a connection ended, as the log and the metrics say it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use csd_nvme::pdu::{FatalStatus, TermReq};
use csd_nvme::tcp::Fatal;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The host closed the connection.
    HungUp,
    /// The connection broke, such as by a reset.
    Broken,
    /// The host asked for its end (Disconnect).
    Disconnected,
    /// The host was silent for its keep-alive timeout.
    KeepAlive {
        /// The timeout in milliseconds.
        timeout_ms: u64,
    },
    /// The host connected no queue in time.
    NoConnect,
    /// The host did not authenticate itself in time, or wrongly.
    Unauthenticated,
    /// The host moved no data, or too slowly while others waited for memory.
    Stalled,
    /// The host ended it with a reason (H2CTermReq).
    Terminated {
        /// Reason of the host.
        status: FatalStatus,
        /// Its information: offset of a field, or a digest.
        information: u32,
    },
    /// The host broke a rule of the transport.
    Violation {
        /// Rule.
        status: FatalStatus,
        /// Offset of the field, or the digest.
        information: u32,
    },
    /// The host sent more commands than its queue has entries.
    Overflow,
    /// The admin queue of the controller ended.
    AdminQueueEnded,
    /// The host disabled or reset the controller.
    Disabled,
    /// Another host needed the place of one that had not authenticated itself.
    GaveWay,
    /// The drive stops.
    Drained,
}

impl From<TermReq> for Cause {
    fn from(request: TermReq) -> Self {
        Self::Terminated { status: FatalStatus(request.fes()), information: request.fei() }
    }
}

impl From<&Fatal> for Cause {
    fn from(fatal: &Fatal) -> Self {
        Self::Violation { status: fatal.status, information: fatal.information }
    }
}

/// Labels of all causes in the metrics.
pub const LABELS: [&str; 14] = [
    "hung_up",
    "broken",
    "disconnected",
    "keep_alive",
    "no_connect",
    "unauthenticated",
    "stalled",
    "terminated",
    "violation",
    "overflow",
    "admin_queue_ended",
    "disabled",
    "gave_way",
    "drained",
];

impl Cause {
    /// Returns the index of the cause's label in [`LABELS`].
    pub const fn index(self) -> usize {
        match self {
            Self::HungUp => 0,
            Self::Broken => 1,
            Self::Disconnected => 2,
            Self::KeepAlive { .. } => 3,
            Self::NoConnect => 4,
            Self::Unauthenticated => 5,
            Self::Stalled => 6,
            Self::Terminated { .. } => 7,
            Self::Violation { .. } => 8,
            Self::Overflow => 9,
            Self::AdminQueueEnded => 10,
            Self::Disabled => 11,
            Self::GaveWay => 12,
            Self::Drained => 13,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::HungUp => "the host closed the connection",
            Self::Broken => "the connection broke",
            Self::Disconnected => "the host disconnected the queue",
            Self::KeepAlive { timeout_ms } => {
                let (whole, rest) = (timeout_ms / 1000, timeout_ms % 1000);
                write!(f, "keep-alive timeout of {whole}")?;
                if rest > 0 {
                    f.write_str(format!(".{rest:03}").trim_end_matches('0'))?;
                }
                " s"
            }
            Self::NoConnect => "the host connected no queue in time",
            Self::Unauthenticated => "the host did not authenticate itself",
            Self::Stalled => "the host moved no data, or too slowly",
            Self::Terminated { status, information } => {
                return write!(
                    f,
                    "the host ended it (H2CTermReq): {status}, information {information:#x}"
                );
            }
            Self::Violation { status, information } => {
                return write!(
                    f,
                    "the host broke the transport's rules: {status}, information {information:#x}"
                );
            }
            Self::Overflow => "more commands than the queue has entries",
            Self::AdminQueueEnded => "the controller's admin queue ended",
            Self::Disabled => "the host disabled the controller",
            Self::GaveWay => "another host needed the place of one without authentication",
            Self::Drained => "the drive stops",
        };
        f.write_str(text)
    }
}

/// Number of connections that ended, by cause.
#[derive(Debug, Default)]
pub struct Causes([AtomicU64; LABELS.len()]);

impl Causes {
    /// Counts a connection that ended.
    pub fn count(&self, cause: Cause) {
        self.0[cause.index()].fetch_add(1, Relaxed);
    }

    /// Returns the labels with their numbers.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        LABELS.iter().copied().zip(self.0.iter().map(|count| count.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_say_what_happened() {
        let timeout = |timeout_ms| Cause::KeepAlive { timeout_ms }.to_string();
        assert_eq!(timeout(5000), "keep-alive timeout of 5 s");
        assert_eq!(timeout(1250), "keep-alive timeout of 1.25 s");
        let status = FatalStatus::HEADER_DIGEST_ERROR;
        let said = Cause::Terminated { status, information: 18 }.to_string();
        assert!(said.ends_with("Header Digest Error (0x03), information 0x12"), "{said}");
    }
}
