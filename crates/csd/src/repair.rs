//! `csd repair`: rebuilds lost pieces of protected objects, and the catalogues of drives that have
//! forgotten theirs.

use std::rc::Rc;
use std::time::Duration;

use csd_store::array::Array;
use csd_store::repair::{self, Limits, Missing, Repaired};
use csd_store::scrub::{self, Names};
use serde_json::{Value, json};

use crate::array::{advised, votes};
use crate::cli::repair::{On, Repair};
use crate::context::Context;
use crate::progress::Bar;
use crate::protection;
use crate::report::{Failure, Report, lost};
use crate::runtime::stop_flag;
use crate::scrub::{describe, entries, table as names_table};
use crate::table::{Align, Table};
use crate::units::{counted, duration, grouped, size};

/// Repairs the named objects, or all.
pub(crate) fn repair(options: &Repair, context: &Context) -> Result<Report, Failure> {
    let names = options.names.clone();
    let (given, of_names) = context.with_array_to_write(async move |array: &Array| {
        let given = votes(array).await?;
        let of_names = scrub::names(array, &names, true).await;
        Ok((given, of_names.map_err(|error| advised(array, error.into()))?))
    })?;
    let bar = Bar::new(context, "repair", None);
    let (total, progress) = (bar.total(), bar.progress.clone());
    let (names, bytes_per_s) = (options.names.clone(), options.rate);
    let on = match options.on {
        On::Drives => repair::On::Drives,
        On::Host => repair::On::Host,
    };
    // Drives that have just got their votes back take part on a new connection.
    let found = context.with_array_to_write(async move |array: &Array| {
        let entries = entries(array, &names, None).await?;
        let stop = stop_flag();
        let total = Rc::new(move |bytes| total.set(bytes));
        let limits = Limits { on, bytes_per_s, stop, total, progress };
        Ok(repair::repair(array, &entries, &limits).await)
    })?;
    drop(bar);
    let result = result(&found, &of_names, &given.rebuilt);
    if found.is_interrupted {
        let message = "interrupted: run it again to go on";
        return Err(Failure { detail: result, ..Failure::run(message) });
    }
    let mut report = Report::new(text(&found, &of_names, &given.rebuilt), result);
    let left = of_names.bad.iter().filter(|bad| !bad.repaired).count();
    if left > 0 {
        report.warn(format!("{left} damaged copies of names or records could not be mended"));
    }
    let warnings = warnings(&found).into_iter().chain(given.warnings);
    warnings.chain(of_names.trouble).for_each(|warning| report.warn(warning));
    Ok(report)
}

fn text(found: &Repaired, of_names: &Names, rebuilt: &[Value]) -> String {
    let mut text = String::new();
    for drive in rebuilt {
        let name = drive["name"].as_str().unwrap_or_default();
        text +=
            &format!("{name}: {} of {} names stored; it votes\n", drive["stored"], drive["names"]);
    }
    let mended = of_names.bad.iter().filter(|bad| bad.repaired).count();
    if !of_names.bad.is_empty() {
        text += &names_table(&of_names.bad);
        text += &format!(
            "{} of {} of names and records mended\n",
            grouped(mended as u64),
            counted(of_names.bad.len() as u64, "damaged copy")
        );
    }
    let missing: u64 = found.missing.iter().map(|missing| missing.pieces).sum();
    text += &format!(
        "{}, {}, {}: {} rebuilt ({}{}{}), {}\n",
        counted(found.objects, "protected object"),
        counted(found.pieces, "piece"),
        size(found.bytes),
        grouped(found.rebuilt),
        size(found.rebuilt_bytes),
        match found.rebuilt_after {
            Duration::ZERO => String::new(),
            after => format!(" in {}", duration(after.as_secs_f64())),
        },
        match found.by_drives {
            0 => String::new(),
            by_drives => format!(", {} by drives", grouped(by_drives)),
        },
        protection::missing(missing)
    );
    if !found.missing.is_empty() {
        let columns = [("object", Align::Left), ("drive", Align::Left), ("pieces", Align::Right)];
        let mut table = Table::new(&[&columns[..], &[("why", Align::Left)]].concat());
        for Missing { object, drive, pieces, why } in &found.missing {
            table.row(vec![object.clone(), drive.clone(), grouped(*pieces), why.clone()]);
        }
        text += &table.render();
    }
    text
}

fn warnings(found: &Repaired) -> Vec<String> {
    let mut warnings = Vec::new();
    if !found.missing.is_empty() {
        warnings.push(
            "pieces are missing: bring drives back or replace them, and run `csd repair` again"
                .to_owned(),
        );
    }
    for lost in &found.lost {
        let (name, bytes) = (&lost.object, csd_store::error::in_words(&lost.ranges));
        warnings.push(format!("object {name:?}: bytes {bytes} can be neither read nor computed"));
    }
    for (name, why) in &found.failed {
        warnings.push(format!("object {name:?} was not repaired: {why}"));
    }
    warnings.extend(found.away.iter().cloned());
    warnings
}

fn result(found: &Repaired, of_names: &Names, rebuilt: &[Value]) -> Value {
    let missing = found.missing.iter().map(|missing| {
        let Missing { object, drive, pieces, why } = missing;
        json!({ "object": object, "drive": drive, "pieces": pieces, "why": why })
    });
    let of_object = found
        .lost
        .iter()
        .map(|of_object| json!({ "object": of_object.object, "ranges": lost(&of_object.ranges) }));
    let failed = found.failed.iter().map(|(name, why)| json!({ "object": name, "why": why }));
    json!({
        "objects": found.objects,
        "names": of_names.names,
        "copies": of_names.copies,
        "records": of_names.records,
        "bad": of_names.bad.iter().map(describe).collect::<Vec<Value>>(),
        "failed": failed.collect::<Vec<Value>>(),
        "unprotected": found.unprotected,
        "pieces": found.pieces,
        "bytes": found.bytes,
        "rebuilt": found.rebuilt,
        "rebuilt_bytes": found.rebuilt_bytes,
        "rebuilt_after_s": found.rebuilt_after.as_secs_f64(),
        "by_drives": found.by_drives,
        "host_crossed_bytes": found.crossed_bytes,
        "missing": missing.collect::<Vec<Value>>(),
        "lost": of_object.collect::<Vec<Value>>(),
        "catalogues": rebuilt,
    })
}
