//! `csd put`, `stat` and `rm`.

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
use crate::context::Context;
use crate::each_item::each_item;
use crate::progress::Bar;
use crate::protection;
use crate::put_input::{PutInput, as_bytes, becomes_bytes, open_as};
use crate::report::{Failure, Report, print_error};
use crate::room::takes;
use crate::table::pairs;
use crate::units::{counted, exact_size, grouped, hex, size};

/// Stores files.
pub(crate) fn put(options: &cli::Put, context: &Context) -> Result<Report, Failure> {
    match &options.words[..] {
        files if options.each => each_item(files, context, |file| put_any(file, options, context)),
        [file] => put_file(file, None, (options, options.element), context),
        [file, name] => put_file(file, Some(name), (options, options.element), context),
        words => Err(Failure::usage(format!(
            "one file and one name are two words, and {} are given: --each stores every one of \
             these files under its own name",
            words.len()
        ))),
    }
}

/// Stores one of several files: as bytes if it is an array that cannot be an object.
fn put_any(file: &str, options: &cli::Put, context: &Context) -> Result<Report, Failure> {
    let refused = match put_file(file, None, (options, options.element), context) {
        Err(refused) if becomes_bytes(file, options, &refused) => refused,
        done => return done,
    };
    let report = put_file(file, None, (options, Some(ElementType::Bytes)), context)?;
    if !context.json {
        print_error(&format!("note: {file}: {}", as_bytes(file, &refused.message)));
    }
    Ok(report)
}

/// Stores a file as elements of this type, if one is given.
fn put_file(
    file: &str,
    name: Option<&String>,
    (options, element): (&cli::Put, Option<ElementType>),
    context: &Context,
) -> Result<Report, Failure> {
    let input = open_as(file, options, element, |reader| reader)?;
    let from_path = Path::new(file).file_name().map(|name| name.to_string_lossy());
    let name = match (name, from_path) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) if file != "-" => name.into_owned(),
        _ => return Err(Failure::usage("an object from standard input needs a name")),
    };
    let bar = Bar::new(context, &name, input.bytes);
    let progress = bar.progress.clone();
    let align = options.arrange.align.clone();
    let mut put_options = put_options(options, name, &input);
    let stored = context.with_array_to_write(async move |array: &Array| {
        if let Some(name) = align {
            put_options.align = Some(object::lookup(array, &name).await?);
        }
        Ok(object::put(array, input.source, &put_options, &progress).await?)
    })?;
    drop(bar);
    let entry = stored.entry;
    let chunks = counted(entry.layout().chunks().into(), "chunk");
    let drives = counted(entry.members.len() as u64, "drive");
    let mut text = format!("{}: {} in {chunks} on {drives}\n", entry.name, amount(&entry));
    let mut result = describe(&entry);
    if let Some(taken) = input.taken {
        text += &format!("{}\n", taken.text);
        result["read"] = taken.json;
    }
    Ok(Report::new(text, result).with_warnings(stored.warnings))
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
    }
}

/// Shows an object.
pub(crate) fn stat(options: cli::Stat, context: &Context) -> Result<Report, Failure> {
    let lists_pieces = options.pieces;
    let (entry, drives, names, room, warnings) =
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
            Ok((entry, drives, names, room::of_array(array).await?, array.down()))
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
        ("epoch", entry.epoch.to_string()),
        ("id", hex(&entry.id.0)),
        ("blake3", digest(&entry)),
        ("room", takes(&room)),
    ]);
    let mut result = describe(&entry);
    let chunks = drives.iter().map(|(name, chunks)| json!({ "name": name, "chunks": chunks }));
    result["room"] = crate::room::describe(&room);
    result["drives"] = chunks.collect::<Vec<_>>().into();
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
        "epoch": entry.epoch,
        "id": hex(&entry.id.0),
        "blake3": entry.has_digest().then(|| hex(&entry.digest)),
        "protection": protection::describe(entry),
    })
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
