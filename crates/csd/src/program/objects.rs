//! `csd program run` over objects, in one mode or in several that are compared.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use csd_run::program::{self, Outcome, Records, RunOptions, Sandbox, Task};
use csd_store::ElementType;
use csd_store::array::{Array, Plan};
use csd_store::error::NameError;
use csd_store::object::{self, PutOptions, Stored};
use csd_store::source::Source;
use serde_json::{Value, json};

use super::run::{memory_mib, parameters, write};
use super::{WASM, read_module};
use crate::array::lock::Writers;
use crate::cli::program::Run;
use crate::context::{Context, with_plan};
use crate::progress::Bar;
use crate::report::{Class, Failure, Report};
use crate::run::retry_if_moved::{unless_moved, until_in_place};
use crate::run::{look_up, text, ways};
use crate::runtime::runtime;
use crate::table::pairs;
use crate::target::Target;
use crate::units::{duration, grouped, percent, rate, size};

/// Default time limit of an execution, ms.
const TIME_MS: u32 = 20_000;
/// Default memory limit of an execution, MiB.
const MEMORY_MIB: u16 = 64;

/// Runs the program in `file` over objects.
pub(super) fn run(file: &Path, options: &Run, context: &Context) -> Result<Report, Failure> {
    if options.at.drive.is_some() {
        return Err(Failure::usage("--object runs on every drive of the array: leave out --drive"));
    }
    let sandbox = sandbox(read_module(file, WASM)?, file)?;
    // The run may store the program's output as an object.
    let _writers = Writers::share(context.array_path())?;
    until_in_place(|| attempt(&sandbox, options, context))
}

/// Runs a program over the objects as they lie now; `None` if one of them was moved meanwhile.
fn attempt(
    sandbox: &Arc<dyn Sandbox>,
    options: &Run,
    context: &Context,
) -> Result<Option<Report>, Failure> {
    let (plan, inputs, warnings) = look_up(context, options.object.clone())?;
    let room = options.room.map(u32::try_from).transpose();
    let room = room.map_err(|_| Failure::usage("--room is below 4 GiB"))?;
    let limits = (options.time.unwrap_or(TIME_MS), memory_mib(options)?.unwrap_or(MEMORY_MIB));
    let sandbox = Arc::clone(sandbox);
    let task = Arc::new(Task::new(inputs, sandbox, parameters(options), limits, room)?);
    let target = match &options.output {
        Some(file) => Some((file, Target::open(file, options.force)?)),
        None => None,
    };
    if let Some(name) = &options.store {
        refuse_existing((context, &plan), name)?;
    }
    let outcomes = run_all(options, (context, &plan), &task);
    let outcomes = unless_moved((context, &plan), &task.inputs, outcomes)?;
    let Some(outcomes) = outcomes else { return Ok(None) };
    let output = &outcomes[0].answer.output;
    let to_stdout = target.as_ref().is_some_and(|(_, (target, _))| target.is_stdout());
    if let Some((file, target)) = target {
        write(file, target, output)?;
    }
    let stored = match &options.store {
        Some(name) => Some(store((context, &plan), name, output.clone())?),
        None => None,
    };
    Ok(Some(report(&task, &outcomes, stored, to_stdout, warnings)))
}

/// Returns the sandbox that runs a program on this host.
#[cfg(feature = "wasm")]
fn sandbox(bytes: Vec<u8>, _: &Path) -> Result<Arc<dyn Sandbox>, Failure> {
    super::sandbox::open(bytes)
}

/// Fails: this build has no sandbox.
#[cfg(not(feature = "wasm"))]
fn sandbox(_: Vec<u8>, file: &Path) -> Result<Arc<dyn Sandbox>, Failure> {
    Err(Failure::run(format!(
        "this csd was built without WebAssembly and cannot run {}: build it with cargo build \
         --release -p csd",
        file.display()
    )))
}

/// Runs the task in every requested mode, and compares the answers.
fn run_all(
    options: &Run,
    (context, plan): (&Context, &Plan),
    task: &Arc<Task>,
) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for mode in ways(options.on, options.check) {
        let bar = Bar::new(context, &format!("on {mode}"), Some(task.bytes()));
        let cores = usize::from(options.cores.unwrap_or(1));
        let run_options = RunOptions { mode, cores, progress: bar.progress.clone() };
        let mut outcome = program::run(&runtime(), plan, &context.options()?, task, &run_options)?;
        drop(bar);
        if let Some(first) = outcomes.first() {
            compare(first, &outcome)?;
            // It equals the first one, and may be long.
            outcome.answer.output = Vec::new();
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Fails with class "differ" if two answers differ, because one of them is wrong.
fn compare(first: &Outcome, other: &Outcome) -> Result<(), Failure> {
    let (a, b) = (&first.answer, &other.answer);
    let why = if a.result != b.result {
        format!("the result on {} is {}, on {} {}", first.mode, a.result, other.mode, b.result)
    } else if a.output != b.output {
        let pairs = a.output.iter().zip(&b.output);
        let at = pairs.take_while(|(a, b)| a == b).count();
        format!("{} wrote another byte {at} than {}", other.mode, first.mode)
    } else {
        return Ok(());
    };
    let detail = json!([describe(first), describe(other)]);
    Err(Failure { detail, ..Failure::new(Class::Differ, format!("answers differ: {why}")) })
}

fn refuse_existing((context, plan): (&Context, &Plan), name: &str) -> Result<(), Failure> {
    let name = name.to_owned();
    with_plan(plan, context.options()?, async move |array: &Array| {
        match object::lookup(array, &name).await {
            Ok(_) => Err(object::Error::Name(NameError::Exists { name }).into()),
            Err(object::Error::Name(NameError::Missing { .. })) => Ok(()),
            Err(error) => Err(error.into()),
        }
    })
}

/// Stores what the program wrote as an object.
fn store(
    (context, plan): (&Context, &Plan),
    name: &str,
    output: Vec<u8>,
) -> Result<Stored, Failure> {
    let source = Source::raw(name, Box::new(Cursor::new(output)), ElementType::Bytes);
    let name = name.to_owned();
    with_plan(plan, context.options()?, async move |array: &Array| {
        let options = PutOptions::new(name);
        Ok(object::put(array, source, &options, &object::Progress::none()).await?)
    })
}

fn report(
    task: &Task,
    outcomes: &[Outcome],
    stored: Option<Stored>,
    to_stdout: bool,
    mut warnings: Vec<String>,
) -> Report {
    let first = &outcomes[0];
    warnings.extend(outcomes.iter().flat_map(|outcome| outcome.warnings.iter().cloned()));
    warnings.dedup();
    let names: Vec<&String> = task.inputs.iter().map(|entry| &entry.name).collect();
    let records = match task.records() {
        Records::Elements => "elements",
        Records::Lines => "lines",
    };
    let mut result = json!({
        "objects": names,
        "records": records,
        "bytes": task.bytes(),
        "result": first.answer.result.to_string(),
        "written_bytes": first.answer.output.len(),
        "checked": outcomes.len() > 1,
        "runs": outcomes.iter().map(describe).collect::<Vec<_>>(),
    });
    let mut text = match outcomes {
        [one] => text_of_one(one, task),
        all => text_of_many(all, task),
    };
    if let Some(Stored { entry, warnings: more }) = stored {
        result["output"] = crate::object::describe(&entry);
        text += &format!("{}: {}\n", entry.name, size(entry.bytes));
        warnings.extend(more);
        warnings.dedup();
    }
    // Standard output has only the program's output.
    let text = if to_stdout { String::new() } else { text };
    Report::new(text, result).with_warnings(warnings)
}

/// Formats the bytes that crossed the wire, and their share of the input.
fn crossed(outcome: &Outcome) -> String {
    let (crossed, bytes) = (outcome.crossed_bytes, outcome.bytes);
    format!("{} ({})", size(crossed), percent(crossed, bytes))
}

fn text_of_one(outcome: &Outcome, task: &Task) -> String {
    pairs(&[
        ("result", grouped(outcome.answer.result)),
        ("written", size(outcome.answer.output.len() as u64)),
        ("on", text::who(outcome.mode, outcome.cores)),
        ("time", duration(outcome.wall_s)),
        ("rate", rate(outcome.bytes, outcome.wall_s)),
        ("crossed", crossed(outcome)),
        ("executions", grouped(outcome.executions)),
        ("handed on", size(outcome.handed_bytes)),
        ("shares", text::shares(&outcome.shares, task.inputs[0].elements())),
    ])
}

fn text_of_many(outcomes: &[Outcome], task: &Task) -> String {
    let mut table = text::table_of_ways("result");
    for outcome in outcomes {
        table.row(vec![
            text::who(outcome.mode, outcome.cores),
            grouped(outcome.answer.result),
            duration(outcome.wall_s),
            rate(outcome.bytes, outcome.wall_s),
            crossed(outcome),
            text::shares(&outcome.shares, task.inputs[0].elements()),
        ]);
    }
    let written = size(outcomes[0].answer.output.len() as u64);
    format!("{}written {written}; answers agree\n", table.render())
}

fn describe(outcome: &Outcome) -> Value {
    json!({
        "on": outcome.mode.to_string(),
        "cores": outcome.cores,
        "result": outcome.answer.result.to_string(),
        "executions": outcome.executions,
        "handed_bytes": outcome.handed_bytes,
        "wall_s": outcome.wall_s,
        "crossed_bytes": outcome.crossed_bytes,
        "shares": text::describe_shares(&outcome.shares),
    })
}

#[cfg(all(test, not(feature = "wasm")))]
#[test]
fn a_build_without_webassembly_says_so() {
    let failure =
        sandbox(Vec::new(), Path::new("x.wasm")).err().expect("there is nothing to run it");
    assert_eq!(failure.class, Class::Run);
    assert!(failure.message.contains("was built without WebAssembly and cannot run x.wasm"));
}
