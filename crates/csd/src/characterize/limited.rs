//! Measures Host(1) with limited memory, in a separate process in a memory control group.
//!
//! The process loads the whole working set, then computes on it, as in
//! <https://doi.org/10.1145/3623677>, section 4.4. Memory above the limit is paged to a scratch
//! file, because a machine may have no swap. The drive is another process without this limit.
//! Invariant: the limit holds before the first byte is loaded.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use csd_kernels::registry;
use csd_measure::cgroup::MemoryGroup;
use csd_measure::characterize::host::{self, HostJob, Timed};
use csd_measure::characterize::region::Region;
use csd_measure::characterize::{Contention, Error, Limited, Overlap, StorageKind};
use serde_json::{Value, json};

use crate::report::{Failure, Report};
use crate::runtime::runtime;

/// Memory of the process in addition to the working set: code, connections, and I/O in flight.
const OWN_BYTES: u64 = 24 << 20;

/// Returns the function that measures Host(1) with limited memory. The process uses the same host
/// NQN and secrets file.
pub(super) fn measure(folder: &Path, secrets: Option<&Path>) -> Result<Limited, Failure> {
    let name = format!("csd-characterize-{}", std::process::id());
    let group = MemoryGroup::new(&name).map_err(|why| {
        Failure::usage(format!("--overload memory: {why}; run as root, or leave it out"))
    })?;
    let (group, folder) = (Arc::new(group), folder.to_owned());
    let secrets = secrets.map(Path::to_owned);
    Ok(Arc::new(move |job: &HostJob, memory_bytes: u64, times: usize| {
        if memory_bytes >= job.bytes {
            let (memory, set) = (memory_bytes >> 10, job.bytes >> 10);
            let why = format!("--overload memory:{memory}K is no burden: the set has {set} KiB");
            return Err(Error::Unable(why));
        }
        let failed = |why: String| Error::Unable(format!("with limited memory: {why}"));
        group.limit(memory_bytes + OWN_BYTES).map_err(failed)?;
        let request = json!({
            "parent": std::process::id(),
            "procs_file": group.procs_file(),
            "folder": folder,
            "url": job.address.to_string(),
            "nsid": job.region.nsid,
            "ranges": job.region.cut(0..job.region.bytes()),
            "kernel": job.kernel.name(),
            "bytes": job.bytes,
            "memory_bytes": memory_bytes,
            "times": times,
        });
        ask(&request, &job.connection.host_nqn, secrets.as_deref()).map_err(failed)
    }))
}

/// Returns the command line of the measuring process.
fn limited(program: &Path, host_nqn: &str, secrets: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.args(["characterize", "--limited", "--json", "--host-nqn", host_nqn]);
    if let Some(secrets) = secrets {
        command.arg("--secrets").arg(secrets);
    }
    command
}

/// Runs the measuring process with `request` and returns its measurements.
fn ask(request: &Value, host_nqn: &str, secrets: Option<&Path>) -> Result<Vec<Timed>, String> {
    let words = |error: std::io::Error| error.to_string();
    let mut command = limited(&std::env::current_exe().map_err(words)?, host_nqn, secrets);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().map_err(words)?;
    let mut stdin = child.stdin.take().expect("it was piped");
    // If the process has ended, its output has the reason.
    let _gone = stdin.write_all(request.to_string().as_bytes());
    drop(stdin);
    let output = child.wait_with_output().map_err(words)?;
    let answer: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("the process ended without an answer ({})", output.status))?;
    if let Some(why) = answer["error"]["message"].as_str() {
        return Err(why.to_owned());
    }
    let times = answer["result"]["times"].as_array().ok_or("no times in the answer")?;
    let number = |value: &Value, key: &str| value[key].as_f64().ok_or("a time is missing");
    let timed = times.iter().map(|time| {
        Ok(Timed {
            load_s: number(time, "load_s")?,
            comp_s: number(time, "comp_s")?,
            cpu_s: number(time, "cpu_s")?,
            work: time["work"].as_u64().ok_or("the work is missing")?,
            ..Timed::default()
        })
    });
    timed.collect::<Result<_, &str>>().map_err(str::to_owned)
}

/// Runs as the measuring process: enters the group, then measures as the request on standard input
/// says.
pub(super) fn work(connection: &csd_initiator::Options) -> Result<Report, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::run)?;
    let request: Value = serde_json::from_str(&text).map_err(Failure::usage)?;
    let (job, procs_file, times) = parse(&request, connection)
        .ok_or_else(|| Failure::usage("--limited: a malformed request"))?;
    let parent = request["parent"].as_u64().and_then(|parent| u32::try_from(parent).ok());
    csd_reactor::end_with_parent(parent.unwrap_or(0)).map_err(Failure::run)?;
    // 0 means the writing process.
    std::fs::write(&procs_file, "0")
        .map_err(|error| Failure::run(format!("{}: {error}", procs_file.display())))?;
    let mut rows = Vec::new();
    for _ in 0..times {
        let Timed { load_s, comp_s, cpu_s, work, .. } = host::measure(&runtime(), &job)?;
        rows.push(json!({ "load_s": load_s, "comp_s": comp_s, "cpu_s": cpu_s, "work": work }));
    }
    Ok(Report::new("", json!({ "times": rows })))
}

fn parse(request: &Value, connection: &csd_initiator::Options) -> Option<(HostJob, PathBuf, u64)> {
    let ranges = request["ranges"].as_array()?.iter();
    let ranges = ranges.map(|range| Some((range[0].as_u64()?, range[1].as_u64()?)));
    let nsid = u32::try_from(request["nsid"].as_u64()?).ok()?;
    let job = HostJob {
        address: request["url"].as_str()?.parse().ok()?,
        connection: connection.clone(),
        kernel: registry::by_name(request["kernel"].as_str()?)?,
        region: Region::new(nsid, ranges.collect::<Option<_>>()?),
        bytes: request["bytes"].as_u64()?,
        units: 1,
        overlap: Overlap::Serial,
        output: None,
        contention: Contention::None,
        storage: StorageKind::Paged {
            folder: request["folder"].as_str()?.into(),
            memory_bytes: request["memory_bytes"].as_u64()?,
        },
        meter: None,
    };
    Some((job, request["procs_file"].as_str()?.into(), request["times"].as_u64()?))
}

#[test]
fn the_process_knows_who_it_is_and_the_secrets() {
    let words = |secrets: Option<&Path>| {
        let command = limited(Path::new("csd"), "nqn.a:h", secrets);
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let plain = ["characterize", "--limited", "--json", "--host-nqn", "nqn.a:h"];
    assert_eq!(words(None), plain);
    assert_eq!(words(Some(Path::new("s"))), [&plain[..], &["--secrets", "s"]].concat());
}
