//! `csd run`: runs a kernel in one mode, or in several modes that are compared.
//!
//! - this module: looks up objects, runs each mode, compares the answers
//! - `retry_if_moved`: commands that begin again because an input was moved
//! - `kernels`: kernels that declare their options themselves
//! - `rank`: page rank, whose ranks the host keeps
//! - `text`: outcomes as text and JSON

mod kernels;
mod rank;
pub(crate) mod retry_if_moved;
pub(crate) mod text;

use std::sync::Arc;

use csd_initiator::Options;
use csd_kernels::kernel::Description;
use csd_kernels::page_rank::Options as RankOptions;
use csd_run::{Answer, Failed, Job, Mode, Outcome, OutputObject, RunOptions};
use csd_store::array::{Array, Plan};
use csd_store::catalogue::Entry;
use csd_store::object::{self, Stored};
use serde_json::{Value, json};

use crate::account;
use crate::array::lock::Writers;
use crate::cli::Run;
use crate::cli::ways::{Ways, Who};
use crate::context::{Context, with_plan};
use crate::progress::Bar;
use crate::report::{Class, Failure, Report};
use crate::runtime::{random, runtime};

/// Runs what the command line says.
pub(crate) fn run(options: &Run, context: &Context) -> Result<Report, Failure> {
    // Some runs store an object.
    let _writers = Writers::share(context.array_path())?;
    let taken = match options {
        Run::PageRank(options) => rank::put_edges(options, context)?,
        Run::Kernel(_) => None,
    };
    let mut report = retry_if_moved::until_in_place(|| match options {
        Run::Kernel(options) => kernels::run(options, context),
        Run::PageRank(options) => rank::page_rank(options, context),
    })?;
    if let Some(taken) = taken {
        report.text.insert_str(0, &format!("{}\n", taken.text));
        report.result["read"] = taken.json;
    }
    Ok(report)
}

/// Inputs and options that all runs of one job share.
struct RunContext<'a> {
    context: &'a Context,
    plan: Plan,
    job: Arc<Job>,
    ways: Ways,
    ranks: RankOptions,
}

/// Outcomes of a job's runs.
struct Results {
    outcomes: Vec<Outcome>,
    stored: Option<Stored>,
}

/// Looks up objects. Returns the plan, their entries, and warnings about drives that are down.
pub(crate) fn look_up(
    context: &Context,
    names: Vec<String>,
) -> Result<(Plan, Vec<Entry>, Vec<String>), Failure> {
    let plan = context.plan()?;
    let (entries, warnings) = with_plan(&plan, context.options()?, async move |array: &Array| {
        let mut entries = Vec::new();
        for name in &names {
            entries.push(object::lookup(array, name).await?);
        }
        Ok((entries, array.down()))
    })?;
    Ok((plan, entries, warnings))
}

/// Returns the modes to run: the requested one, then those to check it against.
pub(crate) fn ways(on: Who, check: bool) -> Vec<Mode> {
    let all = [Mode::Drives, Mode::Host, Mode::Split];
    let asked = match on {
        Who::All => return all.to_vec(),
        Who::Drives => Mode::Drives,
        Who::Host => Mode::Host,
        Who::Split => Mode::Split,
    };
    let mut ways = vec![asked];
    if check {
        ways.extend([Mode::Drives, Mode::Host].into_iter().filter(|&mode| mode != asked));
    }
    ways
}

impl RunContext<'_> {
    /// Does [`Self::run_all`]; returns `None` if that has failed because an input was moved
    /// meanwhile: then the command begins again.
    fn run_all_in_place(&self, output: Option<&str>) -> Result<Option<Results>, Failure> {
        let done = self.run_all(output);
        retry_if_moved::unless_moved((self.context, &self.plan), &self.job.inputs, done)
    }

    /// Runs the job in every requested mode, the first into the object `output`, and compares the
    /// answers.
    fn run_all(&self, output: Option<&str>) -> Result<Results, Failure> {
        let mut results = Results { outcomes: Vec::new(), stored: None };
        for mode in ways(self.ways.on, self.ways.check) {
            let name = match (output, results.outcomes.is_empty()) {
                (Some(name), true) => Some(name.to_owned()),
                // Later outputs are compared with the first one and deleted.
                (Some(name), false) => Some(comparison_name(name)?),
                (None, _) => None,
            };
            let (outcome, stored) = self.one(mode, name)?;
            results.outcomes.push(outcome);
            let compared = match (&results.stored, stored) {
                (None, stored) => {
                    results.stored = stored;
                    Ok(())
                }
                (Some(first), Some(other)) => self.compare_objects(&first.entry, other.entry, mode),
                (Some(_), None) => Ok(()),
            };
            let describe = |answer: &Answer| self.describe(answer);
            compared.and_then(|()| compare(&results.outcomes, &describe))?;
        }
        Ok(results)
    }

    /// Describes an answer of the job.
    fn describe(&self, answer: &Answer) -> Description {
        self.job.describe(&answer.whole)
    }

    fn with_array<T: Send + 'static>(
        &self,
        command: impl AsyncFnOnce(&Array) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        with_plan(&self.plan, self.context.options()?, command)
    }

    /// Runs the job in one mode. If drives of protected inputs are lost, an output object cannot
    /// lie where they do: the run begins again, with an object on the other drives.
    fn one(
        &self,
        mode: Mode,
        output: Option<String>,
    ) -> Result<(Outcome, Option<Stored>), Failure> {
        let options = self.context.options()?;
        let Some(name) = output else { return Ok((self.attempt(mode, &options, None)?, None)) };
        let (mut lost, mut reasons) = (Vec::new(), Vec::new());
        loop {
            let (job, name, without) = (Arc::clone(&self.job), name.clone(), lost.clone());
            let output_object = self.with_array(async move |array: &Array| {
                Ok(OutputObject::begin(array, &name, &job, &without).await?)
            })?;
            let failed = match self.attempt(mode, &options, Some(&output_object)) {
                Ok(mut outcome) => {
                    let stored = self.seal(output_object, outcome.answer.clone())?;
                    outcome.warnings.splice(0..0, reasons);
                    return Ok((outcome, Some(stored)));
                }
                Err(failed) => failed,
            };
            let abandoned = self.with_array(async move |array: &Array| {
                output_object.abandon(array).await;
                Ok(())
            });
            // The user must see the first error.
            let _seen = abandoned;
            let mut more = failed.lost();
            more.retain(|(drive, _)| !lost.contains(drive));
            if more.is_empty() || !self.job.can_lose_drives() {
                return Err(failed.into());
            }
            for (drive, why) in more {
                reasons.push(format!("{why}; the run began again without it"));
                lost.push(drive);
            }
        }
    }

    fn attempt(
        &self,
        mode: Mode,
        options: &Options,
        output: Option<&OutputObject>,
    ) -> Result<Outcome, Failed> {
        let bar = Bar::new(self.context, &format!("on {mode}"), self.length());
        let cores = usize::from(self.ways.cores.unwrap_or(1));
        let (ranks, progress) = (self.ranks, bar.progress.clone());
        let drive_cores = self.ways.drive_cores.unwrap_or(1);
        let run_options = RunOptions { mode, cores, drive_cores, ranks, progress };
        csd_run::run(&runtime(), &self.plan, options, &self.job, output, &run_options)
    }

    fn seal(&self, output_object: OutputObject, answer: Answer) -> Result<Stored, Failure> {
        let job = Arc::clone(&self.job);
        self.with_array(async move |array: &Array| {
            Ok(output_object.seal(array, &job, &answer).await?)
        })
    }

    /// Returns the bytes to process, for the progress bar; unknown for page rank.
    fn length(&self) -> Option<u64> {
        (self.job.name() != "page-rank").then(|| self.job.bytes())
    }

    /// Compares two objects byte for byte, and removes the second.
    fn compare_objects(&self, first: &Entry, other: Entry, mode: Mode) -> Result<(), Failure> {
        let first = first.clone();
        let name = first.name.clone();
        let differ = self.with_array(async move |array: &Array| {
            let differ = csd_run::difference(array, &first, &other).await;
            object::remove(array, &other.name).await?;
            Ok(differ?)
        })?;
        match differ {
            None => Ok(()),
            Some(byte) => Err(Failure {
                detail: json!({ "byte": byte, "on": mode.to_string() }),
                ..Failure::new(
                    Class::Differ,
                    format!("answers differ: {mode} gave another {name:?} from byte {byte} on"),
                )
            }),
        }
    }
}

/// Returns a name for an object that exists only for comparison.
fn comparison_name(name: &str) -> Result<String, Failure> {
    let tag: [u8; 4] = random()?;
    Ok(format!("{name}.check-{:08x}", u32::from_le_bytes(tag)))
}

/// Fails with class "differ" if two answers differ, because one of them is wrong.
fn compare(outcomes: &[Outcome], describe: &dyn Fn(&Answer) -> Description) -> Result<(), Failure> {
    let same = |pair: &[Outcome]| pair[0].answer == pair[1].answer;
    if outcomes.windows(2).all(same) {
        return Ok(());
    }
    let shown = |o: &Outcome| text::shown(&o.answer, &describe(&o.answer)).1;
    let answers: Vec<_> = outcomes.iter().map(|o| format!("{}: {}", o.mode, shown(o))).collect();
    let detail = outcomes.iter().map(|o| text::describe("value", &describe(&o.answer), o));
    let message = format!("answers differ: {}", answers.join(", "));
    Err(Failure {
        detail: detail.collect::<Vec<_>>().into(),
        ..Failure::new(Class::Differ, message)
    })
}

/// Makes the report of a job, with the fields `more` in its JSON.
fn report(
    run_context: &RunContext<'_>,
    results: &Results,
    more: Value,
    warnings: Vec<String>,
) -> Result<Report, Failure> {
    let objects: Vec<_> = run_context.job.inputs.iter().map(|entry| entry.name.clone()).collect();
    let describe = |answer: &Answer| run_context.describe(answer);
    let first = describe(&results.outcomes[0].answer);
    let run = |o: &Outcome| text::describe(first.name, &describe(&o.answer), o);
    let mut result = json!({
        "kernel": run_context.job.name(),
        "type": run_context.job.inputs[0].element.name(),
        "elements": run_context.job.elements(),
        "bytes": run_context.job.bytes(),
        "checked": results.outcomes.len() > 1,
        "runs": results.outcomes.iter().map(run).collect::<Vec<_>>(),
    });
    match &objects[..] {
        [object] => result["object"] = object.as_str().into(),
        objects => result["objects"] = objects.into(),
    }
    result[first.name] = first.value.into();
    for (name, value) in first.fields.iter().chain(&run_context.job.settings()) {
        result[*name] = text::json_of(value);
    }
    if let Value::Object(more) = more {
        more.into_iter().for_each(|(key, value)| result[key] = value);
    }
    let mut all = warnings;
    all.extend(results.outcomes.iter().flat_map(|outcome| outcome.warnings.iter().cloned()));
    all.dedup();
    if let Some(stored) = &results.stored {
        result["output"] = crate::object::describe(&stored.entry);
        all.extend(stored.warnings.iter().cloned());
        all.dedup();
    }
    let mut text = text::of(&describe, &results.outcomes, results.stored.as_ref());
    let runs: Vec<_> = results.outcomes.iter().map(|o| (o.mode, o.cores)).collect();
    let account = &run_context.ways.account;
    let mut notes = Vec::new();
    if let Some(accounted) =
        account::account(account, run_context.job.name(), &run_context.job.inputs, &runs)?
    {
        text.push_str(&accounted.text);
        result["model"] = accounted.result;
        notes = accounted.warnings;
    }
    let mut report = Report::new(text, result).with_warnings(all);
    report.warnings.extend(notes);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(result: u64) -> csd_kernels::kernel::Answer {
        csd_kernels::kernel::Answer { result, bytes: Vec::new() }
    }

    fn described(answer: &Answer) -> Description {
        Description::count("value", answer.whole.result)
    }

    fn outcome(mode: Mode, value: u64) -> Outcome {
        Outcome {
            mode,
            cores: 1,
            answer: Answer { whole: whole(value), ..Answer::default() },
            elements: 8,
            bytes: 32,
            wall_s: 1.0,
            crossed_bytes: 24,
            shares: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_check_adds_the_ways_that_were_not_asked_for() {
        use Mode::{Drives, Host, Split};
        assert_eq!(ways(Who::Drives, false), [Drives]);
        assert_eq!(ways(Who::Drives, true), [Drives, Host]);
        assert_eq!(ways(Who::Host, true), [Host, Drives]);
        assert_eq!(ways(Who::Split, true), [Split, Drives, Host]);
        assert_eq!(ways(Who::All, false), [Drives, Host, Split]);
    }

    #[test]
    fn answers_that_differ_are_a_failure_with_all_of_them() {
        assert!(compare(&[outcome(Mode::Drives, 3)], &described).is_ok());
        assert!(compare(&[outcome(Mode::Drives, 3), outcome(Mode::Host, 3)], &described).is_ok());
        let failure = compare(
            &[outcome(Mode::Drives, 3), outcome(Mode::Host, 4), outcome(Mode::Split, 3)],
            &described,
        )
        .unwrap_err();
        assert_eq!(failure.class, Class::Differ);
        assert_eq!(failure.message, "answers differ: drives: 3, host: 4, split: 3");
    }
}
