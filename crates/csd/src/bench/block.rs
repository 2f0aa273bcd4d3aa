//! `csd bench block`: block I/O compared with bare TCP.

use std::time::Duration;

use csd_bench::block::{self, Plan, Subject};
use csd_bench::record;
use csd_bench::wire::Target;
use csd_initiator::{Address, NamespaceKind};
use serde_json::json;

use super::{LAUNCH, failure, report, watched};
use crate::ask_drives::ask;
use crate::cli::bench::Block;
use crate::context::Context;
use crate::report::{Failure, Report};

/// Measures, records and reports.
pub(super) fn block(options: &Block, context: &Context) -> Result<Report, Failure> {
    let record = options.record.open().map_err(failure)?;
    let subject = match &options.url {
        Some(url) => existing(url, options.write, context)?,
        None => Subject::Started,
    };
    let Block { pairs, run_ms, started, url, .. } = options;
    let plan = Plan {
        pairs: usize::try_from(*pairs).map_err(Failure::usage)?,
        run: Duration::from_millis(*run_ms),
        options: started.options(),
        launch: LAUNCH,
        subject,
    };
    let run_s = plan.run.as_secs_f64();
    let machine = record::machine();
    let outcome = watched(context, url.as_deref(), move |stop, progress| {
        block::measure(&plan, stop, progress)
    })?;
    let mut settings = json!({ "machine": machine, "pairs": pairs, "run_s": run_s });
    let drive = match url {
        Some(url) => format!("drive {url}"),
        None => started.describe(&mut settings),
    };
    let conditions = format!("{machine}, {pairs} pairs of {run_ms} ms, {drive}");
    Ok(report(&conditions, url.as_deref(), settings, &outcome, record))
}

/// Describes the block namespace of a URL, by standard commands that only read.
fn existing(url: &str, write: bool, context: &Context) -> Result<Subject, Failure> {
    let address: Address = url.parse().map_err(Failure::usage)?;
    let described = ask(Some(&address.to_string()), context, async |controller, _| {
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
        answer_within: context.timeout(),
        may_write: write,
    };
    Ok(Subject::Existing { target, bytes, transfer_bytes_max })
}
