//! `csd scrub`: the drives check the pieces of objects.

use std::collections::BTreeSet;
use std::rc::Rc;

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object::{self, Progress};
use csd_store::repair;
use csd_store::scrub::{self, Bad, Cause, Limits, Names, Proof, Scrubbed, Unread};
use serde_json::{Value, json};

use crate::cli::scrub::Scrub;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::stop_flag;
use crate::table::{Align, Table};
use crate::units::{counted, grouped, size};

/// Findings of a whole command.
#[derive(Default)]
struct Whole {
    objects: u64,
    of_names: Names,
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
    let (total, progress) = (bar.total(), bar.progress.clone());
    let of_core = options.clone();
    let work = async move |array: &Array| {
        let is_deep = of_core.deep;
        let mut of_names = scrub::names(array, &of_core.names, of_core.repair).await?;
        let entries = entries(array, &of_core.names, of_core.from.as_deref()).await?;
        total.set(entries.iter().map(|entry| scrub::bytes(entry, is_deep)).sum());
        let mut whole = all(array, &entries, &of_core, progress).await?;
        whole.found.bad.splice(..0, of_names.bad.drain(..));
        whole.of_names = of_names;
        Ok(whole)
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
        if options.repair && found.bad.iter().any(|bad| bad.piece.is_some()) && !stop.get() {
            repair(array, entry, &mut found.bad, &limits).await?;
        }
        if options.repair && !stop.get() {
            scrub::replace_page_lists(array, entry, &mut found.bad, &limits).await?;
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

/// Repairs the pieces of an object, if it is protected, and marks those that are good now.
async fn repair(
    array: &Array,
    entry: &Entry,
    bad: &mut [Bad],
    limits: &Limits,
) -> Result<(), Failure> {
    // The bar counts what is scrubbed.
    let limits = Limits { progress: Progress::none(), ..limits.clone() };
    let Limits { bytes_per_s, stop, progress } = limits.clone();
    let of_repair = repair::Limits {
        on: repair::On::default(),
        bytes_per_s,
        stop,
        total: Rc::new(|_| {}),
        progress,
    };
    repair::repair(array, std::slice::from_ref(entry), &of_repair).await;
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
    let of_bad = words(&found.bad);
    let mut text = format!(
        "{}, {}, {}, {} read: {of_bad}\n",
        counted(*objects, "object"),
        counted(found.chunks, "chunk"),
        counted(found.parity, "parity piece"),
        size(found.bytes),
    );
    text += &format!(
        "{}, {}, {}\n",
        counted(whole.of_names.names, "name"),
        counted(whole.of_names.copies, "copy"),
        counted(whole.of_names.records, "record"),
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
    let is_left = |kind: Kind| found.bad.iter().any(|bad| !bad.repaired && kind_of(bad) == kind);
    if is_left(Kind::Piece) {
        report.warn(format!(
            "{of_bad}: `csd repair` rebuilds those of protected objects from others; put other \
             objects again from their sources"
        ));
    } else if is_left(Kind::List) {
        report.warn(format!("{of_bad}: `csd scrub --repair` makes them again"));
    } else if is_left(Kind::Name) {
        report.warn(format!("{of_bad}: `csd repair` mends names of which enough copies are sound"));
    } else if !found.bad.is_empty() {
        report.warn(of_bad);
    }
    whole.of_names.trouble.iter().for_each(|trouble| report.warn(trouble.clone()));
    if let Some(proof) = whole.proof.as_ref().filter(|proof| proof.unproven > 0) {
        let count = proof.unproven;
        report.warn(format!("{count} stripes are not proven: pieces of them were not read"));
    }
    for Unread { object, drive, pieces, why } in &found.unread {
        let pieces = counted(*pieces, "piece");
        report.warn(format!("{pieces} of object {object:?} not read: {drive}: {why}"));
    }
    for down in &whole.down {
        report.warn(down.clone());
    }
    report
}

/// Kind of what is bad.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Piece,
    List,
    Name,
}

fn kind_of(bad: &Bad) -> Kind {
    match bad.cause {
        Cause::PageList => Kind::List,
        cause if cause.is_of_names() => Kind::Name,
        _ => Kind::Piece,
    }
}

/// Returns the numbers of bad pieces, of damaged page checksums and copies of names, in words.
fn words(bad: &[Bad]) -> String {
    // Each once, however many of its pages are bad.
    let count = |kind: Kind, is_repaired: bool| {
        let names = bad.iter().filter(|bad| kind_of(bad) == kind && (!is_repaired || bad.repaired));
        if kind == Kind::Name {
            return names.count();
        }
        let name = |bad: &Bad| (bad.object.clone(), bad.stripe, bad.piece, bad.drive.clone());
        names.map(name).collect::<BTreeSet<_>>().len()
    };
    let mut text = match (count(Kind::Piece, false), bad.is_empty()) {
        (0, true) => "no damage".to_owned(),
        (0, false) => "no piece is bad".to_owned(),
        (1, _) => "1 piece is bad".to_owned(),
        (bad, _) => format!("{bad} pieces are bad"),
    };
    for kind in [Kind::Piece, Kind::List, Kind::Name] {
        match (kind, count(kind, false)) {
            (Kind::Piece, _) | (_, 0) => {}
            (Kind::List, 1) => text += "; page checksums of one object on one drive are damaged",
            (Kind::List, lists) => {
                text += &format!("; page checksums are damaged in {lists} places");
            }
            (Kind::Name, 1) => text += "; 1 copy of a name or record is damaged",
            (Kind::Name, copies) => {
                text += &format!("; {copies} copies of names or records are damaged");
            }
        }
        match count(kind, true) {
            0 => {}
            repaired => text += &format!(", {repaired} of them repaired"),
        }
    }
    text
}

/// Returns a table of what is bad, for people.
pub(crate) fn table(bad: &[Bad]) -> String {
    let mut table = Table::new(&[
        ("object", Align::Left),
        ("piece", Align::Right),
        ("page", Align::Right),
        ("drive", Align::Left),
        ("cause", Align::Left),
    ]);
    for Bad { object, stripe, piece, page, drive, cause, repaired } in bad {
        let piece = match (stripe, piece) {
            (Some(stripe), Some(piece)) => format!("{stripe}:{piece}"),
            (Some(stripe), None) => format!("stripe {stripe}"),
            (None, piece) => piece.map_or_else(String::new, |piece| piece.to_string()),
        };
        let page = page.map_or_else(String::new, |page| page.to_string());
        let drive = drive.clone().unwrap_or_default();
        let cause = format!("{}{}", cause.name(), if *repaired { ", repaired" } else { "" });
        table.row(vec![object.clone(), piece, page, drive, cause]);
    }
    table.render()
}

/// Describes what is bad for JSON output.
pub(crate) fn describe(bad: &Bad) -> Value {
    json!({
        "object": bad.object,
        "stripe": bad.stripe,
        "piece": bad.piece,
        "page": bad.page,
        "drive": bad.drive,
        "cause": bad.cause.name(),
        "repaired": bad.repaired,
    })
}

fn result(whole: &Whole) -> Value {
    let Whole { objects, found, .. } = whole;
    let bad = found.bad.iter().map(describe);
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
        "names": whole.of_names.names,
        "copies": whole.of_names.copies,
        "records": whole.of_names.records,
        "chunks": found.chunks,
        "parity": found.parity,
        "bytes": found.bytes,
        "unknown": found.unknown,
        "bad": bad.collect::<Vec<Value>>(),
        "unread": unread.collect::<Vec<Value>>(),
        "deep": deep,
    })
}
