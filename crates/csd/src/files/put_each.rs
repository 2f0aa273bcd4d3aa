//! `csd put --each`: files of any folders, each as an object under its own name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use csd_store::array::Array;
use csd_store::object;

use super::listing::result;
use super::upload::{Named, Uploads};
use crate::cli;
use crate::context::Context;
use crate::object::stored_line;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::Interrupt;
use crate::tally::Tally;

/// Stores files.
pub(crate) fn put_each(options: cli::Put, context: &Context) -> Result<Report, Failure> {
    let interrupt = Interrupt::watch()?;
    let bar = Bar::new(context, "put", None);
    let mut tally = Tally::over(context, &bar).of(options.words.len());
    let files = named(&options.words, &mut tally);
    bar.total().set(files.iter().map(|file| file.bytes).sum());
    let (asked, progress) = (Arc::clone(&interrupt.asked), bar.progress.clone());
    let align = options.arrange.align.clone();
    let (entries, tally) = context.with_array_to_write(async move |array: &Array| {
        let align = match align {
            Some(name) => Some(object::lookup(array, &name).await?),
            None => None,
        };
        let uploads = Uploads { array, options: Arc::new(options), asked, progress, align };
        let entries = uploads.all(files, &mut tally, Some(stored_line)).await;
        Ok((entries, tally))
    })?;
    drop(bar);
    tally.finish(String::new(), context.for_json(|| result(&entries)))
}

/// Returns the files that have a name of their own.
fn named(paths: &[String], tally: &mut Tally) -> Vec<Named> {
    let (mut files, mut names) = (Vec::new(), BTreeSet::new());
    for path in paths {
        let last = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
        let why = match last {
            Some(name) if path != "-" && names.insert(name.clone()) => {
                let bytes = fs::metadata(path).map_or(0, |file| file.len());
                files.push(Named { path: path.clone(), name, bytes });
                continue;
            }
            Some(name) if path != "-" => {
                format!("another of these files is called {name:?}, too: put it under another name")
            }
            _ => "an object from standard input needs a name".to_owned(),
        };
        tally.fail(path, Failure::usage(why));
    }
    files
}
