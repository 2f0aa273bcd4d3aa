//! `csd bench kv`: values of a key-value namespace compared with bare TCP and a plain file.

use std::fmt::Write;
use std::path::Path;

use csd_bench::kv::{self, KvRow, Outcome, Plan, Subject};
use csd_bench::record::{self, Record};
use csd_bench::serve::Options;
use csd_client::{Address, Settings};
use serde_json::{Value, json};

use super::{LAUNCH, failure, inconclusive, measured, unpinned};
use crate::cli::bench::{KvBench, Started};
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::units::size;

/// Bytes of all values without `--keys`.
const BYTES: u32 = 128 << 20;
/// Fewest and most keys without `--keys`.
const KEYS: (u32, u32) = (32, 50_000);

/// Measures, records and reports.
pub(super) fn kv(options: &KvBench, context: &Context) -> Result<Report, Failure> {
    // Opened first, so that a wrong path does not cost a whole measurement.
    let mut record = options.record.as_deref().map(Record::open).transpose().map_err(failure)?;
    let plan = plan(options, context)?;
    let machine = record::machine();
    let asked = plan.clone();
    let outcome = measured(context, move |stop, progress| kv::measure(&asked, stop, progress))?;
    if let Some(record) = &mut record {
        for row in &outcome.rows {
            let mut line = row.describe();
            line["validity"] = outcome.validity.as_str().into();
            if let Some(url) = &options.url {
                line["url"] = url.as_str().into();
            }
            record.append(line).map_err(failure)?;
        }
    }
    let result = result(options, &plan, &machine, &outcome);
    let mut report = Report::new(text(options, &plan, &machine, &outcome), result);
    if !outcome.valid {
        report.warn(format!("the result is {}", outcome.validity));
    }
    for row in outcome.rows.iter().filter(|row| row.row.rates.is_inconclusive()) {
        report.warn(inconclusive(&format!("{}, {}", row.row.name, row.floor.name())));
    }
    report.warnings.extend(unpinned());
    Ok(report)
}

fn plan(options: &KvBench, context: &Context) -> Result<Plan, Failure> {
    let subject = match &options.url {
        None => Subject::Started,
        Some(url) => Subject::Existing {
            address: url.parse::<Address>().map_err(Failure::usage)?,
            // A lost connection is an error of a measurement, not a pause in it.
            settings: Box::new(Settings {
                options: context.options()?,
                tries: 0,
                ..Settings::default()
            }),
            may_write: options.write,
        },
    };
    let by_size = (BYTES / options.value_bytes).clamp(KEYS.0, KEYS.1);
    Ok(Plan {
        pairs: usize::try_from(options.pairs).map_err(Failure::usage)?,
        keys: options.keys.unwrap_or(by_size),
        value_bytes: options.value_bytes,
        threads: options.threads.into(),
        depth: options.depth,
        size_bytes: options.size.unwrap_or(0),
        options: Options {
            backend: options.started.backend.to_string(),
            spin_us: options.started.spin_us,
            media: (options.media != Path::new("memory")).then(|| options.media.clone()),
            ..Options::default()
        },
        launch: LAUNCH,
        subject,
    })
}

fn text(options: &KvBench, plan: &Plan, machine: &str, outcome: &Outcome) -> String {
    let KvBench { pairs, media, threads, depth, started: Started { backend, spin_us }, .. } =
        options;
    let drive = match &options.url {
        Some(url) => format!("drive {url}"),
        None => format!("{}, {backend}, spin {spin_us} us", media.display()),
    };
    let values = match (&options.url, options.write) {
        (Some(_), false) => format!("{} operations", plan.keys),
        _ => format!("{} values of {}", plan.keys, size(plan.value_bytes.into())),
    };
    let mut text = format!(
        "{machine}, {pairs} pairs of {values}, {threads} threads, depth {depth}, {drive}\n{}\n",
        KvRow::head()
    );
    for row in &outcome.rows {
        let _fits = writeln!(text, "{row}");
    }
    for left_out in &outcome.left_out {
        text += &format!("{left_out}\n");
    }
    text + &outcome.validity + "\n"
}

fn result(options: &KvBench, plan: &Plan, machine: &str, outcome: &Outcome) -> Value {
    let rows: Vec<Value> = outcome.rows.iter().map(KvRow::describe).collect();
    let mut result = json!({
        "machine": machine,
        "pinned": csd_bench::cpus::can_pin(),
        "pairs": options.pairs,
        "keys": plan.keys,
        "threads": options.threads,
        "depth": options.depth,
        "url": options.url,
        "valid": outcome.valid,
        "validity": outcome.validity,
        "workloads": rows,
        "left_out": outcome.left_out,
    });
    if options.url.is_none() {
        result["media"] = options.media.to_string_lossy().into();
        result["size_bytes"] = plan.drive_bytes().into();
        result["backend"] = options.started.backend.to_string().into();
        result["spin_us"] = options.started.spin_us.into();
    }
    result
}
