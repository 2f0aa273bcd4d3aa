//! Options of a run: which side computes, on how many cores.

use std::fmt;

use csd_kernels::page_rank;
use csd_store::object::Progress;

/// Mode of a run: the side that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The drives, where the chunks are.
    Drives,
    /// The host: chunks cross the wire, as in a system with ordinary SSDs.
    Host,
    /// Both take chunks until none is left.
    Split,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Drives => "drives",
            Self::Host => "host",
            Self::Split => "split",
        })
    }
}

/// Options of a run.
#[derive(Clone)]
pub struct RunOptions {
    /// Mode of the run.
    pub mode: Mode,
    /// Number of host cores that work; [`Mode::Drives`] uses one.
    pub cores: usize,
    /// Number of cores of each drive that one execution may use.
    pub drive_cores: u16,
    /// Conditions for ending page rank.
    pub ranks: page_rank::Options,
    /// Callback for the number of bytes processed.
    pub progress: Progress,
}
