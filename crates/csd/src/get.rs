//! `csd get`: writes an object to a file, in the form that `put` read.
//!
//! An object of numbers gets NumPy's header if the name of the file ends in `.npy`. Otherwise the
//! file has the object's bytes.

use std::io;
use std::sync::Arc;

use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object::{self, Error, Form};

use crate::cli;
use crate::context::Context;
use crate::object::{describe, is_npy};
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::target::Target;
use crate::units::size;

/// Fetches an object.
pub(crate) fn get(options: cli::Get, context: &Context) -> Result<Report, Failure> {
    let name = options.name;
    let last = name.rsplit('/').next().unwrap_or("").to_owned();
    let default = options.file.is_none();
    let file = options.file.unwrap_or_else(|| last.clone());
    if default && matches!(file.as_str(), "" | "." | ".." | "-") {
        return Err(Failure::usage(format!("{name:?} gives no file name: say one")));
    }
    let (target, sink) = Target::open(&file, options.force)?;
    if target.is_stdout() && context.json {
        return Err(Failure::usage("--json and an object cannot both go to standard output"));
    }
    let named = if target.is_stdout() { last } else { file.clone() };
    let wants_npy = !options.raw && is_npy(&named);
    let bar = Bar::new(context, &name, None);
    let (progress, total) = (Arc::clone(&bar.progress), bar.total());
    let got = context.with_array(async move |array: &Array| {
        let entry = object::lookup(array, &name).await?;
        let form = form(&entry, wants_npy);
        total.set(entry.bytes);
        match object::get(array, entry, form, sink, &progress).await {
            Ok((entry, _sink)) => Ok(Some((entry, form))),
            // A reader that closed its end needs no more bytes; this is not a failure.
            Err(Error::Write { source }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(None),
            Err(error) => Err(error.into()),
        }
    });
    drop(bar);
    let Some((entry, form)) = got? else { return Ok(Report::default()) };
    let (mut result, to_stdout) = (describe(&entry), target.is_stdout());
    target.finish()?;
    result["form"] = words(form).into();
    if to_stdout {
        return Ok(Report::new("", result));
    }
    result["file"] = file.as_str().into();
    let kind = match (form, entry.element) {
        (Form::Npy, element) => format!("{element} as .npy"),
        (Form::Raw, ElementType::Bytes) => "bytes".to_owned(),
        (Form::Raw, element) => format!("raw {element}"),
    };
    let text = format!("{file}: {}, {kind}, {}\n", size(entry.bytes), seen(&entry));
    Ok(Report::new(text, result))
}

/// Returns the file's form. Objects of bytes are never NumPy arrays.
fn form(entry: &Entry, wants_npy: bool) -> Form {
    if wants_npy && entry.element != ElementType::Bytes { Form::Npy } else { Form::Raw }
}

fn words(form: Form) -> &'static str {
    match form {
        Form::Npy => "npy",
        Form::Raw => "raw",
    }
}

/// Returns which checks the bytes passed.
fn seen(entry: &Entry) -> &'static str {
    if entry.has_digest() { "digest is right" } else { "checksums are right" }
}
