//! `csd put`, `get`, `ls`, `stat` and `rm`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::{Entry, Placement};
use csd_store::layout::{Kind, Parts};
use csd_store::object::{self, Arrange, Error, On, PutOptions, Sink};
use csd_store::source::Source;
use csd_store::whole::Whole;
use serde_json::{Value, json};

use crate::cli;
use crate::cli::run::Layout;
use crate::context::Context;
use crate::edges;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::table::{Align, Table, pairs};
use crate::units::{grouped, size};

/// Stores a file.
pub(crate) fn put(options: cli::Put, context: &Context) -> Result<Report, Failure> {
    let Opened { source, bytes, arrange, chunk_bytes } = open(&options)?;
    let from_path = Path::new(&options.source).file_name().map(|name| name.to_string_lossy());
    let name = match (options.name, from_path) {
        (Some(name), _) => name,
        (None, Some(name)) if options.source != "-" => name.into_owned(),
        _ => return Err(Failure::usage("an object from standard input needs a name")),
    };
    let on = match options.on {
        cli::On::Kv => On::Kv,
        cli::On::Block => On::Block,
    };
    let bar = Bar::new(context, &name, bytes);
    let progress = Arc::clone(&bar.progress);
    let align = options.arrange.align;
    let stored = context.with_array_to_write(async move |array: &Array| {
        let align = match align {
            Some(name) => Some(object::lookup(array, &name).await?),
            None => None,
        };
        let options = PutOptions { name, on, chunk_bytes, arrange, align };
        Ok(object::put(array, source, &options, &progress).await?)
    })?;
    drop(bar);
    let entry = stored.entry;
    let text = format!(
        "{}: {} {}, {} in {} chunks on {} drives\n",
        entry.name,
        grouped(entry.elements()),
        entry.element,
        size(entry.bytes),
        entry.layout().chunks(),
        entry.members.len()
    );
    Ok(Report::new(text, describe(&entry)).with_warnings(stored.warnings))
}

/// What is to be put.
struct Opened {
    source: Source,
    /// Its length, where the file system knows it.
    bytes: Option<u64>,
    arrange: Arrange,
    chunk_bytes: Option<u64>,
}

fn open(options: &cli::Put) -> Result<Opened, Failure> {
    if options.arrange.graph {
        let (nodes, chunk) = (options.arrange.nodes, options.chunk);
        let input = edges::input(&options.source, nodes, chunk)?;
        let edges::Input { source, arrange, chunk_bytes } = input;
        return Ok(Opened { source, bytes: None, arrange, chunk_bytes });
    }
    let arrange = match options.arrange.layout {
        Layout::Spread => Arrange::Spread,
        Layout::Range => Arrange::Range,
        Layout::Rows => Arrange::Rows,
    };
    let (reader, bytes, name): (Box<dyn Read + Send>, _, &str) = match options.source.as_str() {
        "-" => (Box::new(io::stdin()), None, "standard input"),
        path => {
            let file = File::open(path);
            let file = file.map_err(|error| Failure::usage(format!("{path}: {error}")))?;
            let metadata =
                file.metadata().map_err(|error| Failure::usage(format!("{path}: {error}")))?;
            if metadata.is_dir() {
                return Err(Failure::usage(format!("{path} is a folder")));
            }
            (Box::new(file), metadata.is_file().then_some(metadata.len()), path)
        }
    };
    let source = if options.csv {
        let element = options.element.unwrap_or(ElementType::F64);
        Source::csv(name, reader, options.column.as_ref(), element)
    } else if Path::new(name).extension().is_some_and(|extension| extension == "npy") {
        Source::npy(name, reader, options.element)
    } else {
        Ok(Source::raw(name, reader, options.element.unwrap_or(ElementType::Bytes)))
    };
    // A bar over a CSV file would end early or late: its numbers are not as long as its text.
    let bytes = bytes.filter(|_| !options.csv);
    let source = source.map_err(|error| Failure::at_fault(error.fault(), error))?;
    Ok(Opened { source, bytes, arrange, chunk_bytes: options.chunk })
}

/// Fetches an object.
pub(crate) fn get(options: cli::Get, context: &Context) -> Result<Report, Failure> {
    let last = options.name.rsplit('/').next().unwrap_or("").to_owned();
    let default = options.file.is_none();
    let file = options.file.unwrap_or(last);
    if file == "-" && context.json {
        return Err(Failure::usage("--json and an object cannot both go to standard output"));
    }
    if default && matches!(file.as_str(), "" | "." | ".." | "-") {
        return Err(Failure::usage(format!("{:?} gives no file name: say one", options.name)));
    }
    let bar = Bar::new(context, &options.name, None);
    let progress = Arc::clone(&bar.progress);
    let (name, (target, sink)) = (options.name, Target::open(&file)?);
    let got = context.with_array(async move |array: &Array| {
        match object::get(array, &name, sink, &progress).await {
            Ok((entry, _sink)) => Ok(Some(entry)),
            // A reader that has gone away wants nothing more: no failure of ours.
            Err(Error::Write { source }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(None),
            Err(error) => Err(error.into()),
        }
    });
    drop(bar);
    let Some(entry) = target.finish(got)? else { return Ok(Report::default()) };
    if file == "-" {
        return Ok(Report::new("", describe(&entry)));
    }
    let mut result = describe(&entry);
    result["file"] = file.as_str().into();
    Ok(Report::new(format!("{file}: {}, {}\n", size(entry.bytes), seen(&entry)), result))
}

/// What was looked at on the way.
fn seen(entry: &Entry) -> &'static str {
    if entry.has_digest() { "digest is right" } else { "checksums are right" }
}

/// Where an object goes: standard output, or a file that appears when it is whole.
enum Target {
    Stdout,
    File(String, Whole),
}

impl Target {
    fn open(file: &str) -> Result<(Self, Sink), Failure> {
        if file == "-" {
            return Ok((Self::Stdout, Box::new(io::stdout())));
        }
        if Path::new(file).is_dir() {
            return Err(Failure::usage(format!("{file} is a folder")));
        }
        match Whole::create(Path::new(file)) {
            Ok((whole, sink)) => Ok((Self::File(file.to_owned(), whole), Box::new(sink))),
            Err(error) => Err(Failure::usage(format!("{file}: {error}"))),
        }
    }

    /// Ends it: what was got of an object that could not be had whole is not kept.
    fn finish<T>(self, got: Result<T, Failure>) -> Result<T, Failure> {
        let value = got?;
        if let Self::File(file, whole) = self {
            whole.finish().map_err(|error| Failure::run(format!("{file}: {error}")))?;
        }
        Ok(value)
    }
}

/// Lists objects.
pub(crate) fn ls(options: &cli::Ls, context: &Context) -> Result<Report, Failure> {
    let (listed, warnings) =
        context.with_array(async |array: &Array| Ok((object::list(array).await?, array.down())))?;
    let mut table = Table::new(&[
        ("name", Align::Left),
        ("type", Align::Left),
        ("shape", Align::Left),
        ("size", Align::Right),
        ("on", Align::Left),
        ("state", Align::Left),
    ]);
    let staged = listed.staged.iter().filter(|_| options.all).map(|entry| (entry, "staged"));
    let rows: Vec<_> = listed.sealed.iter().map(|entry| (entry, "sealed")).chain(staged).collect();
    for (entry, state) in &rows {
        table.row(vec![
            entry.name.clone(),
            entry.element.to_string(),
            shape(&entry.shape),
            size(entry.bytes),
            placement(entry).to_owned(),
            (*state).to_owned(),
        ]);
    }
    let objects: Vec<_> = rows
        .iter()
        .map(|(entry, state)| {
            let mut object = describe(entry);
            object["state"] = (*state).into();
            object
        })
        .collect();
    let text = if rows.is_empty() { "no objects\n".to_owned() } else { table.render() };
    Ok(Report::new(text, json!({ "objects": objects })).with_warnings(warnings))
}

/// Shows an object.
pub(crate) fn stat(options: cli::Name, context: &Context) -> Result<Report, Failure> {
    let (entry, drives, warnings) = context.with_array(async move |array: &Array| {
        let entry = object::lookup(array, &options.name).await?;
        let layout = entry.layout();
        let drives: Vec<(String, u32)> = entry
            .members
            .iter()
            .enumerate()
            .map(|(member, &index)| {
                let seat = array.seats().get(usize::from(index));
                let name = seat.map_or_else(|| format!("#{index}"), |seat| seat.name.clone());
                (name, layout.count(member))
            })
            .collect();
        Ok((entry, drives, array.down()))
    })?;
    let on_drives: Vec<_> = drives.iter().map(|(name, n)| format!("{name} ({n})")).collect();
    let text = pairs(&[
        ("name", entry.name.clone()),
        ("type", entry.element.to_string()),
        ("shape", shape(&entry.shape)),
        ("elements", grouped(entry.elements())),
        ("size", format!("{} ({} bytes)", size(entry.bytes), grouped(entry.bytes))),
        ("chunks", format!("{} of {}", entry.layout().chunks(), size(entry.chunk_bytes.into()))),
        ("on", placement(&entry).to_owned()),
        ("layout", layout(&entry).to_owned()),
        ("drives", on_drives.join(", ")),
        ("epoch", entry.epoch.to_string()),
        ("id", hex(&entry.id.0)),
        ("blake3", digest(&entry)),
    ]);
    let mut result = describe(&entry);
    let chunks = drives.iter().map(|(name, chunks)| json!({ "name": name, "chunks": chunks }));
    result["drives"] = chunks.collect::<Vec<_>>().into();
    Ok(Report::new(text, result).with_warnings(warnings))
}

/// Removes an object.
pub(crate) fn rm(options: cli::Name, context: &Context) -> Result<Report, Failure> {
    let name = options.name.clone();
    let warnings = context.with_array_to_write(async move |array: &Array| {
        Ok(object::remove(array, &options.name).await?)
    })?;
    let report = Report::new(format!("{name}: removed\n"), json!({ "name": name }));
    Ok(report.with_warnings(warnings))
}

/// An object for programs.
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
    })
}

fn placement(entry: &Entry) -> &'static str {
    match entry.placement {
        Placement::Kv => "kv",
        Placement::Block(_) => "block",
    }
}

fn layout(entry: &Entry) -> &'static str {
    match entry.parts.as_ref().map(Parts::kind) {
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

fn shape(lengths: &[u64]) -> String {
    match lengths {
        [] => "scalar".to_owned(),
        lengths => lengths.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_ids_read_well() {
        assert_eq!([shape(&[]), shape(&[5]), shape(&[2, 3])], ["scalar", "5", "2 x 3"]);
        assert_eq!(hex(&[0, 0xAB]), "00ab");
    }

    #[test]
    fn a_file_appears_only_when_it_is_whole() {
        let folder = std::env::temp_dir().join(format!("csd-get-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("x");
        for (got, there) in [(Err(Failure::run("no")), false), (Ok(()), true)] {
            let (target, sink) = Target::open(file.to_str().unwrap()).unwrap();
            drop(sink);
            assert_eq!(target.finish(got).is_ok(), there);
            assert_eq!(file.exists(), there);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), usize::from(there));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
