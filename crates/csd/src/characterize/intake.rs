//! Bandwidth of the host from all drives together (ingest): given, measured, or unknown.
//!
//! It is measured with a drive in memory if this command started a drive, and with all drives at
//! once on an array. For a single named drive it is unknown unless given. Invariant: a limit of the
//! drives is not reported as a limit of the host.

use csd_measure::characterize::{self, Found, Intake, Options};
use csd_measure::machine;
use csd_measure::profile::Provenance;
use serde_json::{Value, json};

use super::started;
use super::target::{Kind, Target};
use crate::cli::characterize::Characterize;
use crate::context::Context;
use crate::report::Failure;
use crate::units::rate;

/// The ingest bandwidth, as far as it is known.
pub(super) struct HostIngest {
    /// The bandwidth for the profile, B/s.
    pub(super) bandwidth: Option<(u64, Provenance)>,
    /// Text for the profile's note.
    pub(super) note: Option<String>,
    /// Measurement with all drives at once, and the sum of the drives' bandwidths when read alone,
    /// B/s.
    at_once: Option<(Intake, u64)>,
}

impl HostIngest {
    pub(super) fn measure(
        options: &Characterize,
        target: &Target,
        measured: &Options,
        found: &Found,
        context: &Context,
    ) -> Result<Self, Failure> {
        if let Some(given) = options.ingest_bw {
            let bandwidth = Some((given, Provenance::Given));
            return Ok(Self { bandwidth, note: None, at_once: None });
        }
        Ok(match target.kind {
            Kind::Named { .. } => Self { bandwidth: None, note: None, at_once: None },
            Kind::Started(_) => {
                let bandwidth = started::ingest_bandwidth(options, measured, context)?;
                let note = "ingest_bw_Bps: all host cores reading a drive in memory over \
                            loopback, which takes cores, too";
                let bandwidth = Some((bandwidth, Provenance::Measured));
                Self { bandwidth, note: Some(note.to_owned()), at_once: None }
            }
            Kind::Array(_) => {
                let intake = characterize::intake(measured, machine::cores())?;
                let drives = 0..measured.subjects.len();
                let alone = drives.map(|subject| found.read_alone(subject)).sum();
                Self::of_array(intake, alone)
            }
        })
    }

    fn of_array(intake: Intake, alone: u64) -> Self {
        let limit = intake.is_limit(alone);
        let measured = (intake.bytes_per_s, Provenance::Measured);
        let note = match limit {
            true => format!("ingest_bw_Bps: all {} drives at once", intake.drives),
            false => format!(
                "ingest_bw_Bps is unknown: {} drives at once gave what each gives alone",
                intake.drives
            ),
        };
        let bandwidth = limit.then_some(measured);
        Self { bandwidth, note: Some(note), at_once: Some((intake, alone)) }
    }

    /// Returns a line about the measurement with all drives at once, for people.
    pub(super) fn text(&self) -> Option<String> {
        let (intake, alone) = self.at_once.as_ref()?;
        let limit = match self.bandwidth {
            Some(_) => "the host's limit",
            None => "the host's limit is beyond that, and unknown",
        };
        Some(format!(
            "{} drives at once: {} to the host, by themselves {} together: {limit}",
            intake.drives,
            rate(intake.bytes_per_s, 1.0),
            rate(*alone, 1.0)
        ))
    }

    /// Returns the same as JSON; null if drives were not read at once.
    pub(super) fn json(&self) -> Value {
        let Some((intake, alone)) = &self.at_once else { return Value::Null };
        json!({
            "drives": intake.drives,
            "cores": intake.cores,
            "read_Bps": intake.bytes_per_s,
            "alone_read_Bps": alone,
            "limited": self.bandwidth.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_limit_that_drives_share_is_the_hosts() {
        let intake = Intake { drives: 2, cores: 4, bytes_per_s: 1_500_000_000 };
        let limited = HostIngest::of_array(intake, 2_000_000_000);
        assert_eq!(limited.bandwidth, Some((1_500_000_000, Provenance::Measured)));
        assert!(limited.text().unwrap().ends_with("the host's limit"));
        let free = HostIngest::of_array(intake, 1_500_000_001);
        assert_eq!((free.bandwidth, free.json()["limited"].as_bool()), (None, Some(false)));
        assert!(free.note.unwrap().contains("unknown"));
    }
}
