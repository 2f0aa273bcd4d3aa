//! `csd export`: objects as a tar, each as the file that `csd get` writes.
//!
//! Invariant: the tar appears once it is whole; an object that cannot be read fails the command, or
//! with `--partial` is left out as a whole.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object::{self, Error, Form, GetOptions, Got, Progress, Sink};
use csd_store::source::npy_header;

use super::about;
use super::download::{off_core, path_of};
use super::listing;
use super::tar_writer::{self, END};
use crate::cli::files::Export;
use crate::clock::unix_s;
use crate::context::Context;
use crate::get::form_of;
use crate::interruptible::Interruptible;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::Interrupt;
use crate::tally::Tally;
use crate::target::{Target, cannot_write};
use crate::units::hex;

/// Writes objects to a tar.
pub(crate) fn export(options: &Export, context: &Context) -> Result<Report, Failure> {
    let interrupt = Interrupt::watch()?;
    let (target, sink) = Target::open(&options.file, options.force)?;
    let to_stdout = target.is_stdout();
    if to_stdout && context.json {
        return Err(Failure::usage("--json and a tar cannot both go to standard output"));
    }
    let prefix = options.prefix.clone().unwrap_or_default();
    let bar = Bar::new(context, "export", None);
    let (total, progress) = (bar.total(), bar.progress.clone());
    let sink: Sink = Box::new(Interruptible::new(sink, &interrupt.asked));
    let (file, asked) = (options.file.clone(), Arc::clone(&interrupt.asked));
    let (partial, mut tally) = (options.partial, Tally::over(context, &bar));
    let written = context.with_array(async move |array: &Array| {
        let mut entries = listing::under(array, &prefix).await?;
        tally.warn(array.down());
        if partial {
            entries = readable(array, entries, &asked, &mut tally).await;
        }
        total.set(entries.iter().map(|entry| entry.bytes).sum());
        let mut sink = sink;
        for entry in &entries {
            let member = member(array, entry, sink, &progress).await;
            let (back, more) = member.map_err(|failure| match asked.load(Relaxed) {
                true => Failure::run(format!("interrupted: {file} is not written")),
                false => failure,
            })?;
            sink = back;
            tally.warn(more);
        }
        drop(write(sink, END.to_vec()).await?);
        Ok((entries, tally))
    });
    drop(bar);
    let (entries, tally) = written?;
    target.finish()?;
    let text = format!("{}: {}\n", options.file, listing::amount(&entries));
    let text = if to_stdout { String::new() } else { text };
    let result = context.for_json(|| {
        let mut result = listing::result(&entries);
        result["file"] = options.file.as_str().into();
        result
    });
    tally.finish(text, result)
}

/// Reads each object once, and returns the entries of those that can be read. The others are left
/// out before their headers are in the tar.
async fn readable(
    array: &Array,
    entries: Vec<Entry>,
    asked: &Arc<AtomicBool>,
    tally: &mut Tally,
) -> Vec<Entry> {
    let mut readable = Vec::with_capacity(entries.len());
    for entry in entries {
        let sink = Box::new(Interruptible::new(io::sink(), asked));
        let whole = GetOptions::whole(Form::Raw);
        let read = object::get(array, entry.clone(), whole, sink, &Progress::none()).await;
        // An interrupted export ends at its first object.
        match read.err().filter(|_| !asked.load(Relaxed)) {
            Some(error) => tally.skip(&entry.name, &Failure::from(error).message),
            None => readable.push(entry),
        }
    }
    readable
}

/// Writes an object as a member; returns the sink and warnings.
async fn member(
    array: &Array,
    entry: &Entry,
    sink: Sink,
    progress: &Progress,
) -> Result<(Sink, Vec<String>), Failure> {
    let path = path(entry);
    let form = form_of(entry, &entry.name, false);
    let header = match form {
        Form::Npy => npy_header(entry.element, &entry.shape).unwrap_or_default(),
        Form::Raw => Vec::new(),
    };
    let bytes = entry.bytes + header.len() as u64;
    let modified_s = match entry.stored_unix_ms {
        0 => unix_s(),
        stored => stored / 1000,
    };
    let headers = tar_writer::headers(&path, bytes, modified_s, &about::comment(entry));
    let sink = write(sink, headers).await?;
    let got = object::get(array, entry.clone(), GetOptions::whole(form), sink, progress).await;
    let Got { sink, warnings, .. } = got.map_err(|error| match error {
        Error::Write { source } => cannot_write("the tar", &source),
        error => error.into(),
    })?;
    let sink = write(sink, vec![0; tar_writer::padding(bytes)]).await?;
    Ok((sink, warnings))
}

/// Returns the path of an object's member: its name, or its identifier if the name is no path.
fn path(entry: &Entry) -> String {
    match path_of("", &entry.name) {
        Ok(_) => entry.name.clone(),
        Err(_) => format!("no-path/{}", hex(&entry.id.0)),
    }
}

async fn write(mut sink: Sink, bytes: Vec<u8>) -> Result<Sink, Failure> {
    off_core(move || {
        let written = sink.write_all(&bytes).and_then(|()| sink.flush());
        written.map_err(|error| cannot_write("the tar", &error))?;
        Ok(sink)
    })
    .await
}
