//! `csd meter`: one record of what a command took, on the host and in the drives of the array.
//!
//! Its exit code is the command's own; 125 if the meter itself failed, and as with `env` 126 if the
//! command cannot be run and 127 if it is not there. Everything is read every quarter of a second,
//! so that what ends meanwhile is counted, and no counter wraps twice.
//!
//! - [`counted`] reads processes, control groups and drives
//! - [`moved`] asks a drive what has moved through it
//! - [`job`] starts the command and waits for it
//! - [`tasks`] counts the tasks of a framework, as the framework has counted them
//! - [`mod@record`] describes the outcome

mod counted;
mod job;
mod moved;
mod record;
mod tasks;

use std::time::{Duration, Instant};

use csd_measure::job_energy::{Counters, JobEnergy};
use csd_measure::rapl::Rapl;

use crate::cli::meter::Meter;
use crate::context::Context;
use crate::report::{self, Failure, Report, Style};
use crate::{pace, target};
use counted::Counted;
use job::{Ended, Job};
use tasks::TaskLog;

/// Exit codes of a meter that failed, and of commands that cannot be run or are not there.
pub(crate) const FAILED: u8 = 125;
const CANNOT_RUN: u8 = 126;
const NOT_THERE: u8 = 127;
/// Time between two readings.
const PERIOD: Duration = Duration::from_millis(250);

/// Runs a command and records what it took.
pub(crate) fn meter(options: &Meter, context: &Context, style: Style) -> Result<Report, Failure> {
    let own =
        |failure: Failure| Failure { exit_code: failure.exit_code.or(Some(FAILED)), ..failure };
    let mut report = metered(options, context).map_err(own)?;
    if let Some(path) = &options.output {
        let object = report::object("meter", &Ok(report.clone()));
        target::replace(path, &format!("{object}\n")).map_err(own)?;
    }
    // Standard output is the command's.
    let text = std::mem::take(&mut report.text);
    if !style.json && !style.quiet {
        text.lines().for_each(report::print_error);
    }
    Ok(report)
}

fn metered(options: &Meter, context: &Context) -> Result<Report, Failure> {
    if let Some(path) = &options.output {
        target::check(path)?;
    }
    let watts = Watts::of(options)?;
    let mut counters = Counters::new(Rapl::find(&options.powercap));
    let idle = options.idle.filter(|_| counters.why().is_none());
    let before = idle.and_then(|time| rest(&mut counters, time));
    let mut counted = Counted::of(context, &options.pid)?;
    let task_log = TaskLog::new()?;
    let mut job = Job::new(&options.command, task_log.path())?;
    counted.read();
    let first = counters.read();
    let begun = Instant::now();
    job.start()?;
    let ended = job.wait(PERIOD, || {
        counted.read();
        counters.read();
    });
    let seconds = begun.elapsed().as_secs_f64();
    counted.read_last();
    let last = counters.read();
    let host = job.usage();
    let after = idle.and_then(|time| rest(&mut counters, time));
    let energy = match (first.zip(last), counters.why()) {
        (Some((first, last)), None) => {
            JobEnergy::Rapl { gross_joules: last - first, rest_watts: before.zip(after), seconds }
        }
        (_, why) => watts.energy(&counted.cpu_s(host.cpu_s), why.unwrap_or("no counter")),
    };
    let tasks = task_log.tasks();
    let ran = record::Ran { words: &options.command, ended, seconds, tasks: tasks.as_ref() };
    let report = record::describe(&ran, &host, &counted, &energy);
    Ok(Report { exit_code: Some(code(ended)), ..report })
}

/// Returns the exit code of a command as a shell has it.
fn code(ended: Ended) -> u8 {
    match ended {
        Ended::With(code) => code,
        Ended::By(signal) => 128_u8.wrapping_add(signal),
    }
}

/// Returns the machine's power during this time, W.
fn rest(counters: &mut Counters, time: Duration) -> Option<f64> {
    let (before, begun) = (counters.read()?, Instant::now());
    let end = begun + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    {
        std::thread::sleep(left.min(PERIOD));
        counters.read()?;
    }
    Some((counters.read()? - before) / begun.elapsed().as_secs_f64())
}

/// Watts of the profile.
#[derive(Default)]
struct Watts {
    /// Power that one working core of the host adds, W.
    core: Option<f64>,
    /// Power that a drive at work adds, W.
    drive: Option<f64>,
}

impl Watts {
    fn of(options: &Meter) -> Result<Self, Failure> {
        let Some(path) = &options.profile else { return Ok(Self::default()) };
        let (profile, device) = pace::load(path)?;
        let drive = profile.device.get(&device);
        let drive = drive.and_then(|device| Some(device.active_W? - device.idle_W?));
        Ok(Self { core: profile.host.core_W, drive })
    }

    /// Returns the energy of CPU times, by watts.
    fn energy(&self, cpu: &counted::CpuSeconds, why: &str) -> JobEnergy {
        let inside = cpu.os + cpu.drives + cpu.tunnels_inside;
        let outside = cpu.host + cpu.tunnels_outside;
        match (self.core, self.drive) {
            (Some(core), Some(drive)) => {
                JobEnergy::CpuSeconds { joules: outside * core + inside * drive }
            }
            (Some(core), None) if inside == 0.0 => JobEnergy::CpuSeconds { joules: outside * core },
            (None, None) => JobEnergy::Unknown(format!("{why}, and no profile gives watts")),
            _ => JobEnergy::Unknown(format!(
                "{why}, and the profile lacks watts of the {}",
                if self.core.is_none() { "host's cores" } else { "drives" }
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::counted::CpuSeconds;

    #[test]
    fn energy_by_watts_takes_those_of_each_side() {
        let cpu = CpuSeconds {
            host: 10.0,
            os: 4.0,
            drives: 1.0,
            tunnels_inside: 0.5,
            tunnels_outside: 0.25,
        };
        let both = Watts { core: Some(8.0), drive: Some(2.0) };
        assert_eq!(both.energy(&cpu, "").joules(), Some(10.25 * 8.0 + 5.5 * 2.0));
        let host = Watts { core: Some(8.0), drive: None };
        let words = host.energy(&cpu, "no counter").note().unwrap();
        assert!(words.contains("no counter, and the profile lacks watts of the drives"), "{words}");
        let alone = CpuSeconds { host: 10.0, ..CpuSeconds::default() };
        assert_eq!(host.energy(&alone, "").joules(), Some(80.0));
        assert_eq!(Watts::default().energy(&cpu, "x").joules(), None);
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(code(Ended::With(3)), 3);
        assert_eq!(code(Ended::By(9)), 137);
    }
}
