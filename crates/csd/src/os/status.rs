//! `csd os status`.

use csd_os::process::Process;
use csd_os::status::{Container, Status};
use serde_json::{Value, json};

use super::network::Ends;
use super::target::{self, OsTarget};
use crate::cli::os::Which;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::size;

/// Reports the state of operating systems.
pub(super) fn status(which: &Which, context: &Context) -> Result<Report, Failure> {
    let mut table = Table::new(&[
        ("drive", Align::Left),
        ("state", Align::Left),
        ("CPU", Align::Right),
        ("of", Align::Right),
        ("memory", Align::Right),
        ("of", Align::Right),
        ("OOM kills", Align::Right),
        ("processes", Align::Right),
        ("/data free", Align::Right),
        ("tunnel", Align::Left),
        ("services", Align::Left),
    ]);
    let (mut drives, mut warnings) = (Vec::new(), Vec::new());
    for target in target::all(which.drive.as_ref(), context)? {
        let (cells, object, faults) = describe(&target)?;
        table.row([vec![target.name.clone()], cells].concat());
        warnings.extend(faults.iter().map(|why| format!("drive {}: {why}", target.name)));
        drives.push(object);
    }
    Ok(Report::new(table.render(), json!({ "drives": drives })).with_warnings(warnings))
}

fn describe_service(service: &Process) -> Value {
    json!({ "name": service.program, "pid": service.pid, "running": service.is_running() })
}

/// Returns the cells of an operating system, its JSON, and its faults.
fn describe(target: &OsTarget<'_>) -> Result<(Vec<String>, Value, Vec<String>), Failure> {
    let url = target.inside.to_string();
    let Some(status) = csd_os::status::status(&target.os_folder)? else {
        let cells = [vec!["down".to_owned()], vec!["-".to_owned(); 9]].concat();
        return Ok((
            cells,
            json!({ "name": target.name, "url": url, "state": "down" }),
            Vec::new(),
        ));
    };
    let Status { record, container, usage, data, mut faults } = status;
    // /data waits for the drive without a word to its programs.
    let ends = Ends::of(target).unwrap_or_else(|failure| {
        faults.push(format!("the drive does not answer: {}", failure.message));
        None
    });
    let state = match container {
        Container::Running(_) if faults.is_empty() => "up",
        Container::Running(_) => "faulty",
        _ => "ended",
    };
    let limits = record.limits;
    let services = &record.services;
    let running = services.iter().filter(|service| service.is_running());
    let running: Vec<_> = running.map(|service| service.program.as_str()).collect();
    let cells = vec![
        state.to_owned(),
        format!("{:.1} s", usage.cpu_s),
        limits.cpus.to_string(),
        size(usage.memory_bytes),
        size(limits.memory_bytes),
        usage.oom_kills.to_string(),
        format!("{} of {}", usage.pids, limits.pids),
        data.map_or_else(|| "-".to_owned(), |data| size(data.free_bytes)),
        ends.as_ref().map_or_else(|| "none".to_owned(), Ends::shown),
        if running.is_empty() { "none".to_owned() } else { running.join(" ") },
    ];
    let object = json!({
        "name": target.name,
        "url": url,
        "state": state,
        "root": record.image,
        "fs": record.fs.to_string(),
        "cpu_s": usage.cpu_s,
        "cpus": limits.cpus,
        "processors": record.processors,
        "services": services.iter().map(describe_service).collect::<Vec<_>>(),
        "memory_bytes": usage.memory_bytes,
        "memory_peak_bytes": usage.memory_peak_bytes,
        "memory_limit_bytes": limits.memory_bytes,
        "oom_kills": usage.oom_kills,
        "pids": usage.pids,
        "pids_limit": limits.pids,
        "data_bytes": data.map(|data| data.bytes),
        "data_free_bytes": data.map(|data| data.free_bytes),
        "data_read_only": data.map(|data| data.is_read_only),
        "tunnel": ends.as_ref().map(Ends::describe),
        "faults": faults,
    });
    Ok((cells, object, faults))
}
