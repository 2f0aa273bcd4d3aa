//! `csd bench`: measurements, each compared with a bound that is measured in the same run.
//!
//! `csd_bench` measures; this module runs it, shows its progress and reports its results. Every
//! measurement is a module that calls [`measured`].

mod block;
mod ec;
mod kv;
mod verify;

use csd_bench::frame::{Step, Stop};
use csd_bench::serve::{self, Launch};
use csd_bench::{Error, cpus};
use csd_reactor::{Class, block_on, compute_long, spawn, stop_requested};
use serde_json::Value;

use crate::cli::Bench;
use crate::context::Context;
use crate::progress::Steps;
use crate::report::{Failure, Report};
use crate::runtime::runtime;

/// Words that start a server of a measurement.
const LAUNCH: Launch = Launch(&["bench", "serve"]);

/// Runs a measurement, or serves one side of it.
pub(crate) fn bench(command: &Bench, context: &Context) -> Result<Report, Failure> {
    match command {
        Bench::Block(options) => block::block(options, context),
        Bench::Kv(options) => kv::kv(options, context),
        Bench::Verify(options) => verify::verify(options, context),
        Bench::Ec(options) => ec::ec(options, context),
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

/// Returns the warning of a row whose ratios scatter.
fn inconclusive(name: &str) -> String {
    format!(
        "{name} is inconclusive: its ratios scatter by more than 15 %; measure more pairs, or when \
         the machine is less busy"
    )
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
