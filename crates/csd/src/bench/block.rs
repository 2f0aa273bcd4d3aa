//! `csd bench block`: block I/O compared with bare TCP.

use std::fmt::Write;
use std::time::Duration;

use csd_bench::block::{self, Outcome, Plan, Subject};
use csd_bench::record::{self, Record};
use csd_bench::report::Row;
use csd_bench::serve::Options;
use csd_bench::wire::Target;
use csd_initiator::{Address, NamespaceKind};
use serde_json::{Value, json};

use super::{LAUNCH, failure, inconclusive, measured, unpinned};
use crate::cli::bench::{Block, Started};
use crate::context::Context;
use crate::query::query;
use crate::report::{Failure, Report};

/// Measures, records and reports.
pub(super) fn block(options: &Block, context: &Context) -> Result<Report, Failure> {
    // Opened first, so that a wrong path does not cost a whole measurement.
    let mut record = options.record.as_deref().map(Record::open).transpose().map_err(failure)?;
    let subject = match &options.url {
        Some(url) => existing(url, options.write, context)?,
        None => Subject::Started,
    };
    let plan = Plan {
        pairs: usize::try_from(options.pairs).map_err(Failure::usage)?,
        run: Duration::from_millis(options.run_ms),
        options: Options {
            backend: options.started.backend.to_string(),
            spin_us: options.started.spin_us,
            ..Options::default()
        },
        launch: LAUNCH,
        subject,
    };
    let machine = record::machine();
    let outcome = measured(context, move |stop, progress| block::measure(&plan, stop, progress))?;
    if let Some(record) = &mut record {
        for row in &outcome.rows {
            let mut line = row.recorded(&outcome.validity);
            if let Some(url) = &options.url {
                line["url"] = url.as_str().into();
            }
            record.append(line).map_err(failure)?;
        }
    }
    let mut report =
        Report::new(text(options, &machine, &outcome), result(options, &machine, &outcome));
    if !outcome.valid {
        report.warn(format!("the result is {}", outcome.validity));
    }
    for row in outcome.rows.iter().filter(|row| row.rates.is_inconclusive()) {
        report.warn(inconclusive(row.name));
    }
    report.warnings.extend(unpinned());
    Ok(report)
}

/// Describes the block namespace of a URL, by standard commands that only read.
fn existing(url: &str, write: bool, context: &Context) -> Result<Subject, Failure> {
    let address: Address = url.parse().map_err(Failure::usage)?;
    let described = query(Some(&address.to_string()), context, async |controller, _| {
        let limits = (controller.in_capsule_bytes_max(), controller.transfer_bytes_max());
        Ok((controller.namespaces().to_vec(), limits))
    })?;
    let Some((_, Ok((namespaces, (in_capsule_bytes, transfer_bytes_max))))) =
        described.into_iter().next()
    else {
        return Err(Failure::run(format!("{url} does not answer")));
    };
    let wanted = |nsid: u32| address.nsid.is_none_or(|wanted| wanted == nsid);
    let found = namespaces.iter().find_map(|namespace| match namespace.kind {
        NamespaceKind::Block { blocks, block_bytes } if wanted(namespace.nsid) => {
            Some((namespace.nsid, blocks.saturating_mul(block_bytes.into()), block_bytes))
        }
        _ => None,
    });
    let Some((nsid, bytes, block_bytes)) = found else {
        let which = address
            .nsid
            .map_or("no namespace".to_owned(), |nsid| format!("{nsid}, which is not a namespace"));
        return Err(Failure::usage(format!("{url} has {which} of blocks: name one by ?nsid=N")));
    };
    let Some(socket) = address.socket.ip() else {
        return Err(Failure::usage(format!("{url}: name its address over TCP (nvme+tcp://)")));
    };
    let target = Target {
        address: socket,
        nqn: address.nqn,
        host_nqn: context.options()?.host_nqn,
        nsid,
        block_bytes,
        in_capsule_bytes,
        may_write: write,
    };
    Ok(Subject::Existing { target, bytes, transfer_bytes_max })
}

fn text(options: &Block, machine: &str, outcome: &Outcome) -> String {
    let Block { pairs, run_ms, started: Started { backend, spin_us }, .. } = options;
    let drive = match &options.url {
        Some(url) => format!("drive {url}"),
        None => format!("{backend}, spin {spin_us} us"),
    };
    let mut text = format!("{machine}, {pairs} pairs of {run_ms} ms, {drive}\n");
    text += &format!("{}\n", Row::head("floor"));
    for row in &outcome.rows {
        let _fits = writeln!(text, "{row}");
    }
    for left_out in &outcome.left_out {
        text += &format!("{left_out}\n");
    }
    text + &outcome.validity + "\n"
}

fn result(options: &Block, machine: &str, outcome: &Outcome) -> Value {
    let rows: Vec<Value> = outcome.rows.iter().map(Row::describe).collect();
    let mut result = json!({
        "machine": machine,
        "pinned": csd_bench::cpus::can_pin(),
        "pairs": options.pairs,
        "run_s": Duration::from_millis(options.run_ms).as_secs_f64(),
        "url": options.url,
        "valid": outcome.valid,
        "validity": outcome.validity,
        "workloads": rows,
        "left_out": outcome.left_out,
    });
    if options.url.is_none() {
        result["backend"] = options.started.backend.to_string().into();
        result["spin_us"] = options.started.spin_us.into();
    }
    result
}
