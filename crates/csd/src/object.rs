//! `csd put`, `stat` and `rm`.

use std::fs;
use std::path::Path;

use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::{Entry, Placement};
use csd_store::layout::{Kind, Parts};
use csd_store::object::{self, On, PutOptions};
use csd_store::room;
use serde_json::{Value, json};

use crate::array::lock::{Lock, Writers};
use crate::cli;
use crate::clock;
use crate::columns;
use crate::context::Context;
use crate::each_item::each_item;
use crate::interruptible::Watch;
use crate::progress::Bar;
use crate::protection;
use crate::put_input::{PutInput, open_as};
use crate::report::{Failure, Report};
use crate::room::takes;
use crate::table::pairs;
use crate::units::{counted, exact_size, grouped, hex, size};

/// Stores a file.
pub(crate) fn put(options: &cli::Put, context: &Context) -> Result<Report, Failure> {
    match &options.words[..] {
        [file] => put_file(file, None, options, context),
        [file, name] => put_file(file, Some(name), options, context),
        words => Err(Failure::usage(format!(
            "one file and one name are two words, and {} are given: --each stores every one of \
             these files under its own name",
            words.len()
        ))),
    }
}

fn put_file(
    file: &str,
    name: Option<&String>,
    options: &cli::Put,
    context: &Context,
) -> Result<Report, Failure> {
    // A read of a pipe may wait for its writer for ever, and would never look at the signal.
    let is_plain = !options.arrange.graph && fs::metadata(file).is_ok_and(|file| file.is_file());
    let watch = Watch::begin(is_plain)?;
    let mut input = open_as(file, options, options.element, |reader| watch.reader(reader))?;
    let from_path = Path::new(file).file_name().map(|name| name.to_string_lossy());
    let name = match (name, from_path) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) if file != "-" => name.into_owned(),
        _ => return Err(Failure::usage("an object from standard input needs a name")),
    };
    let taken = input.taken.take();
    let bar = Bar::new(context, &name, input.bytes);
    let progress = bar.progress.clone();
    let align = options.arrange.align.clone();
    let mut put_options = put_options(options, name, &input);
    let stored = context.with_array_to_write(async move |array: &Array| {
        if let Some(name) = align {
            put_options.align = Some(object::lookup(array, &name).await?);
        }
        Ok(object::put(array, input.source, &put_options, &progress).await?)
    });
    drop(bar);
    let stored = watch.end(stored, "nothing was stored")?;
    let entry = stored.entry;
    let (mut text, mut result) = (stored_line(&entry), describe(&entry));
    if let Some(taken) = taken {
        text += &format!("{}\n", taken.text);
        result["read"] = taken.json;
    }
    Ok(Report::new(text, result).with_warnings(stored.warnings))
}

/// Returns a line for people about an object that was stored.
pub(crate) fn stored_line(entry: &Entry) -> String {
    let chunks = counted(entry.layout().chunks().into(), "chunk");
    let drives = counted(entry.members.len() as u64, "drive");
    format!("{}: {} in {chunks} on {drives}\n", entry.name, amount(entry))
}

/// Returns an object's elements and size in words.
pub(crate) fn amount(entry: &Entry) -> String {
    match entry.element {
        ElementType::Bytes => exact_size(entry.bytes),
        element => format!("{} {element}, {}", grouped(entry.elements()), size(entry.bytes)),
    }
}

/// Returns the options to store an input under a name.
pub(crate) fn put_options(options: &cli::Put, name: String, input: &PutInput) -> PutOptions {
    PutOptions {
        name,
        on: match options.on {
            cli::On::Kv => On::Kv,
            cli::On::Block => On::Block,
        },
        chunk_bytes: input.chunk_bytes,
        arrange: input.arrange.clone(),
        align: None,
        protect: options.protect,
        page_bytes: Some(options.page_bytes).filter(|bytes| *bytes > 0),
        stored_unix_ms: None,
    }
}

/// Shows an object.
pub(crate) fn stat(options: cli::Stat, context: &Context) -> Result<Report, Failure> {
    let lists_pieces = options.pieces;
    let (entry, drives, names, columns, room, mut warnings) =
        context.with_array(async move |array: &Array| {
            let entry = object::lookup(array, &options.name).await?;
            let layout = entry.layout();
            let drives: Vec<(String, u32)> = entry
                .members
                .iter()
                .enumerate()
                .map(|(member, &index)| {
                    let slot = array.slot(index);
                    let name = slot.map_or_else(|| format!("#{index}"), |slot| slot.name.clone());
                    (name, layout.count(member))
                })
                .collect();
            let names: Vec<String> = array.slots().iter().map(|slot| slot.name.clone()).collect();
            let columns = columns::of(array, &entry).await;
            Ok((entry, drives, names, columns, room::of_array(array).await?, array.down()))
        })?;
    let on_drives: Vec<_> = drives.iter().map(|(name, n)| format!("{name} ({n})")).collect();
    let pieces = match lists_pieces {
        true => Some(protection::pieces(&entry, &names)?),
        false => None,
    };
    let mut text = pairs(&[
        ("name", entry.name.clone()),
        ("type", entry.element.to_string()),
        ("shape", shape(&entry.shape)),
        ("elements", grouped(entry.elements())),
        ("size", exact_size(entry.bytes)),
        ("chunks", format!("{} of {}", entry.layout().chunks(), size(entry.chunk_bytes.into()))),
        ("on", placement(&entry).to_owned()),
        ("layout", layout(&entry).to_owned()),
        ("drives", on_drives.join(", ")),
        ("protection", protection::in_words(&entry)),
        ("stored", stored(&entry).unwrap_or_else(|| "at a time that is not known".to_owned())),
        ("epoch", entry.epoch.to_string()),
        ("id", hex(&entry.id.0)),
        ("blake3", digest(&entry)),
        ("room", takes(&room)),
    ]);
    let mut result = describe(&entry);
    let chunks = drives.iter().map(|(name, chunks)| json!({ "name": name, "chunks": chunks }));
    result["room"] = crate::room::describe(&room);
    result["drives"] = chunks.collect::<Vec<_>>().into();
    match columns {
        None => {}
        Some(Err(why)) => warnings.push(why),
        Some(Ok(columns)) => {
            text.push_str(&columns.text());
            result["table"] = columns.describe();
        }
    }
    if let Some((table, pieces)) = pieces {
        text.push_str(&table);
        result["pieces"] = pieces;
    }
    Ok(Report::new(text, result).with_warnings(warnings))
}

/// Removes objects.
pub(crate) fn rm(options: &cli::Rm, context: &Context) -> Result<Report, Failure> {
    let remove = |name: &String| {
        if options.damaged {
            return drop_damaged(name, context);
        }
        let removed = name.clone();
        let warnings = context.with_array_to_write(async move |array: &Array| {
            Ok(object::remove(array, &removed).await?)
        })?;
        let report = Report::new(format!("{name}: removed\n"), json!({ "name": name }));
        Ok(report.with_warnings(warnings))
    };
    match &options.names[..] {
        [name] => remove(name),
        names => each_item(names, context, remove),
    }
}

/// Drops a name of which too few copies are sound.
fn drop_damaged(name: &str, context: &Context) -> Result<Report, Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let _writers = Writers::exclude(path)?;
    let dropped = name.to_owned();
    let warnings = context
        .with_array(async move |array: &Array| Ok(object::drop_damaged(array, &dropped).await?))?;
    let text = format!("{name}: dropped; `csd array reclaim` frees data that is left of it\n");
    Ok(Report::new(text, json!({ "name": name })).with_warnings(warnings))
}

/// Describes an object for JSON output.
pub(crate) fn describe(entry: &Entry) -> Value {
    json!({
        "name": entry.name,
        "type": entry.element.name(),
        "shape": entry.shape,
        "elements": entry.elements(),
        "bytes": entry.bytes,
        "chunk_bytes": entry.chunk_bytes,
        "chunks": entry.layout().chunks(),
        "on": placement(entry),
        "layout": layout(entry),
        "drives": entry.members,
        "stored": stored(entry),
        "epoch": entry.epoch,
        "id": hex(&entry.id.0),
        "blake3": entry.has_digest().then(|| hex(&entry.digest)),
        "protection": protection::describe(entry),
    })
}

/// Returns the time at which an object was stored, in UTC, if it is known.
pub(crate) fn stored(entry: &Entry) -> Option<String> {
    (entry.stored_unix_ms > 0).then(|| clock::written(entry.stored_unix_ms))
}

/// Returns the namespace of an object's chunks in words.
pub(crate) fn placement(entry: &Entry) -> &'static str {
    match entry.placement {
        Placement::Kv => "kv",
        Placement::Block(_) => "block",
    }
}

/// Returns the way in which an object is cut in words.
pub(crate) fn layout(entry: &Entry) -> &'static str {
    match entry.parts.as_ref().map(Parts::kind) {
        None if entry.whole => "whole",
        None => "spread",
        Some(Kind::Range) => "range",
        Some(Kind::Rows) => "rows",
        Some(Kind::Graph) => "graph",
        Some(Kind::Table) => "table",
    }
}

fn digest(entry: &Entry) -> String {
    match entry.has_digest() {
        true => hex(&entry.digest),
        false => "none: drives wrote it; their checksums guard it".to_owned(),
    }
}

/// Returns the dimensions of an object in words.
pub(crate) fn shape(lengths: &[u64]) -> String {
    match lengths {
        [] => "scalar".to_owned(),
        lengths => lengths.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_ids_read_well() {
        assert_eq!([shape(&[]), shape(&[5]), shape(&[2, 3])], ["scalar", "5", "2 x 3"]);
    }
}
