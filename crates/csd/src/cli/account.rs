//! Model time on the command line: options that runs share.

use clap::{Args, ValueEnum};
use csd_store::profile::Overlap;

/// Options by which a run also says what it would take on other machines.
#[derive(Args, Clone, Debug)]
pub(crate) struct Account {
    /// Also say what the run would take on the machines of a profile: model time, from bytes and
    /// work alone
    #[arg(long, value_name = "FILE[:DEVICE]")]
    pub(crate) profile: Option<String>,
    /// Whether model time adds loading and computing, or takes the longer [default: as the
    /// profile's points have it]
    #[arg(long, value_enum, value_name = "serial|pipelined", requires = "profile")]
    pub(crate) overlap: Option<Overlapping>,
}

/// Whether loading ends before computing begins.
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
