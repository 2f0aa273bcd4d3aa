//! `csd cp` and `csd mv`: an object under another name.
//!
//! The drives copy it. A move is a copy and a removal, because the drives keep chunks under the
//! identifier of one object, and two names of one object would let the removal of one delete the
//! data of both. Invariant: the former name goes only once the new one is whole.

use std::cell::Cell;
use std::rc::Rc;

use csd_store::array::Array;
use csd_store::error::NameError;
use csd_store::object::{self, Duplicated, Error};
use serde_json::Value;

use crate::cli::files::Copy;
use crate::context::Context;
use crate::object::describe;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::stop_flag;
use crate::units::{counted, grouped, size};

/// Copies an object.
pub(crate) fn cp(options: Copy, context: &Context) -> Result<Report, Failure> {
    copy(options, false, context)
}

/// Renames an object.
pub(crate) fn mv(options: Copy, context: &Context) -> Result<Report, Failure> {
    copy(options, true, context)
}

fn copy(
    Copy { old, new, force }: Copy,
    removes: bool,
    context: &Context,
) -> Result<Report, Failure> {
    let new = target(&old, new);
    let bar = Bar::new(context, &new, None);
    let (progress, total, names) = (bar.progress.clone(), bar.total(), (old.clone(), new.clone()));
    let (done, removed) = context.with_array_to_write(async move |array: &Array| {
        let (old, new) = &names;
        total.set(object::lookup(array, old).await?.bytes);
        let stop: Rc<Cell<bool>> = stop_flag();
        let done = object::duplicate(array, (old, new), force, &progress, &stop).await;
        let done = done.map_err(|error| refused(error, old, new))?;
        let removed = match removes {
            true => Some(object::remove_this(array, &done.original).await),
            false => None,
        };
        Ok((done, removed))
    })?;
    drop(bar);
    let mut warnings = done.stored.warnings.clone();
    match removed {
        None => {}
        Some(Ok(more)) => warnings.extend(more),
        Some(Err(error)) => {
            let failure = Failure::from(error);
            let message = format!("{new:?} is whole, and {old:?} is still there: ");
            return Err(Failure { message: message + &failure.message, ..failure });
        }
    }
    warnings.sort();
    warnings.dedup();
    Ok(Report::new(text(&done, removes), result(&done)).with_warnings(warnings))
}

/// Returns the name of the copy: a name that ends in `/` is a folder.
fn target(old: &str, new: String) -> String {
    let last = old.rsplit('/').next().unwrap_or(old);
    if new.ends_with('/') { new + last } else { new }
}

fn refused(error: Error, old: &str, new: &str) -> Failure {
    match error {
        Error::Name(NameError::Exists { name }) => Failure::usage(format!(
            "object {name:?} exists: name another one, or use --force to replace it"
        )),
        Error::Stopped => {
            Failure::run(format!("interrupted: {old:?} and {new:?} are as they were before"))
        }
        error => error.into(),
    }
}

fn text(done: &Duplicated, removes: bool) -> String {
    let (entry, what) = (&done.stored.entry, if removes { "moved" } else { "copied" });
    format!(
        "{}: {what} from {}, {}, {} of {} by drives, {} crossed to or from this host\n",
        entry.name,
        done.original.name,
        size(entry.bytes),
        grouped(done.by_drives),
        counted(done.chunks, "chunk"),
        size(done.host_crossed_bytes)
    )
}

fn result(done: &Duplicated) -> Value {
    let mut result = describe(&done.stored.entry);
    result["from"] = done.original.name.as_str().into();
    result["chunks_by_drives"] = done.by_drives.into();
    result["host_crossed_bytes"] = done.host_crossed_bytes.into();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_ends_in_a_slash_is_a_folder() {
        for (old, new, name) in [("a/b", "c", "c"), ("a/b", "c/", "c/b"), ("b", "c/d/", "c/d/b")] {
            assert_eq!(target(old, new.to_owned()), name);
        }
    }
}
