//! `csd bench kv`: values of a key-value namespace compared with bare TCP and a plain file.

use std::path::Path;

use csd_bench::kv::{self, Plan, Subject};
use csd_bench::record;
use csd_bench::serve::Options;
use csd_client::{Address, Settings};
use serde_json::json;

use super::{LAUNCH, failure, report, watched};
use crate::cli::bench::KvBench;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::units::size;

/// Bytes of all values without `--keys`.
const BYTES: u32 = 128 << 20;
/// Fewest and most keys without `--keys`.
const KEYS: (u32, u32) = (32, 50_000);

/// Measures, records and reports.
pub(super) fn kv(options: &KvBench, context: &Context) -> Result<Report, Failure> {
    let record = options.record.open().map_err(failure)?;
    let plan = plan(options, context)?;
    let asked = plan.clone();
    let machine = record::machine();
    let outcome = watched(context, options.url.as_deref(), move |stop, progress| {
        kv::measure(&asked, stop, progress)
    })?;
    let KvBench { pairs, media, threads, depth, started, url, write, .. } = options;
    let keys = plan.keys;
    let mut settings = json!({
        "machine": machine,
        "pairs": pairs,
        "keys": keys,
        "threads": threads,
        "depth": depth,
    });
    let drive = match url {
        Some(url) => format!("drive {url}"),
        None => {
            settings["media"] = media.to_string_lossy().into();
            settings["size_bytes"] = plan.drive_bytes().into();
            format!("{}, {}", media.display(), started.describe(&mut settings))
        }
    };
    let values = match (url, write) {
        (Some(_), false) => format!("{keys} operations"),
        _ => format!("{keys} values of {}", size(plan.value_bytes.into())),
    };
    let conditions =
        format!("{machine}, {pairs} pairs of {values}, {threads} threads, depth {depth}, {drive}");
    Ok(report(&conditions, url.as_deref(), settings, &outcome, record))
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
            media: (options.media != Path::new("memory")).then(|| options.media.clone()),
            ..options.started.options()
        },
        launch: LAUNCH,
        subject,
    })
}
