//! Energy of a job: by the processors' counters, or CPU time by watts that a profile gives.
//!
//! Invariant: the source is named, and so is the reason where there is no energy.

use crate::rapl::Rapl;

/// Part of the power at rest by which two measurements of it may differ.
const REST_DIFFERS: f64 = 0.1;

/// Energy of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEnergy {
    /// By the processors' counters, of everything on this machine.
    Rapl {
        /// Energy of the job's time, J.
        gross_joules: f64,
        /// Power at rest, before and after the job, W.
        rest_watts: Option<(f64, f64)>,
        /// Time of the job, s.
        seconds: f64,
    },
    /// CPU time by watts: not measured.
    CpuSeconds {
        /// Energy beyond rest, J.
        joules: f64,
    },
    /// None, and why.
    Unknown(String),
}

impl JobEnergy {
    /// Returns the energy of the job beyond that of the machine at rest, J.
    #[must_use]
    pub fn joules(&self) -> Option<f64> {
        match self {
            Self::Rapl { gross_joules, rest_watts: Some((before, after)), seconds } => {
                // Noise is no gain of energy.
                Some((gross_joules - (before + after) / 2.0 * seconds).max(0.0))
            }
            Self::CpuSeconds { joules } => Some(*joules),
            Self::Rapl { .. } | Self::Unknown(_) => None,
        }
    }

    /// Returns what must be known of the figure.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Rapl { rest_watts: None, .. } => Some(
                "energy: that of the whole machine, with its rest: say --idle to have the job's"
                    .to_owned(),
            ),
            Self::Rapl { rest_watts: Some((before, after)), .. } => {
                let differs = (before - after).abs() > REST_DIFFERS * before.max(*after);
                differs.then(|| {
                    format!(
                        "energy: the machine drew {before:.1} W at rest before the job and \
                         {after:.1} W after it: other work makes the figure uncertain"
                    )
                })
            }
            Self::CpuSeconds { .. } => {
                Some("energy: not measured, but CPU time by the profile's watts".to_owned())
            }
            Self::Unknown(why) => Some(format!("energy: none ({why})")),
        }
    }
}

/// The counters of a job, from the moment on at which they were found.
pub struct Counters {
    rapl: Result<Rapl, String>,
}

impl Counters {
    /// Takes over counters, or the reason why there are none.
    #[must_use]
    pub fn new(rapl: Result<Rapl, String>) -> Self {
        Self { rapl }
    }

    /// Reads the counters; returns the energy since they were found, J. This must happen before a
    /// counter wraps twice. Once they cannot be read, they are gone for good.
    pub fn read(&mut self) -> Option<f64> {
        let joules = self.rapl.as_ref().ok()?.joules();
        if joules.is_none() {
            self.rapl = Err("a processor's counter could no longer be read".to_owned());
        }
        joules
    }

    /// Returns the reason why there are none.
    pub fn why(&self) -> Option<&str> {
        self.rapl.as_ref().err().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn set(root: &Path, zone: &str, energy_uj: u64) {
        let folder = root.join(zone);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("name"), "package-0\n").unwrap();
        fs::write(folder.join("max_energy_range_uj"), "10000000\n").unwrap();
        fs::write(folder.join("energy_uj"), format!("{energy_uj}\n")).unwrap();
    }

    #[test]
    fn joules_are_those_of_the_counters_less_rest() {
        // 4 W before, 4.2 W after, 30 J in 5 s: 9.5 J of the job.
        let rest_watts = Some((4.0, 4.2));
        let energy = JobEnergy::Rapl { gross_joules: 30.0, rest_watts, seconds: 5.0 };
        assert!((energy.joules().unwrap() - 9.5).abs() < 1e-12);
        assert_eq!(energy.note(), None);
        let energy =
            JobEnergy::Rapl { gross_joules: 30.0, rest_watts: Some((4.0, 4.5)), seconds: 1.0 };
        assert!(energy.note().unwrap().contains("4.0 W at rest before the job and 4.5 W after"));
        let energy =
            JobEnergy::Rapl { gross_joules: 1.0, rest_watts: Some((4.0, 4.0)), seconds: 1.0 };
        assert_eq!(energy.joules(), Some(0.0));
        let energy = JobEnergy::Rapl { gross_joules: 1.0, rest_watts: None, seconds: 1.0 };
        assert_eq!(energy.joules(), None);
        assert!(energy.note().unwrap().contains("--idle"));
    }

    #[test]
    fn a_made_up_tree_gives_joules_by_hand_also_when_it_wraps_and_vanishes() {
        let tree = tempfile::tempdir().unwrap();
        set(tree.path(), "intel-rapl:0", 9_000_000);
        set(tree.path(), "intel-rapl:1", 1_000_000);
        let mut counters = Counters::new(Rapl::find(tree.path()));
        assert_eq!(counters.read(), Some(0.0));
        set(tree.path(), "intel-rapl:0", 2_000_000);
        set(tree.path(), "intel-rapl:1", 1_500_000);
        // 3 J over the end of the first one's range, and 0.5 J of the second.
        assert_eq!(counters.read(), Some(3.5));
        fs::remove_dir_all(tree.path().join("intel-rapl:1")).unwrap();
        assert_eq!((counters.read(), counters.why().is_some()), (None, true));
        set(tree.path(), "intel-rapl:1", 2_000_000);
        assert_eq!(counters.read(), None, "what was drawn meanwhile is not known");
    }
}
