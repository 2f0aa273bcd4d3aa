//! Services on the page of the metrics.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use csd_kvlog::control::Control;

use super::text::{head, seconds};
use crate::dedup::Dedup;
use crate::drive::Shared;
use crate::services::rows;

/// Returns a value of a service.
type ValueOf = fn(&Control) -> String;

/// Values of each service: name, kind, help, value.
const VALUES: [(&str, &str, &str, ValueOf); 8] = [
    (
        "csd_service_steps_total",
        "counter",
        "Steps that a service of the drive has done.",
        |control| control.steps.load(Relaxed).to_string(),
    ),
    (
        "csd_service_bytes_total",
        "counter",
        "Bytes that a service has read and compared, moved or written.",
        |control| control.bytes.load(Relaxed).to_string(),
    ),
    (
        "csd_service_seconds_total",
        "counter",
        "Time from the beginning of each step to its end.",
        |control| seconds(control.busy_ns.load(Relaxed)),
    ),
    (
        "csd_service_failures_total",
        "counter",
        "Steps that failed; each paused its service.",
        |control| control.failures.load(Relaxed).to_string(),
    ),
    ("csd_service_paused", "gauge", "1 while a service is paused.", |control| {
        u8::from(control.is_paused()).to_string()
    }),
    ("csd_service_failed", "gauge", "1 while a service is paused because it failed.", |control| {
        u8::from(control.failure().is_some()).to_string()
    }),
    (
        "csd_service_rate_max_bytes_per_second",
        "gauge",
        "Limit of a service's bytes per second, 0 for none.",
        |control| control.rate().unwrap_or(0).to_string(),
    ),
    (
        "csd_service_share_max_percent",
        "gauge",
        "Limit of a service's part of the time of all cores.",
        |control| control.share().to_string(),
    ),
];

/// Writes what the counting of chunks has found.
fn write_dedup(page: &mut String, dedup: &Dedup) {
    let counted = dedup.counted();
    for (name, kind, help, value) in [
        (
            "csd_dedup_chunk_bytes",
            "gauge",
            "Length of the chunks that --dedup counts.",
            dedup.options().chunk_bytes.into(),
        ),
        ("csd_dedup_chunks_total", "counter", "Chunks of values that were stored.", counted.chunks),
        ("csd_dedup_bytes_total", "counter", "Their bytes.", counted.bytes),
        (
            "csd_dedup_unique_bytes",
            "gauge",
            "Bytes of different chunks; estimated from a sample if that is not of every chunk.",
            counted.unique_bytes,
        ),
        (
            "csd_dedup_sampling",
            "gauge",
            "One chunk of so many is looked at; 1 while the table has room.",
            counted.sampling,
        ),
        ("csd_dedup_table_chunks", "gauge", "Chunks in the table.", counted.table_chunks),
    ] {
        head(page, name, kind, help);
        let _ = writeln!(page, "{name} {value}");
    }
}

/// Writes the services, and what scrubs have met.
pub(super) fn write(page: &mut String, shared: &Shared) {
    // Writing to a string cannot fail, here and below.
    for (name, kind, help, value_of) in VALUES {
        head(page, name, kind, help);
        for row in rows(shared) {
            let value = value_of((row.control)(shared));
            let _ = writeln!(page, "{name}{{service=\"{}\"}} {value}", row.name);
        }
    }
    if let Some(dedup) = &shared.dedup {
        write_dedup(page, dedup);
    }
    for (name, help, count) in [
        (
            "csd_kv_scrubbed_bytes_total",
            "Bytes of records, and of blocks with page lists, that the drive's scrub has read.",
            &shared.services.scrub.bytes,
        ),
        (
            "csd_kv_scrub_damage_total",
            "Damaged places that the drive's scrub has met, in every pass again.",
            &shared.segments.scrub_damage,
        ),
    ] {
        head(page, name, "counter", help);
        let _ = writeln!(page, "{name} {}", count.load(Relaxed));
    }
}
