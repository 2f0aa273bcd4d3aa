//! `csd bench`: measurements, each compared with a bound that is measured in the same run.
//!
//! `csd_bench` measures; this module runs it, shows its progress and reports its results. Every
//! measurement is a module that calls [`measured`].

mod block;
mod ec;
mod kv;
mod sched;
mod verify;

use csd_bench::frame::{Step, Stop};
use csd_bench::record::Record;
use csd_bench::report::{Describe, Outcome};
use csd_bench::serve::{self, Launch};
use csd_bench::{Error, cpus};
use csd_initiator::Address;
use csd_reactor::{Class, block_on, compute_long, spawn, stop_requested};
use serde_json::Value;

use crate::cli::Bench;
use crate::context::Context;
use crate::progress::Steps;
use crate::report::{Failure, Report};
use crate::runtime::runtime;
use crate::silences::Silences;

/// Words that start a server of a measurement.
const LAUNCH: Launch = Launch(&["bench", "serve"]);

/// Runs a measurement, or serves one side of it.
pub(crate) fn bench(command: &Bench, context: &Context) -> Result<Report, Failure> {
    match command {
        Bench::Block(options) => block::block(options, context),
        Bench::Kv(options) => kv::kv(options, context),
        Bench::Verify(options) => verify::verify(options, context),
        Bench::Ec(options) => ec::ec(options, context),
        Bench::Sched(options) => sched::sched(options),
        Bench::Serve(options) => {
            serve::serve(options.side, &options.options).map_err(failure)?;
            Ok(Report::new("", Value::Null))
        }
    }
}

/// Runs `measure` on a thread of its own, so that SIGINT and SIGTERM end it in order: its servers
/// end before this process does. Shows its progress.
fn measured<T: Send + 'static>(
    context: &Context,
    measure: impl FnOnce(&Stop, &dyn Fn(Step<'_>)) -> Result<T, Error> + Send + 'static,
) -> Result<T, Failure> {
    let bar = Steps::new(context);
    let done = block_on(&runtime(), move || async move {
        let stop = Stop::default();
        let asked = stop.clone();
        drop(spawn(Class::System, async move {
            stop_requested().await;
            asked.set();
        }));
        let progress = move |step: Step<'_>| bar.at(step.done, step.of, step.what);
        compute_long(0, move || measure(&stop, &progress)).await
    });
    done.map_err(Failure::run)?.map_err(Failure::run)?.map_err(failure)
}

/// Does [`measured`], and watches the drive of a URL: figures that contain a time in which it was
/// silent are not valid.
fn watched<R: Send + 'static>(
    context: &Context,
    url: Option<&str>,
    measure: impl FnOnce(&Stop, &dyn Fn(Step<'_>)) -> Result<Outcome<R>, Error> + Send + 'static,
) -> Result<Outcome<R>, Failure> {
    let Some(url) = url else { return measured(context, measure) };
    let address: Address = url.parse().map_err(Failure::usage)?;
    let silences = Silences::watch(vec![(url.to_owned(), address)], &context.options()?)?;
    let mut outcome = measured(context, measure)?;
    let silences = silences.end()?;
    if !silences.is_empty() {
        outcome.valid = false;
        outcome.validity = format!("NOT VALID: {}", silences.join("; "));
    }
    Ok(outcome)
}

/// Records the rows of pairs, and reports them under the line `conditions`. `settings` are the
/// settings in the result.
fn report<R: Describe>(
    conditions: &str,
    url: Option<&str>,
    settings: Value,
    outcome: &Outcome<R>,
    record: Record,
) -> Report {
    let Outcome { rows, valid, validity, left_out } = outcome;
    let mut text = format!("{conditions}\n{}\n", R::head());
    rows.iter().for_each(|row| text += &format!("{row}\n"));
    for line in left_out.iter().chain([validity]) {
        text += &format!("{line}\n");
    }
    let mut result = settings;
    result["pinned"] = cpus::can_pin().into();
    result["url"] = url.into();
    result["valid"] = (*valid).into();
    result["validity"] = validity.as_str().into();
    result["workloads"] = rows.iter().map(R::describe).collect();
    result["left_out"] = left_out.as_slice().into();
    let mut report = Report::new(text, result);
    if !valid {
        report.warn(format!("the result is {validity}"));
    }
    for name in rows.iter().filter_map(R::inconclusive) {
        report.warn(format!(
            "{name} is inconclusive: its ratios scatter by more than 15 %; measure more pairs, or \
             when the machine is less busy"
        ));
    }
    report.warnings.extend(unpinned());
    let lines = rows.iter().map(|row| {
        let mut line = row.recorded(validity);
        if let Some(url) = url {
            line["url"] = url.into();
        }
        line
    });
    keep(record, lines, &mut report);
    report
}

/// Appends lines to the record. Lines that cannot be written are a warning that a script sees: the
/// measurement is reported all the same.
fn keep(mut record: Record, lines: impl IntoIterator<Item = Value>, report: &mut Report) {
    if let Some(error) = lines.into_iter().find_map(|line| record.append(line).err()) {
        report.warn(format!("the results are not recorded: {error}"));
    }
}

/// Returns a warning if this process may use one CPU alone.
fn unpinned() -> Option<String> {
    (!cpus::can_pin()).then(|| {
        "this process may use one CPU alone: client and servers share it, and are not pinned"
            .to_owned()
    })
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Usage(why) => Failure::usage(why),
        Error::Client(error) => error.into(),
        other => Failure::run(other),
    }
}
