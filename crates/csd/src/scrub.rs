//! `csd scrub`: the drives check the chunks of objects.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use csd_reactor::{Class, spawn, stop_requested};
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object;
use csd_store::scrub::{self, Bad, Limits, Scrubbed, Unread};
use serde_json::{Value, json};

use crate::cli::scrub::Scrub;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::{grouped, size};

/// Findings of a whole command.
#[derive(Default)]
struct Whole {
    objects: u64,
    found: Scrubbed,
    /// Object at which it was interrupted.
    interrupted: Option<String>,
    /// Drives that are down.
    down: Vec<String>,
}

/// Scrubs the named objects, or all.
pub(crate) fn scrub(options: &Scrub, context: &Context) -> Result<Report, Failure> {
    let bar = Bar::new(context, "scrub", None);
    let (total, progress) = (bar.total(), Arc::clone(&bar.progress));
    let (names, from, rate) = (options.names.clone(), options.from.clone(), options.rate);
    let whole = context.with_array(async move |array: &Array| {
        let entries = entries(array, &names, from.as_deref()).await?;
        total.set(entries.iter().map(|entry| entry.bytes).sum());
        let stop = Rc::new(Cell::new(false));
        let asked = Rc::clone(&stop);
        let _ended_with_the_core = spawn(Class::System, async move {
            stop_requested().await;
            asked.set(true);
        });
        let limits = Limits { bytes_per_s: rate, stop: Rc::clone(&stop), progress };
        let mut whole = Whole { down: array.down(), ..Whole::default() };
        for entry in &entries {
            whole.found.add(scrub::scrub(array, entry, &limits).await?);
            if stop.get() {
                whole.interrupted = Some(entry.name.clone());
                break;
            }
            whole.objects += 1;
        }
        Ok(whole)
    })?;
    drop(bar);
    if let Some(name) = &whole.interrupted {
        let message = match options.names.is_empty() {
            true => format!("interrupted: go on with --from {name:?}"),
            false => format!("interrupted at object {name:?}"),
        };
        return Err(Failure { detail: result(&whole), ..Failure::run(message) });
    }
    Ok(report(&whole))
}

/// Returns the named objects, or all from a name on, in the order of their names.
pub(crate) async fn entries(
    array: &Array,
    names: &[String],
    from: Option<&str>,
) -> Result<Vec<Entry>, Failure> {
    if names.is_empty() {
        let mut sealed = object::list(array).await?.sealed;
        sealed.retain(|entry| from.is_none_or(|from| entry.name.as_str() >= from));
        return Ok(sealed);
    }
    let mut entries = Vec::new();
    for name in names {
        entries.push(object::lookup(array, name).await?);
    }
    Ok(entries)
}

fn report(whole: &Whole) -> Report {
    let Whole { objects, found, .. } = whole;
    let mut text = format!(
        "{} objects, {} chunks, {} read: {}\n",
        grouped(*objects),
        grouped(found.chunks),
        size(found.bytes),
        match found.bad.len() {
            0 => "no damage".to_owned(),
            1 => "1 chunk is bad".to_owned(),
            bad => format!("{bad} chunks are bad"),
        }
    );
    if !found.bad.is_empty() {
        let mut table = Table::new(&[
            ("object", Align::Left),
            ("chunk", Align::Right),
            ("drive", Align::Left),
            ("cause", Align::Left),
        ]);
        for Bad { object, chunk, drive, cause } in &found.bad {
            let cause = cause.name().to_owned();
            table.row(vec![object.clone(), chunk.to_string(), drive.clone(), cause]);
        }
        text += &table.render();
    }
    if found.unknown > 0 {
        text += &format!(
            "{} chunks have no checksum in the catalogue: drives wrote them, or an earlier \
             version put them\n",
            grouped(found.unknown)
        );
    }
    let mut report = Report::new(text, result(whole));
    if !found.bad.is_empty() {
        report.warn(format!(
            "{} chunks are bad: put these objects again from their sources",
            found.bad.len()
        ));
    }
    for Unread { object, drive, chunks, why } in &found.unread {
        report.warn(format!("{chunks} chunks of object {object:?} were not read: {drive}: {why}"));
    }
    for down in &whole.down {
        report.warn(down.clone());
    }
    report
}

fn result(whole: &Whole) -> Value {
    let Whole { objects, found, .. } = whole;
    let bad = found.bad.iter().map(|bad| {
        json!({
            "object": bad.object,
            "stripe": null,
            "piece": bad.chunk,
            "page": null,
            "drive": bad.drive,
            "cause": bad.cause.name(),
            "repaired": false,
        })
    });
    let unread = found.unread.iter().map(|unread| {
        let Unread { object, drive, chunks, why } = unread;
        json!({ "object": object, "drive": drive, "chunks": chunks, "why": why })
    });
    json!({
        "objects": objects,
        "chunks": found.chunks,
        "bytes": found.bytes,
        "unknown": found.unknown,
        "bad": bad.collect::<Vec<Value>>(),
        "unread": unread.collect::<Vec<Value>>(),
    })
}
