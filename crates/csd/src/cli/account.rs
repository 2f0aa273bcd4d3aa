//! Options of model time, which all runs share.

use clap::{Args, ValueEnum};
use csd_measure::profile::Overlap;

/// Options for the model time of a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Account {
    /// Also say what the run would take on the machines of a profile: model time, from bytes and
    /// work alone. FILE may be the name of a profile of csdplan, such as fpga-verifier
    #[arg(long, value_name = "FILE[:DEVICE]")]
    pub(crate) profile: Option<String>,
    /// Add loading and computing in model time, or take the longer of the two [default: as the
    /// profile's points do]
    #[arg(long, value_enum, value_name = "serial|pipelined", requires = "profile")]
    pub(crate) overlap: Option<Overlapping>,
}

/// Overlap of loading and computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Overlapping {
    /// Load, then compute
    Serial,
    /// Load and compute at the same time
    Pipelined,
}

impl From<Overlapping> for Overlap {
    fn from(overlapping: Overlapping) -> Self {
        match overlapping {
            Overlapping::Serial => Self::Serial,
            Overlapping::Pipelined => Self::Pipelined,
        }
    }
}
