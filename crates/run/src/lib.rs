//! CSDSTORE: runs of kernels and programs over objects.
//!
//! A run computes a kernel over objects, on their drives, on the host, or on both.
//!
//! All three modes read the same chunks and run the same kernel; they differ in the place, and
//! therefore in the bytes that cross the wire. Holds no whole object in memory, and every wait is
//! bounded: a drive that does not return is lost, the others finish their own units, and the run
//! reports the missing work. Invariant: an [`Outcome`] covers every element of the objects exactly
//! once.

mod context;
mod core;
mod cores;
mod drives;
mod error;
mod failed;
mod host;
mod job;
mod lease;
mod ledger;
mod link;
mod memory;
mod options;
mod outcome;
pub mod program;
mod queue;
mod rank;
mod tally;
mod target;
mod team;
mod units;
mod work;

use std::sync::Arc;

use csd_initiator::Options;

use csd_store::array::Plan;

pub use error::{Error, InvalidJob};
pub use failed::Failed;
pub use job::Job;
pub use lease::{MemoryLease, PATIENCE};
pub use ledger::Partial;
pub use options::{Mode, RunOptions};
pub use outcome::{Answer, Outcome, Ranks, Share};
pub use target::{OutputObject, difference};
pub use units::check_blocks;

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
    let shared =
        core::Shared::new(context::RunContext::new(plan, options, job, target, &run_options));
    let shared = Arc::new(shared);
    let on_cores = Arc::clone(&shared);
    let spent = cores::run(config, cores, move |core| core::main(core, Arc::clone(&on_cores)))?;
    let (answer, bytes) = shared.answer();
    let steps = answer.ranks.as_ref().map_or(1, |ranks| u64::from(ranks.iterations));
    // The step in which a drive is lost does not count.
    let begun = if answer.ranks.is_some() { steps + 1 } else { steps };
    let unit = if job.by_parts() { "part" } else { "chunk" };
    let partial = shared.run.ledger.partial(unit, bytes, job.bytes() * begun);
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
        shares: shared.run.ledger.shares(),
        warnings: shared.run.ledger.reasons(),
    })
}
