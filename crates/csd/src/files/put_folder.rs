//! `csd put -r`: the files below a folder, each as an object.

use std::path::Path;
use std::sync::Arc;

use csd_store::ElementType;
use csd_store::array::Array;
use csd_store::catalogue::Entry;

use super::listing::{as_folder, result};
use super::upload::{Named, Uploads};
use super::walk::{LocalFile, Walked, walk};
use crate::cli;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::Interrupt;
use crate::tally::Tally;
use crate::units::{counted, grouped, size};

/// Stores the files of a folder.
pub(crate) fn put_folder(options: cli::Put, context: &Context) -> Result<Report, Failure> {
    let (folder, prefix) = words(&options.words)?;
    let Walked { files, left_out } = walk(&folder, &prefix)?;
    let interrupt = Interrupt::watch()?;
    let bar = Bar::new(context, &prefix, Some(files.iter().map(|file| file.bytes).sum()));
    let mut tally = Tally::over(context, &bar);
    left_out.iter().for_each(|left| tally.skip(&left.path, &left.why));
    let (asked, progress) = (Arc::clone(&interrupt.asked), bar.progress.clone());
    let named = |file: LocalFile| {
        let LocalFile { path, name, bytes } = file;
        Named { name: format!("{prefix}{name}"), path, bytes }
    };
    let files: Vec<Named> = files.into_iter().map(named).collect();
    let (entries, tally) = context.with_array_to_write(async move |array: &Array| {
        let uploads = Uploads { array, options: Arc::new(options), asked, progress, align: None };
        let entries = uploads.all(files, &mut tally, None).await;
        Ok((entries, tally))
    })?;
    drop(bar);
    let result = context.for_json(|| result(&entries));
    tally.finish(text(&folder, &prefix, &entries), result)
}

/// Returns the folder and the prefix of the names.
fn words(words: &[String]) -> Result<(String, String), Failure> {
    match words {
        [folder] => match Path::new(folder).file_name() {
            Some(name) => Ok((folder.clone(), as_folder(&name.to_string_lossy()))),
            None => {
                let why = format!("{folder} gives no prefix for names: say `-r {folder} PREFIX/`");
                Err(Failure::usage(why))
            }
        },
        [folder, prefix] => Ok((folder.clone(), as_folder(prefix))),
        words => Err(Failure::usage(format!(
            "-r takes one folder and one prefix, and {} words are given",
            words.len()
        ))),
    }
}

fn text(folder: &str, prefix: &str, entries: &[Entry]) -> String {
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    let arrays = entries.iter().filter(|entry| entry.element != ElementType::Bytes).count();
    let plain = grouped((entries.len() - arrays) as u64);
    let types = match arrays {
        0 => "all of them as bytes".to_owned(),
        arrays => format!("{} as numbers, {plain} as bytes", grouped(arrays as u64)),
    };
    let stored = counted(entries.len() as u64, "file");
    format!("{folder}: {stored}, {}, stored under {prefix:?}: {types}\n", size(bytes))
}
