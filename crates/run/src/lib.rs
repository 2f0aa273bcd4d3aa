//! CSDSTORE: runs of kernels and programs over objects.
//!
//! A run computes a kernel over objects, on their drives, on the host, or on both.
//!
//! All three modes read the same chunks and run the same kernel; they differ in the place, and
//! therefore in the bytes that cross the wire. Holds no whole object in memory, and every wait is
//! bounded: a drive that does not return is lost, the others finish their own units, and the run
//! reports the missing work. Invariant: an [`Outcome`] covers every element of the objects exactly
//! once.

mod core;
mod cores;
mod drives;
mod error;
mod host;
mod job;
mod lease;
mod ledger;
mod link;
mod memory;
pub mod program;
mod queue;
mod rank;
mod tally;
mod target;
mod team;
mod units;
mod work;

use std::fmt;
use std::sync::Arc;

use csd_initiator::Options;
use csd_kernels::{kernel, page_rank};

use csd_store::array::Plan;
use csd_store::object::Progress;

pub use error::{Error, InvalidJob};
pub use job::Job;
pub use lease::{MemoryLease, PATIENCE};
pub use ledger::Partial;
pub use rank::Ranks;
pub use target::{OutputObject, difference};
pub use units::check_blocks;

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

/// Answer of a run; [`Job::describe`] shows it.
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

/// Runs `job`; writes its output into `output_object`, if there is one.
///
/// # Errors
/// [`Failed::Run`] with the first failure, [`Failed::Partial`] when drives were lost, or
/// [`Failed::Runtime`] when the cores could not run.
pub fn run(
    config: &csd_reactor::Config,
    plan: &Plan,
    options: &Options,
    job: &Arc<Job>,
    output_object: Option<&OutputObject>,
    run_options: &RunOptions,
) -> Result<Outcome, Failed> {
    let is_moved = output_object.is_some_and(OutputObject::is_moved);
    let mode = if is_moved { Mode::Host } else { run_options.mode };
    let cores = if mode == Mode::Drives { 1 } else { run_options.cores };
    let target = output_object.map(OutputObject::target);
    let run_options = RunOptions { mode, cores, ..run_options.clone() };
    let shared = core::Shared::new(plan, options, job, target, &run_options);
    let shared = Arc::new(shared);
    let on_cores = Arc::clone(&shared);
    let spent = cores::run(config, cores, move |core| core::main(core, Arc::clone(&on_cores)))?;
    let (answer, bytes) = shared.answer();
    let steps = answer.ranks.as_ref().map_or(1, |ranks| u64::from(ranks.iterations));
    // The step in which a drive is lost does not count.
    let begun = if answer.ranks.is_some() { steps + 1 } else { steps };
    let unit = if job.by_parts() { "part" } else { "chunk" };
    let partial = shared.ledger().partial(unit, bytes, job.bytes() * begun);
    if let Some(partial) = partial {
        return Err(Failed::Partial(partial));
    }
    let all_bytes = job.bytes() * steps;
    assert_eq!(bytes, all_bytes, "every element is looked at exactly once");
    Ok(Outcome {
        mode,
        cores,
        answer,
        elements: job.elements() * steps,
        bytes,
        wall_s: spent.wall_s,
        crossed_bytes: spent.crossed_bytes,
        shares: shared.ledger().shares(),
        warnings: shared.ledger().reasons(),
    })
}

/// Reason why there is no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failed {
    /// A drive or the network failed.
    #[error(transparent)]
    Run(#[from] Error),
    /// Drives were lost during the run.
    #[error(transparent)]
    Partial(#[from] Partial),
    /// The cores could not run.
    #[error(transparent)]
    Runtime(#[from] csd_reactor::Error),
}

impl Failed {
    /// Returns the names of the drives that were lost, each with the reason.
    #[must_use]
    pub fn lost(&self) -> Vec<(String, String)> {
        match self {
            Self::Partial(partial) => partial.lost.clone(),
            Self::Run(error) if error.is_lost() => error
                .drive()
                .map(|drive| (drive.to_owned(), error.to_string()))
                .into_iter()
                .collect(),
            Self::Run(_) | Self::Runtime(_) => Vec::new(),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // a run of 2^53 ns takes 104 days
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
