//! `csd run count`, `vector-add`, `array-merge` and `verify`.

use std::sync::Arc;

use csd_kernels::page_rank::Options as RankOptions;
use csd_kernels::verify::Plan as Pages;
use csd_store::array::Plan;
use csd_store::run::{self, How, Job, Way};
use serde_json::{Value, json};

use super::{Desk, look_up, report};
use crate::cli::run::{Count, Pair, Verify, Ways, Who};
use crate::context::{Context, silent};
use crate::report::{Failure, Report};
use crate::runtime::runtime;

/// Bytes of each drive that a plan is tried on.
const SAMPLE_BYTES: u32 = 32 << 20;
/// Most units that are tried.
const UNITS_TRIED: u16 = 4;

fn desk<'a>(context: &'a Context, plan: Plan, job: Job, ways: Ways) -> Desk<'a> {
    Desk { context, plan, job: Arc::new(job), ways, ranks: RankOptions::default() }
}

/// Counts, and compares if asked to.
pub(super) fn count(options: &Count, context: &Context) -> Result<Report, Failure> {
    let (plan, mut entries, warnings) = look_up(context, vec![options.name.clone()])?;
    let job = Job::count(entries.remove(0), &options.equal)?;
    let desk = desk(context, plan, job, options.ways.clone());
    let results = desk.run_all(None)?;
    report(&desk, &results, "count", json!({ "equal": options.equal }), warnings)
}

pub(super) fn vector_add(options: &Pair, context: &Context) -> Result<Report, Failure> {
    pair(options, context, "added", Job::vector_add)
}

pub(super) fn array_merge(options: &Pair, context: &Context) -> Result<Report, Failure> {
    pair(options, context, "merged", Job::array_merge)
}

type Make = fn(
    csd_store::catalogue::Entry,
    csd_store::catalogue::Entry,
) -> Result<Job, csd_store::run::Unfit>;

fn pair(
    options: &Pair,
    context: &Context,
    name: &'static str,
    make: Make,
) -> Result<Report, Failure> {
    let names = vec![options.left.clone(), options.right.clone()];
    let (plan, entries, warnings) = look_up(context, names)?;
    let [left, right] = <[_; 2]>::try_from(entries).expect("two names");
    let desk = desk(context, plan, make(left, right)?, options.ways.clone());
    let results = desk.run_all(Some(&options.output))?;
    report(&desk, &results, name, Value::Null, warnings)
}

/// Verifies, after finding a plan if asked to.
pub(super) fn verify(options: &Verify, context: &Context) -> Result<Report, Failure> {
    let (plan, mut entries, warnings) = look_up(context, vec![options.name.clone()])?;
    let page_bytes = u32::try_from(options.page_bytes)
        .map_err(|_| Failure::usage("a page has less than 4 GiB"))?;
    let (per_unit, units) = (options.pages_per_unit.unwrap_or(1), options.units.unwrap_or(1));
    let mut pages =
        Pages::new(page_bytes, per_unit, units, options.unroll).map_err(Failure::usage)?;
    let entry = entries.remove(0);
    if options.auto {
        let job = Job::verify(entry.clone(), pages)?;
        let way = if options.ways.on == Who::Host { Way::Host } else { Way::Drives };
        pages = fastest((&plan, &context.options()?), &job, page_bytes, way)?;
    }
    let desk = desk(context, plan, Job::verify(entry, pages)?, options.ways.clone());
    let results = desk.run_all(options.output.as_deref())?;
    let digest = results.outcomes[0].answer.digest.unwrap_or(0);
    let more = json!({
        "digest": format!("{digest:08x}"),
        "page_bytes": pages.page_bytes(),
        "pages_per_unit": pages.pages_per_unit(),
        "units": pages.units(),
        "unroll": pages.unroll(),
    });
    let mut report = report(&desk, &results, "pages", more, warnings)?;
    if options.auto {
        report.text += &format!(
            "plan: {} pages a unit, {} units, {} pages together\n",
            pages.pages_per_unit(),
            pages.units(),
            pages.unroll()
        );
    }
    Ok(report)
}

/// The plan that is fastest over the first chunks of every drive.
fn fastest(
    (plan, connection): (&Plan, &csd_initiator::Options),
    job: &Job,
    page_bytes: u32,
    way: Way,
) -> Result<Pages, Failure> {
    let entry = &job.inputs[0];
    let chunks = (SAMPLE_BYTES / entry.chunk_bytes).max(1);
    let (ranks, progress) = (RankOptions::default(), silent());
    let how = How { way, cores: 1, drive_cores: 1, ranks, progress };
    let mut failed = None;
    let picked = Pages::auto(page_bytes, UNITS_TRIED, |pages| {
        if failed.is_some() {
            return u64::MAX;
        }
        let tried = Job::verify(entry.clone(), *pages).map_err(Failure::from).and_then(|job| {
            let job = Arc::new(job.sample(chunks));
            let ran = run::run(&runtime(), plan, connection, &job, None, &how)?;
            Ok(std::time::Duration::from_secs_f64(ran.wall_s).as_nanos())
        });
        match tried {
            Ok(ns) => u64::try_from(ns).unwrap_or(u64::MAX),
            Err(failure) => {
                failed = Some(failure);
                u64::MAX
            }
        }
    });
    failed.map_or(Ok(picked), Err)
}
