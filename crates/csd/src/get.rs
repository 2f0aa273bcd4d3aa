//! `csd get`: writes an object to a file, in the form that `put` read.
//!
//! An object of numbers gets NumPy's header if the name of the file ends in `.npy`. Otherwise the
//! file has the object's bytes.

use std::io::{self, Write};

use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::error::in_words;
use csd_store::object::{self, Error, Form, GetOptions, Got, Sink};
use serde_json::json;

use crate::cli;
use crate::context::Context;
use crate::interruptible::Watch;
use crate::object::describe;
use crate::progress::Bar;
use crate::put_input::is_npy;
use crate::report::{self, Failure, Report};
use crate::target::{Target, cannot_write};
use crate::units::size;

/// Fetches an object.
pub(crate) fn get(options: cli::Get, context: &Context) -> Result<Report, Failure> {
    let name = options.name;
    let last = name.rsplit('/').next().unwrap_or("").to_owned();
    let default = options.file.is_none();
    let file = options.file.unwrap_or_else(|| last.clone());
    if default && matches!(file.as_str(), "" | "." | ".." | "-") {
        let why = "gives no file name: say one; -r writes all objects of a folder";
        return Err(Failure::usage(format!("{name:?} {why}")));
    }
    if let Some(piece) = options.piece {
        return get_piece((&name, piece), (&file, options.force), context);
    }
    // Before there is a file to leave behind. When a pipe is written, the signal ends this process,
    // and the reader sees the pipe end.
    let watch = Watch::begin(Target::will_be_new(&file))?;
    let (target, sink) = open(&file, options.force, context)?;
    let named = if target.is_stdout() { last } else { file.clone() };
    let sink = watch.writer(sink);
    let (raw, partial) = (options.raw, options.partial);
    let bar = Bar::new(context, &name, None);
    let (progress, total) = (bar.progress.clone(), bar.total());
    let written = file.clone();
    let got = context.with_array(async move |array: &Array| {
        let entry = object::lookup(array, &name).await?;
        let form = form_of(&entry, &named, raw);
        total.set(entry.bytes);
        let get_options = GetOptions { form, partial };
        match object::get(array, entry, get_options, sink, &progress).await {
            Ok(got) => {
                let Got { entry, sink: _, lost, warnings } = got;
                Ok(Some((entry, form, lost, warnings)))
            }
            // A reader that closed its end needs no more bytes; this is not a failure.
            Err(Error::Write { source }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(None),
            Err(Error::Write { source }) => Err(cannot_write(&written, &source)),
            Err(error) => Err(error.into()),
        }
    });
    drop(bar);
    let got = watch.end(got, &format!("{file} was not written"))?;
    let Some((entry, form, lost, mut warnings)) = got else { return Ok(Report::default()) };
    let (mut result, to_stdout) = (describe(&entry), target.is_stdout());
    target.finish()?;
    result["form"] = words(form).into();
    if !lost.is_empty() {
        result["lost"] = report::lost(&lost);
        let (name, bytes) = (&entry.name, in_words(&lost));
        warnings.push(format!("object {name:?}: zeros stand for bytes {bytes}, which are lost"));
    }
    if to_stdout {
        return Ok(Report::new("", result).with_warnings(warnings));
    }
    result["file"] = file.as_str().into();
    let kind = match (form, entry.element) {
        (Form::Npy, element) => format!("{element} as .npy"),
        (Form::Raw, ElementType::Bytes) => "bytes".to_owned(),
        (Form::Raw, element) => format!("raw {element}"),
    };
    let text =
        format!("{file}: {}, {kind}, {}\n", size(entry.bytes), seen(&entry, !lost.is_empty()));
    Ok(Report::new(text, result).with_warnings(warnings))
}

/// Opens the target; it cannot be standard output if a JSON object goes there.
fn open(file: &str, force: bool, context: &Context) -> Result<(Target, Sink), Failure> {
    let (target, sink) = Target::open(file, force)?;
    match target.is_stdout() && context.json {
        true => Err(Failure::usage("--json and an object cannot both go to standard output")),
        false => Ok((target, sink)),
    }
}

/// Fetches one piece of a protected object. Its file is opened once the piece is here, so that a
/// signal before that leaves none.
fn get_piece(
    (name, (stripe, piece)): (&str, (u32, usize)),
    (file, force): (&str, bool),
    context: &Context,
) -> Result<Report, Failure> {
    let wanted = name.to_owned();
    let bytes = context.with_array(async move |array: &Array| {
        let entry = object::lookup(array, &wanted).await?;
        Ok(object::read_piece(array, &entry, stripe, piece).await?.to_vec())
    })?;
    let (target, mut sink) = open(file, force, context)?;
    let written = sink.write_all(&bytes).and_then(|()| sink.flush());
    written.map_err(|error| cannot_write(file, &error))?;
    drop(sink);
    let to_stdout = target.is_stdout();
    target.finish()?;
    let (crc32c, bytes) = (crc32c::crc32c(&bytes), bytes.len());
    let mut result = json!({
        "name": name, "stripe": stripe, "piece": piece, "bytes": bytes, "crc32c": crc32c,
    });
    if to_stdout {
        return Ok(Report::new("", result));
    }
    result["file"] = file.into();
    let text = format!("{file}: piece {piece} of stripe {stripe}, {}\n", size(bytes as u64));
    Ok(Report::new(text, result))
}

/// Returns the form of a file of this name: `raw` if it must have no header. Objects of bytes are
/// never NumPy arrays.
pub(crate) fn form_of(entry: &Entry, file: &str, raw: bool) -> Form {
    let wants_npy = !raw && is_npy(file);
    if wants_npy && entry.element != ElementType::Bytes { Form::Npy } else { Form::Raw }
}

fn words(form: Form) -> &'static str {
    match form {
        Form::Npy => "npy",
        Form::Raw => "raw",
    }
}

/// Returns which checks the bytes passed.
fn seen(entry: &Entry, is_partial: bool) -> &'static str {
    if is_partial {
        return "incomplete";
    }
    if entry.has_digest() { "digest is right" } else { "checksums are right" }
}
