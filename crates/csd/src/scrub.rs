//! `csd scrub`: the drives check the pieces of objects.

use std::rc::Rc;
use std::sync::Arc;

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object::{self, Progress};
use csd_store::repair;
use csd_store::scrub::{self, Bad, Limits, Proof, Scrubbed, Unread};
use serde_json::{Value, json};

use crate::cli::scrub::Scrub;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::stop_flag;
use crate::table::{Align, Table};
use crate::units::{grouped, size};

/// Findings of a whole command.
#[derive(Default)]
struct Whole {
    objects: u64,
    found: Scrubbed,
    /// Proof of the stripes, if it was asked for.
    proof: Option<Proof>,
    /// Object at which it was interrupted.
    interrupted: Option<String>,
    /// Drives that are down.
    down: Vec<String>,
}

/// Scrubs the named objects, or all.
pub(crate) fn scrub(options: &Scrub, context: &Context) -> Result<Report, Failure> {
    let bar = Bar::new(context, "scrub", None);
    let (total, progress) = (bar.total(), Arc::clone(&bar.progress));
    let of_core = options.clone();
    let work = async move |array: &Array| {
        let is_deep = of_core.deep;
        let entries = entries(array, &of_core.names, of_core.from.as_deref()).await?;
        total.set(entries.iter().map(|entry| scrub::bytes(entry, is_deep)).sum());
        all(array, &entries, &of_core, progress).await
    };
    let whole = match options.repair {
        true => context.with_array_to_write(work)?,
        false => context.with_array(work)?,
    };
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

/// Scrubs objects until all are done or a signal comes.
async fn all(
    array: &Array,
    entries: &[Entry],
    options: &Scrub,
    progress: Progress,
) -> Result<Whole, Failure> {
    let stop = stop_flag();
    let limits = Limits { bytes_per_s: options.rate, stop: Rc::clone(&stop), progress };
    let mut whole = Whole { down: array.down(), ..Whole::default() };
    whole.proof = options.deep.then(Proof::default);
    for entry in entries {
        let mut found = scrub::scrub(array, entry, &limits).await?;
        if options.repair && !found.bad.is_empty() && !stop.get() {
            repair(array, entry, &mut found.bad, &limits).await?;
        }
        if let Some(proof) = whole.proof.as_mut().filter(|_| !stop.get()) {
            let mut of_object = scrub::prove(array, entry, &found, &limits).await?;
            found.bad.append(&mut of_object.bad);
            proof.add(of_object);
        }
        whole.found.add(found);
        if stop.get() {
            whole.interrupted = Some(entry.name.clone());
            break;
        }
        whole.objects += 1;
    }
    Ok(whole)
}

/// Repairs an object, if it is protected, and marks the pieces that are good now.
async fn repair(
    array: &Array,
    entry: &Entry,
    bad: &mut [Bad],
    limits: &Limits,
) -> Result<(), Failure> {
    // The bar counts what is scrubbed.
    let limits = Limits { progress: Arc::new(|_| {}), ..limits.clone() };
    let Limits { bytes_per_s, stop, progress } = limits.clone();
    let of_repair = repair::Limits {
        on: repair::On::default(),
        bytes_per_s,
        stop,
        total: Rc::new(|_| {}),
        progress,
    };
    repair::repair(array, std::slice::from_ref(entry), &of_repair).await?;
    Ok(scrub::mark_repaired(array, entry, bad, &limits).await?)
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
    let repaired = found.bad.iter().filter(|bad| bad.repaired).count();
    let mut of_bad = match found.bad.len() {
        0 => "no damage".to_owned(),
        1 => "1 piece is bad".to_owned(),
        bad => format!("{bad} pieces are bad"),
    };
    if repaired > 0 {
        of_bad += &format!(", {repaired} of them repaired");
    }
    let mut text = format!(
        "{} objects, {} chunks, {} parity pieces, {} read: {of_bad}\n",
        grouped(*objects),
        grouped(found.chunks),
        grouped(found.parity),
        size(found.bytes),
    );
    if !found.bad.is_empty() {
        text += &table(&found.bad);
    }
    if let Some(proof) = &whole.proof {
        text += &format!(
            "{} stripes are code words, {} read, {} crossed the network\n",
            grouped(proof.proven),
            size(proof.bytes),
            size(proof.crossed_bytes)
        );
    }
    if found.unknown > 0 {
        text += &format!(
            "{} chunks have no checksum in the catalogue: drives wrote them, or an earlier \
             version put them\n",
            grouped(found.unknown)
        );
    }
    let mut report = Report::new(text, result(whole));
    if repaired > 0 && repaired == found.bad.len() {
        report.warn(of_bad);
    } else if !found.bad.is_empty() {
        report.warn(format!(
            "{of_bad}: `csd repair` rebuilds those of protected objects from others; put other \
             objects again from their sources"
        ));
    }
    if let Some(proof) = whole.proof.as_ref().filter(|proof| proof.unproven > 0) {
        let count = proof.unproven;
        report.warn(format!("{count} stripes are not proven: pieces of them were not read"));
    }
    for Unread { object, drive, pieces, why } in &found.unread {
        report.warn(format!("{pieces} pieces of object {object:?} were not read: {drive}: {why}"));
    }
    for down in &whole.down {
        report.warn(down.clone());
    }
    report
}

/// Returns a table of bad pieces for people.
fn table(bad: &[Bad]) -> String {
    let mut table = Table::new(&[
        ("object", Align::Left),
        ("piece", Align::Right),
        ("drive", Align::Left),
        ("cause", Align::Left),
    ]);
    for Bad { object, stripe, piece, drive, cause, repaired } in bad {
        let piece = match (stripe, piece) {
            (Some(stripe), Some(piece)) => format!("{stripe}:{piece}"),
            (Some(stripe), None) => format!("stripe {stripe}"),
            (None, piece) => piece.map_or_else(String::new, |piece| piece.to_string()),
        };
        let drive = drive.clone().unwrap_or_default();
        let cause = format!("{}{}", cause.name(), if *repaired { ", repaired" } else { "" });
        table.row(vec![object.clone(), piece, drive, cause]);
    }
    table.render()
}

fn result(whole: &Whole) -> Value {
    let Whole { objects, found, .. } = whole;
    let bad = found.bad.iter().map(|bad| {
        json!({
            "object": bad.object,
            "stripe": bad.stripe,
            "piece": bad.piece,
            "page": null,
            "drive": bad.drive,
            "cause": bad.cause.name(),
            "repaired": bad.repaired,
        })
    });
    let unread = found.unread.iter().map(|unread| {
        let Unread { object, drive, pieces, why } = unread;
        json!({ "object": object, "drive": drive, "chunks": pieces, "why": why })
    });
    let deep = whole.proof.as_ref().map(|proof| {
        let Proof { proven, unproven, bytes, crossed_bytes, .. } = proof;
        json!({
            "stripes": proven,
            "unproven": unproven,
            "bytes": bytes,
            "crossed_bytes": crossed_bytes,
        })
    });
    json!({
        "objects": objects,
        "chunks": found.chunks,
        "parity": found.parity,
        "bytes": found.bytes,
        "unknown": found.unknown,
        "bad": bad.collect::<Vec<Value>>(),
        "unread": unread.collect::<Vec<Value>>(),
        "deep": deep,
    })
}
