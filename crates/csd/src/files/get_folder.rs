//! `csd get -r`: the objects of a folder, each as a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::in_flight::{in_flight, share};
use serde_json::json;

use super::download::{Downloads, path_of};
use super::listing::{self, as_folder, nothing};
use crate::cli;
use crate::context::Context;
use crate::object::describe;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::Interrupt;
use crate::tally::Tally;
use crate::units::{counted, size};

/// Writes the objects of a folder to files.
pub(crate) fn get_folder(options: cli::Get, context: &Context) -> Result<Report, Failure> {
    let prefix = as_folder(&options.name);
    let folder = folder(&prefix, options.file)?;
    let interrupt = Interrupt::watch()?;
    let bar = Bar::new(context, &prefix, None);
    let (total, progress) = (bar.total(), bar.progress.clone());
    let mut tally = Tally::over(context, &bar);
    let (asked, to, of) = (Arc::clone(&interrupt.asked), folder.clone(), prefix.clone());
    let (force, raw) = (options.force, options.raw);
    let (done, tally) = context.with_array(async move |array: &Array| {
        let entries = listing::under(array, &of).await?;
        total.set(entries.iter().map(|entry| entry.bytes).sum());
        tally.warn(array.down());
        let downloads = Downloads { array, raw, asked: Arc::clone(&asked), progress };
        let (downloads, mut written) = (&downloads, Vec::new());
        let mut wanted = Vec::new();
        for entry in entries {
            match path_of(&to, &entry.name[of.len()..]) {
                Ok(path) => wanted.push((entry, path)),
                Err(why) => tally.skip(&entry.name, why),
            }
        }
        let mut waiting = wanted.into_iter();
        let one = |(entry, path): (Entry, PathBuf)| {
            let share = share(entry.bytes);
            let download =
                async move { (downloads.one(entry.clone(), &path, force).await, entry, path) };
            (share, download)
        };
        let next = || if asked.load(Relaxed) { None } else { waiting.next().map(one) };
        in_flight(next, |(done, entry, path)| match done {
            Ok(warnings) => {
                tally.done();
                tally.warn(warnings);
                written.push((entry, path));
            }
            Err(_) if asked.load(Relaxed) => tally.leave(&entry.name),
            Err(failure) => tally.fail(&entry.name, failure),
        })
        .await;
        waiting.for_each(|(entry, _)| tally.leave(&entry.name));
        Ok((written, tally))
    })?;
    drop(bar);
    let bytes = done.iter().map(|(entry, _)| entry.bytes).sum();
    let text = match done.is_empty() && tally.is_clean() {
        true => nothing(&prefix),
        false => format!(
            "{folder}: {}, {}, from {prefix:?}\n",
            counted(done.len() as u64, "file"),
            size(bytes)
        ),
    };
    let object = |(entry, path): &(Entry, PathBuf)| {
        let mut object = describe(entry);
        object["file"] = path.display().to_string().into();
        object
    };
    let objects = || json!({ "objects": done.iter().map(object).collect::<Vec<_>>() });
    tally.finish(text, context.for_json(objects))
}

/// Returns the folder for the files: the one that is named, or the last part of the prefix.
fn folder(prefix: &str, named: Option<String>) -> Result<String, Failure> {
    let last = prefix.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    match named {
        Some(folder) if folder == "-" => {
            let why = "-r writes files: `csd export -` writes objects to standard output";
            Err(Failure::usage(why))
        }
        Some(folder) if Path::new(&folder).is_file() => {
            Err(Failure::usage(format!("{folder} is no folder")))
        }
        Some(folder) => Ok(folder),
        None if matches!(last, "" | "." | "..") => {
            Err(Failure::usage(format!("{prefix:?} gives no folder name: say one")))
        }
        None => Ok(last.to_owned()),
    }
}
