//! `csd du`: sizes of objects by folder.
//!
//! Counts data as the objects have it, and their chunks, parity and units as the drives store them.

use std::collections::BTreeMap;

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::room;
use serde_json::{Value, json};

use super::listing::{self, nothing};
use crate::cli::files::Du;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::table::{Align, Table};
use crate::units::{grouped, size};

/// Sizes of some objects together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    objects: u64,
    bytes: u64,
    stored_bytes: u64,
}

impl Sum {
    fn add(&mut self, entry: &Entry) {
        self.objects += 1;
        self.bytes += entry.bytes;
        self.stored_bytes += room::of_object(entry);
    }

    fn describe(&self, folder: &str) -> Value {
        json!({
            "folder": folder,
            "objects": self.objects,
            "bytes": self.bytes,
            "stored_bytes": self.stored_bytes,
        })
    }
}

/// Shows the sizes of folders.
pub(crate) fn du(options: Du, context: &Context) -> Result<Report, Failure> {
    let prefix = options.prefix.unwrap_or_default();
    let of = prefix.clone();
    let (entries, warnings) = context.with_array(async move |array: &Array| {
        Ok((listing::under(array, &of).await?, array.down()))
    })?;
    let (mut total, mut folders) = (Sum::default(), BTreeMap::<&str, Sum>::new());
    for entry in &entries {
        total.add(entry);
        for folder in folders_of(&entry.name, &prefix, options.depth) {
            folders.entry(folder).or_default().add(entry);
        }
    }
    let mut table = Table::new(&[
        ("size", Align::Right),
        ("on drives", Align::Right),
        ("objects", Align::Right),
        ("folder", Align::Left),
    ]);
    let mut row = |sum: &Sum, name: &str| {
        let sizes = [size(sum.bytes), size(sum.stored_bytes), grouped(sum.objects)];
        table.row(sizes.into_iter().chain([name.to_owned()]).collect());
    };
    folders.iter().for_each(|(folder, sum)| row(sum, folder));
    row(&total, "total");
    let text = if entries.is_empty() { nothing(&prefix) } else { table.render() };
    let folders: Vec<Value> = folders.iter().map(|(folder, sum)| sum.describe(folder)).collect();
    let result = json!({ "folders": folders, "total": total.describe(&prefix) });
    Ok(Report::new(text, result).with_warnings(warnings))
}

/// Returns the folders that an object is in, from the outermost one that is longer than the prefix,
/// at most `depth` of them.
fn folders_of<'a>(
    name: &'a str,
    prefix: &str,
    depth: Option<usize>,
) -> impl Iterator<Item = &'a str> {
    let slashes = name.match_indices('/').map(|(at, _)| at + 1);
    let (from, end) = (prefix.len(), name.len());
    let inner = slashes.filter(move |at| *at > from && *at < end);
    inner.take(depth.unwrap_or(usize::MAX)).map(|at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_in_every_folder_of_its_name() {
        let of = |name, prefix, depth| folders_of(name, prefix, depth).collect::<Vec<_>>();
        assert_eq!(of("a/b/c", "", None), ["a/", "a/b/"]);
        assert_eq!(of("a/b/c", "", Some(1)), ["a/"]);
        assert_eq!(of("a/b/c", "a/", None), ["a/b/"]);
        assert_eq!(of("a/b/c", "a/b/c", None), [""; 0]);
        assert_eq!(of("ab", "a", None), [""; 0]);
        assert_eq!(of("d/", "", None), [""; 0]);
    }
}
