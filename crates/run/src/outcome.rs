//! Outcome of a run: its answer, its times, and the shares of drives and cores.

use csd_kernels::kernel;

use crate::options::Mode;

/// Work of one drive, or one core of the host, in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The drive's name, or `host core 0`.
    pub who: String,
    /// Number of elements processed.
    pub elements: u64,
    /// Busy time, seconds: a drive is busy while an execution is in flight, a core while not idle.
    pub busy_s: f64,
}

/// Result of page rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    /// The nodes' ranks, in order.
    pub ranks: Vec<f64>,
    /// True if they are of type f32, as for a dense matrix.
    pub dense: bool,
    /// Number of steps.
    pub iterations: u32,
    /// L1 distance of the last two steps.
    pub distance: f64,
    /// True if the ranks have converged.
    pub converged: bool,
}

/// Answer of a run; `Job::describe` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The combined answer of all executions.
    pub whole: kernel::Answer,
    /// Result of each part, in order, where a unit of work is a part.
    pub parts: Vec<(usize, u64)>,
    /// Ranks, if the job is page rank.
    pub ranks: Option<Ranks>,
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Mode of the run.
    pub mode: Mode,
    /// Number of host cores used: those that compute, or one that only sends commands to drives.
    pub cores: usize,
    /// The answer.
    pub answer: Answer,
    /// Number of elements processed; every step counts them again.
    pub elements: u64,
    /// Number of bytes read; every step counts them again.
    pub bytes: u64,
    /// Wall time from the last connection to the last answer, seconds.
    pub wall_s: f64,
    /// Bytes on the wire between drives and host in that time, in both directions.
    pub crossed_bytes: u64,
    /// Shares of drives and cores.
    pub shares: Vec<Share>,
    /// Reasons why the host computed chunks of protected objects from other pieces.
    pub warnings: Vec<String>,
}
