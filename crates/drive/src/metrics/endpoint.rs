//! The Prometheus endpoint: one page of text over HTTP.
//!
//! A scrape costs a walk over the counters and a message to every core. It does not change the
//! drive. Invariants: a scraper that sends nothing, or too much, is disconnected; slow scrapers do
//! not block others.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_kvlog::parts::POOL;
use csd_kvlog::segments::KvNamespace;
use csd_nvme::status::Status;
use csd_nvme::vendor::services::CLASSES;
use csd_reactor::{
    BusyTimes, Class, CoreId, JoinHandle, Listener, Stream, busy, call, core_count, core_local,
    sleep, spawn, timeout,
};

use super::counts::{BUCKETS_US, Bytes, OPS, STATUSES};
use super::services;
use super::text::{head, seconds};
use crate::drive::{Core, Shared};
use crate::transport::budget::Use;

/// Longest request that is read, bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Time within which a scraper must send its request and receive the page.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most scrapers at a time. When another connects, the oldest is disconnected.
const SCRAPERS_MAX: usize = 16;

/// Answers scrapes until the listener is dropped.
pub async fn serve(listener: Listener, shared: Arc<Shared>) {
    let mut scrapers = VecDeque::<JoinHandle<()>>::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        scrapers.retain(|scraper| !scraper.is_finished());
        if scrapers.len() >= SCRAPERS_MAX
            && let Some(oldest) = scrapers.pop_front()
        {
            oldest.abort();
        }
        let shared = Arc::clone(&shared);
        scrapers.push_back(spawn(Class::System, async move {
            // An error ends the connection, which the scraper sees.
            let _ = timeout(PATIENCE, answer(&stream, &shared)).await;
        }));
    }
}

async fn answer(stream: &Stream, shared: &Shared) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut part = [0; 1024];
        match stream.try_recv(&mut part)? {
            Some(0) => return Ok(()),
            Some(count) => request.extend_from_slice(&part[..count]),
            None => stream.readable().await?,
        }
        if request.len() > REQUEST_BYTES_MAX {
            return Ok(());
        }
    }
    let asked = asked(&request);
    let (status, page) = match asked {
        Asked::Page | Asked::Head => ("200 OK", render(shared).await),
        Asked::Other => ("404 Not Found", "only GET and HEAD of /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        page.len()
    );
    let body = if asked == Asked::Head { "" } else { &page };
    stream.send_all((head + body).as_bytes()).await
}

/// The part of the page that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Page,
    /// The page's header fields alone.
    Head,
    Other,
}

/// Returns the part that the request line asks for. Parameters after `?` make no difference.
fn asked(request: &[u8]) -> Asked {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let path = target.and_then(|target| target.split(|byte| *byte == b'?').next());
    match (method, path, version) {
        (Some(b"GET"), Some(b"/metrics" | b"/"), Some(_)) => Asked::Page,
        (Some(b"HEAD"), Some(b"/metrics" | b"/"), Some(_)) => Asked::Head,
        _ => Asked::Other,
    }
}

/// Renders the page in the text format of Prometheus.
pub async fn render(shared: &Shared) -> String {
    let mut page = String::new();
    operations(&mut page, shared);
    errors(&mut page, shared);
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    for core in 0..core_count() {
        let look = || async { (busy(), core_local::<Core>().map(|core| core.budget.used())) };
        let (busy, used) = call(CoreId(core), Class::System, look).await.unwrap_or_default();
        times.push(busy);
        memory.push(used.unwrap_or_default());
    }
    cores(&mut page, &times);
    hosts(&mut page, shared, &memory);
    log(&mut page, shared);
    services::write(&mut page, shared);
    page
}

fn operations(page: &mut String, shared: &Shared) {
    let metrics = &shared.metrics;
    let lines = || {
        metrics.sides().iter().flat_map(|side| {
            OPS.iter().enumerate().map(move |(index, op)| {
                let (namespace, name, side_name) = (op.namespace, op.name, side.name());
                let labels =
                    format!("namespace=\"{namespace}\",op=\"{name}\",side=\"{side_name}\"");
                (*side as usize, index, op, labels)
            })
        })
    };
    head(page, "csd_commands_total", "counter", "I/O commands answered.");
    for (side, index, _, labels) in lines() {
        let done = metrics.sum(|core| &core.ops[side][index].done);
        let _ = writeln!(page, "csd_commands_total{{{labels}}} {done}");
    }
    head(page, "csd_bytes_total", "counter", "Bytes of their data that were moved.");
    for (side, index, _, labels) in lines().filter(|(_, _, op, _)| op.bytes != Bytes::None) {
        let bytes = metrics.sum(|core| &core.ops[side][index].bytes);
        let _ = writeln!(page, "csd_bytes_total{{{labels}}} {bytes}");
    }
    let name = "csd_command_seconds";
    head(page, name, "histogram", "Time from a command's capsule to its answer.");
    for (side, index, _, labels) in lines() {
        let mut total = 0;
        for bucket in 0..=BUCKETS_US.len() {
            total += metrics.sum(|core| &core.ops[side][index].buckets[bucket]);
            let most = BUCKETS_US.get(bucket).map_or("+Inf".to_owned(), |us| seconds(us * 1000));
            let _ = writeln!(page, "{name}_bucket{{{labels},le=\"{most}\"}} {total}");
        }
        let sum = seconds(metrics.sum(|core| &core.ops[side][index].latency_ns));
        let _ = writeln!(page, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {total}");
    }
}

fn errors(page: &mut String, shared: &Shared) {
    head(page, "csd_command_errors_total", "counter", "Commands that failed, by their status.");
    for side in shared.metrics.sides() {
        for code in 0..STATUSES {
            let count = shared.metrics.sum(|core| &core.errors[*side as usize][code]);
            if count > 0 {
                let status = Status(u16::try_from(code).expect("eleven bits"));
                let (status, side) = (status.text().unwrap_or("unknown"), side.name());
                let _ = writeln!(
                    page,
                    "csd_command_errors_total{{code=\"{code:03x}h\",status=\"{status}\",\
                     side=\"{side}\"}} {count}"
                );
            }
        }
    }
}

fn cores(page: &mut String, times: &[BusyTimes]) {
    let name = "csd_core_seconds_total";
    head(
        page,
        name,
        "counter",
        "Time of a core by class; spin is not busy, lane is the old name of its compute threads.",
    );
    for (core, times) in times.iter().enumerate() {
        for (class, ns) in [
            ("foreground", times.foreground_ns),
            ("tunnel", times.tunnel_ns),
            ("execution", times.execution_ns),
            ("service", times.service_ns),
            ("system", times.system_ns),
            ("spin", times.spin_ns),
            ("lane", times.all_compute_ns()),
        ] {
            let seconds = seconds(ns);
            let _ = writeln!(page, "{name}{{core=\"{core}\",class=\"{class}\"}} {seconds}");
        }
    }
    let name = "csd_core_compute_seconds_total";
    head(page, name, "counter", "CPU time of a core's compute threads by the class of the job.");
    for (core, times) in times.iter().enumerate() {
        for (class, ns) in CLASSES.iter().zip(times.compute_ns) {
            let seconds = seconds(ns);
            let _ = writeln!(page, "{name}{{core=\"{core}\",class=\"{class}\"}} {seconds}");
        }
    }
    // The second name is the old one of the same counter, and goes with version 0.2.
    for (name, help) in [
        ("csd_core_compute_boosts_total", "Times a starved compute thread got normal priority."),
        ("csd_core_lane_lifts_total", "Deprecated name of csd_core_compute_boosts_total."),
    ] {
        head(page, name, "counter", help);
        for (core, times) in times.iter().enumerate() {
            let _ = writeln!(page, "{name}{{core=\"{core}\"}} {}", times.compute_boosts);
        }
    }
}

/// Writes the number of connections, and the memory that hosts occupy.
fn hosts(page: &mut String, shared: &Shared, memory: &[Use]) {
    head(page, "csd_connections", "gauge", "Open connections, admin queues included.");
    for (core, count) in shared.connections.iter().enumerate() {
        let count = count.load(Relaxed);
        let _ = writeln!(page, "csd_connections{{core=\"{core}\"}} {count}");
    }
    for (name, kind, help, value) in [
        (
            "csd_connections_max",
            "gauge",
            "Most connections.",
            shared.host_limits.connections as u64,
        ),
        (
            "csd_connections_refused_total",
            "counter",
            "Refused because there were too many.",
            shared.surplus.load(Relaxed),
        ),
        (
            "csd_authentication_powers_total",
            "counter",
            "Powers computed for hosts that authenticate themselves.",
            shared.counters.iter().map(|core| core.powers.load(Relaxed)).sum(),
        ),
        (
            "csd_transfer_memory_max_bytes",
            "gauge",
            "Most memory for data on its way, of a core.",
            shared.host_limits.core_transfer_memory_bytes(),
        ),
    ] {
        head(page, name, kind, help);
        let _ = writeln!(page, "{name} {value}");
    }
    let name = "csd_connections_closed_total";
    head(page, name, "counter", "Connections that ended, by cause.");
    for (cause, count) in shared.causes.counts() {
        let _ = writeln!(page, "{name}{{cause=\"{cause}\"}} {count}");
    }
    head(page, "csd_transfer_memory_bytes", "gauge", "Memory in use for data on its way.");
    for (core, used) in memory.iter().enumerate() {
        for (what, bytes) in [
            ("granted", used.granted),
            ("executions", used.executions),
            ("answers", used.answers),
            ("capsules", used.capsules),
        ] {
            let _ = writeln!(
                page,
                "csd_transfer_memory_bytes{{core=\"{core}\",for=\"{what}\"}} {bytes}"
            );
        }
    }
}

fn log(page: &mut String, shared: &Shared) {
    let segments = &shared.segments;
    for (name, kind, help, value) in [
        ("csd_kv_segments", "gauge", "Segments of the log.", u64::from(segments.count)),
        ("csd_kv_segments_free", "gauge", "Free segments.", segments.free_count() as u64),
        (
            "csd_kv_segments_cleaned_total",
            "counter",
            "Freed by cleaning.",
            segments.cleaned_count(),
        ),
        (
            "csd_kv_stored_bytes_total",
            "counter",
            "Bytes of values that hosts stored.",
            segments.stored_bytes(),
        ),
        (
            "csd_kv_written_bytes_total",
            "counter",
            "Bytes written to the log, by hosts' commands and by cleaning.",
            segments.written_bytes(),
        ),
        (
            "csd_media_errors_total",
            "counter",
            "Accesses of the media that failed, and values found damaged.",
            shared.media().failures().count(),
        ),
        (
            "csd_kv_checkpoints_total",
            "counter",
            "Checkpoints written.",
            segments.checkpoint_count(),
        ),
        (
            "csd_kv_shared_groups_total",
            "counter",
            "Group commits of several records.",
            segments.shared_group_count(),
        ),
        (
            "csd_kv_checkpoints_damaged",
            "gauge",
            "Damaged checkpoints that the start met: it read the records in their place.",
            segments.damaged_checkpoints().len() as u64,
        ),
        (
            "csd_kv_damage",
            "gauge",
            "Places of the log that a salvaged drive passed over.",
            segments.damage().len() as u64,
        ),
        (
            "csd_media_read_only",
            "gauge",
            "1 when the media takes no more writes.",
            u64::from(shared.read_only.load(Relaxed)),
        ),
    ] {
        head(page, name, kind, help);
        let _ = writeln!(page, "{name} {value}");
    }
    namespaces(page, shared);
}

fn namespaces(page: &mut String, shared: &Shared) {
    let segments = &shared.segments;
    let used = |it: &KvNamespace| segments.used_bytes(it.nsid);
    let keys = |it: &KvNamespace| it.keys.load(Relaxed);
    let shared_bytes = |it: &KvNamespace| it.used_bytes.load(Relaxed);
    let (all, pools) = (&segments.namespaces, &segments.pools);
    let used_help = "Bytes of records in use, shared chunks included.";
    let mut row = |name: &str, help: &str, of: &[KvNamespace], value: &dyn Fn(&_) -> u64| {
        head(page, name, "gauge", help);
        for namespace in of {
            let (nsid, value) = (namespace.nsid & !POOL, value(namespace));
            let _ = writeln!(page, "{name}{{nsid=\"{nsid}\"}} {value}");
        }
    };
    row("csd_kv_used_bytes", used_help, all, &used);
    row("csd_kv_keys", "Keys.", all, &keys);
    row("csd_kv_shared_chunks", "Chunks that values share.", pools, &keys);
    row("csd_kv_shared_bytes", "Bytes of their records.", pools, &shared_bytes);
}
