//! `csd run KERNEL`, for kernels that declare their options themselves.

use std::sync::Arc;

use csd_kernels::kernel::Kind;
use csd_kernels::page_rank::Options as RankOptions;
use csd_run::{Job, Mode, RunOptions};
use csd_store::array::Plan;
use csd_store::object::Progress;
use serde_json::Map;

use super::{RunContext, look_up, report};
use crate::cli::kernel::KernelRun;
use crate::cli::ways::Who;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::runtime::runtime;

/// Bytes of each drive's chunks in a trial of an alternative.
const SAMPLE_BYTES: u32 = 32 << 20;
/// Most concurrent executions per drive in a trial.
const EXECUTIONS_TRIED: u16 = 4;

/// Runs a kernel, in one mode or in several that are compared; `None` if its inputs were moved
/// meanwhile.
pub(super) fn run(options: &KernelRun, context: &Context) -> Result<Option<Report>, Failure> {
    let (plan, entries, warnings) = look_up(context, options.inputs.clone())?;
    let mut job = Job::new(options.kernel, entries, &options.arguments)?;
    if options.tune {
        job = match job.adaptive().filter(|_| options.ways.on != Who::Host) {
            Some(adaptive) => adaptive,
            None => fastest((&plan, &context.options()?), &job)?,
        };
    }
    let ranks = RankOptions::default();
    let mut ways = options.ways.clone();
    if options.tune {
        // Drives use as many as they find useful.
        ways.drive_cores.get_or_insert(u16::MAX);
    }
    let run_context = RunContext { context, plan, job: Arc::new(job), ways, ranks };
    let results = run_context.run_all_in_place(options.output.as_deref())?;
    let Some(results) = results else { return Ok(None) };
    let mut more = Map::new();
    for choice in options.kernel.usage().map_or(&[][..], |usage| usage.options) {
        if let (Kind::Text, Some(text)) = (choice.kind, options.arguments.text(choice.name)) {
            more.insert(choice.name.replace('-', "_"), text.into());
        }
    }
    let mut report = report(&run_context, &results, more.into(), warnings)?;
    if options.tune {
        report.text += &format!("plan: {}\n", run_context.job.settings_in_words());
    }
    Ok(Some(report))
}

/// Returns the alternative that is fastest on the host over the first chunks of every drive.
fn fastest(
    (plan, connection): (&Plan, &csd_initiator::Options),
    job: &Job,
) -> Result<Job, Failure> {
    let chunks = (SAMPLE_BYTES / job.inputs[0].chunk_bytes).max(1);
    let (ranks, progress) = (RankOptions::default(), Progress::none());
    let run_options = RunOptions { mode: Mode::Host, cores: 1, drive_cores: 1, ranks, progress };
    let mut best: Option<(f64, Job)> = None;
    for job in job.alternatives(EXECUTIONS_TRIED) {
        let sample = Arc::new(job.sample(chunks));
        let wall_s =
            csd_run::run(&runtime(), plan, connection, &sample, None, &run_options)?.wall_s;
        // Of equal ones the first wins.
        if best.as_ref().is_none_or(|(least, _)| wall_s < *least) {
            best = Some((wall_s, job));
        }
    }
    Ok(best.map_or_else(|| job.clone(), |(_, job)| job))
}
