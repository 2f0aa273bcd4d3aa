//! The record of a job, for people and for programs.

use csd_measure::job_energy::JobEnergy;
use serde_json::{Value, json};

use super::counted::{Counted, CpuSeconds, OfDrive};
use super::job::{Ended, HostUsage};
use super::tasks::Tasks;
use crate::report::Report;
use crate::table::pairs;
use crate::units::size;

/// A command that has ended.
pub(super) struct Ran<'a> {
    pub(super) words: &'a [String],
    pub(super) ended: Ended,
    pub(super) seconds: f64,
    /// Tasks, if a framework has counted them.
    pub(super) tasks: Option<&'a Tasks>,
}

/// Describes a job.
pub(super) fn describe(
    ran: &Ran<'_>,
    host: &HostUsage,
    counted: &Counted<'_>,
    energy: &JobEnergy,
) -> Report {
    let cpu = counted.cpu_s(host.cpu_s);
    let failed = ran.ended != Ended::With(0);
    let mut warnings = counted.gaps();
    warnings.extend(host.without_group.as_ref().map(|why| {
        format!(
            "the command has no control groups ({why}): processes that it did not wait for are \
             missing"
        )
    }));
    warnings.extend(energy.note());
    let (code, signal) = match ran.ended {
        Ended::With(code) => (Some(code), None),
        Ended::By(signal) => (None, Some(signal)),
    };
    let result = json!({
        "command": ran.words,
        "failed": failed,
        "exit_code": code,
        "signal": signal,
        "wall_s": ran.seconds,
        "cpu_s": {
            "host": cpu.host,
            "os": cpu.os,
            "drives": cpu.drives,
            "tunnels_inside": cpu.tunnels_inside,
            "tunnels_outside": cpu.tunnels_outside,
        },
        "memory_peak_bytes": host.memory_peak_bytes,
        "drives": counted.drives.iter().map(of_drive).collect::<Vec<_>>(),
        "energy": of_energy(energy),
        "tasks": ran.tasks.map(of_tasks),
    });
    let mut report = Report::new(text(ran, &cpu, host, energy), result);
    report.warnings = warnings;
    report
}

fn text(ran: &Ran<'_>, cpu: &CpuSeconds, host: &HostUsage, energy: &JobEnergy) -> String {
    let tunnels = cpu.tunnels_inside + cpu.tunnels_outside;
    let end = match ran.ended {
        Ended::With(0) => "done".to_owned(),
        Ended::With(code) => format!("failed with exit code {code}"),
        Ended::By(signal) => format!("ended by signal {signal}"),
    };
    let memory = host.memory_peak_bytes.map_or_else(|| "unknown".to_owned(), size);
    let joules =
        energy.joules().map_or_else(|| "none".to_owned(), |joules| format!("{joules:.1} J"));
    let mut rows = vec![
        ("command", end),
        ("wall time", format!("{:.2} s", ran.seconds)),
        (
            "CPU time",
            format!(
                "{:.2} s host, {:.2} s operating systems, {:.2} s drives, {tunnels:.2} s tunnels",
                cpu.host, cpu.os, cpu.drives
            ),
        ),
        ("peak memory", format!("{memory} of the command")),
        ("energy", joules),
    ];
    rows.extend(ran.tasks.map(|tasks| {
        let Tasks { maps, reduces, data_local, rack_local, other, .. } = tasks;
        let places = format!("{data_local} data-local, {rack_local} rack-local, {other} other");
        ("tasks", format!("{maps} maps ({places}), {reduces} reduces"))
    }));
    pairs(&rows)
}

/// Describes what a drive has counted.
fn of_drive((name, drive): (&String, &OfDrive)) -> Value {
    let outside = drive.read.total() - drive.read_inside.total();
    json!({
        "name": name,
        "os_cpu_s": drive.os_cpu.total(),
        "drive_cpu_s": drive.drive_cpu.total(),
        "tunnel_inside_cpu_s": drive.inside_cpu.total(),
        "tunnel_outside_cpu_s": drive.outside_cpu.total(),
        "os_memory_peak_bytes": drive.memory_bytes,
        "read_inside_bytes": drive.read_inside.total(),
        // The drive counts in units of 512,000 bytes.
        "read_outside_bytes": outside.max(0.0),
        "tunnel_sent_bytes": drive.sent.total(),
        "tunnel_received_bytes": drive.received.total(),
    })
}

fn of_tasks(tasks: &Tasks) -> Value {
    json!({
        "framework": "hadoop",
        "jobs": tasks.jobs,
        "maps": tasks.maps,
        "reduces": tasks.reduces,
        "maps_data_local": tasks.data_local,
        "maps_rack_local": tasks.rack_local,
        "maps_other": tasks.other,
    })
}

fn of_energy(energy: &JobEnergy) -> Value {
    let (source, gross, rest) = match energy {
        JobEnergy::Rapl { gross_joules, rest_watts, .. } => {
            (Some("rapl"), Some(*gross_joules), *rest_watts)
        }
        JobEnergy::CpuSeconds { .. } => (Some("cpu-seconds"), None, None),
        JobEnergy::Unknown(_) => (None, None, None),
    };
    json!({
        "source": source,
        "joules": energy.joules(),
        "gross_joules": gross,
        "rest_before_W": rest.map(|(before, _)| before),
        "rest_after_W": rest.map(|(_, after)| after),
        "note": energy.note(),
    })
}
