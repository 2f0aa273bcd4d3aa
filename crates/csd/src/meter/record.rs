//! The record of a job, for people and for programs.

use csd_measure::job_energy::JobEnergy;
use serde_json::{Value, json};

use super::counted::{Counted, CpuSeconds, OfDrive};
use super::job::{Ended, HostUsage};
use crate::report::Report;
use crate::table::pairs;
use crate::units::size;

/// Describes a job.
pub(super) fn describe(
    words: &[String],
    ended: Ended,
    seconds: f64,
    host: &HostUsage,
    counted: &Counted<'_>,
    energy: &JobEnergy,
) -> Report {
    let cpu = counted.cpu_s(host.cpu_s);
    let failed = ended != Ended::With(0);
    let mut warnings = counted.gaps();
    warnings.extend(host.without_group.as_ref().map(|why| {
        format!(
            "the command has no control groups ({why}): processes that it did not wait for are \
             missing"
        )
    }));
    warnings.extend(energy.note());
    let (code, signal) = match ended {
        Ended::With(code) => (Some(code), None),
        Ended::By(signal) => (None, Some(signal)),
    };
    let result = json!({
        "command": words,
        "failed": failed,
        "exit_code": code,
        "signal": signal,
        "wall_s": seconds,
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
    });
    let mut report = Report::new(text(seconds, ended, &cpu, host, energy), result);
    report.warnings = warnings;
    report
}

fn text(
    seconds: f64,
    ended: Ended,
    cpu: &CpuSeconds,
    host: &HostUsage,
    energy: &JobEnergy,
) -> String {
    let tunnels = cpu.tunnels_inside + cpu.tunnels_outside;
    let end = match ended {
        Ended::With(0) => "done".to_owned(),
        Ended::With(code) => format!("failed with exit code {code}"),
        Ended::By(signal) => format!("ended by signal {signal}"),
    };
    let memory = host.memory_peak_bytes.map_or_else(|| "unknown".to_owned(), size);
    let joules =
        energy.joules().map_or_else(|| "none".to_owned(), |joules| format!("{joules:.1} J"));
    pairs(&[
        ("command", end),
        ("wall time", format!("{seconds:.2} s")),
        (
            "CPU time",
            format!(
                "{:.2} s host, {:.2} s operating systems, {:.2} s drives, {tunnels:.2} s tunnels",
                cpu.host, cpu.os, cpu.drives
            ),
        ),
        ("peak memory", format!("{memory} of the command")),
        ("energy", joules),
    ])
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
