//! [`Downloads`]: objects that become files, several at once.
//!
//! Invariant: a file appears once it is whole, and what is interrupted leaves none.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use csd_reactor::{Class, compute_fn, random_u64};
use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::object::{self, Error, GetOptions, Got, Progress, Sink};

use crate::get::form_of;
use crate::interruptible::Interruptible;
use crate::report::Failure;
use crate::target::{Target, cannot_write};

/// Writes objects to files.
pub(crate) struct Downloads<'a> {
    pub(crate) array: &'a Array,
    /// True to write numbers without a header.
    pub(crate) raw: bool,
    /// Set by a signal.
    pub(crate) asked: Arc<AtomicBool>,
    pub(crate) progress: Progress,
}

impl Downloads<'_> {
    /// Writes an object to a file, whose folders are made if need be; overwrites one with `force`.
    /// Returns warnings.
    pub(crate) async fn one(
        &self,
        entry: Entry,
        path: &Path,
        force: bool,
    ) -> Result<Vec<String>, Failure> {
        let file = path.display().to_string();
        let (target, sink) = open(path, force).await?;
        let sink = Box::new(Interruptible::new(sink, &self.asked));
        let options = GetOptions::whole(form_of(&entry, &file, self.raw));
        match object::get(self.array, entry, options, sink, &self.progress).await {
            Ok(Got { warnings, sink, .. }) => {
                off_core(move || {
                    drop(sink);
                    target.finish()
                })
                .await?;
                Ok(warnings)
            }
            Err(Error::Write { source }) => Err(cannot_write(&file, &source)),
            Err(error) => Err(error.into()),
        }
    }
}

async fn open(path: &Path, force: bool) -> Result<(Target, Sink), Failure> {
    let (path, number) = (path.to_owned(), random_u64());
    off_core(move || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let made = fs::create_dir_all(folder);
            made.map_err(|error| Failure::os(folder.display(), &error))?;
        }
        Target::open_numbered(&path, force, number)
    })
    .await
}

/// Runs work that may block on the compute thread.
pub(crate) async fn off_core<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = compute_fn(Class::Foreground, 0, work).await;
    done.map_err(|_| Failure::from(Error::ComputeThread))?
}

/// Returns the file of an object in a folder; an error if its name cannot be a path there.
pub(crate) fn path_of(folder: &str, name: &str) -> Result<PathBuf, &'static str> {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    match name.split('/').all(is_part) {
        true => Ok(Path::new(folder).join(name)),
        false => Err("its name has a part that is empty, `.` or `..`, so it can be no file there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        assert_eq!(path_of("d", "a/b c").unwrap(), Path::new("d/a/b c"));
        assert_eq!(path_of("d", "...").unwrap(), Path::new("d/..."));
        for wrong in ["", "/", "/a", "a/", "a//b", "../a", "a/../b", "a/.", ".."] {
            assert!(path_of("d", wrong).is_err(), "{wrong}");
        }
    }
}
