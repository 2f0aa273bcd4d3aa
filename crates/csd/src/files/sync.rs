//! `csd sync`: makes a folder and the objects of a prefix the same, in one direction.
//!
//! Files and objects that are the same already are not sent, so that an interrupted sync goes on
//! when it is run again.
//!
//! Invariants: nothing is deleted without `--delete` and a yes; nothing is deleted because it could
//! not be read, or because the other side is empty.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use serde_json::json;

use super::listing::{self, as_folder};
use super::sync_work::{Direction, Extra, Pair, Work};
use super::walk::{LeftOut, Walked, walk};
use crate::cli::files::Sync;
use crate::confirm::confirm;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::Interrupt;
use crate::tally::Tally;
use crate::units::{counted, grouped};

/// Beginning of the word that names objects.
const OBJECTS: &str = "csd:";

/// Folder and prefix, and the direction between them.
struct Sides {
    direction: Direction,
    folder: String,
    prefix: String,
}

/// Makes both sides the same.
pub(crate) fn sync(options: &Sync, context: &Context) -> Result<Report, Failure> {
    let sides = sides(&options.from, &options.to)?;
    let prefix = sides.prefix.clone();
    let (entries, down) = context.with_array(async move |array: &Array| {
        Ok((listing::under(array, &prefix).await?, array.down()))
    })?;
    let walked = match sides.direction {
        Direction::ToObjects => walk(&sides.folder, &sides.prefix)?,
        // The folder may not be there yet.
        Direction::ToFiles if Path::new(&sides.folder).exists() => {
            walk(&sides.folder, &sides.prefix)?
        }
        Direction::ToFiles => Walked::default(),
    };
    let deleted = match options.delete {
        true => to_delete(&sides, &entries, &walked)?,
        false => Vec::new(),
    };
    if !deleted.is_empty() && !options.dry_run && !options.yes {
        ask(&sides, &deleted)?;
    }
    let interrupt = Interrupt::watch()?;
    let bar = Bar::new(context, "sync", None);
    let mut tally = Tally::over(context, &bar);
    tally.warn(down);
    let pairs = pairs(&sides, entries, walked, &mut tally);
    bar.total().set(pairs.iter().map(Pair::bytes).sum());
    let work = Work {
        direction: sides.direction,
        prefix: sides.prefix,
        protect: options.protect,
        dry_run: options.dry_run,
        prints: !context.json && !context.quiet,
        asked: Arc::clone(&interrupt.asked),
        progress: bar.progress.clone(),
        above: bar.above(),
    };
    let run = async move |array: &Array| Ok(work.run(array, pairs, deleted, tally).await);
    let (done, tally) = match sides.direction {
        Direction::ToObjects => context.with_array_to_write(run)?,
        Direction::ToFiles => context.with_array(run)?,
    };
    drop(bar);
    let would = if options.dry_run { "would be " } else { "" };
    let count = |names: &[String]| grouped(names.len() as u64);
    let text = format!(
        "{would}{} new, {} changed, {} deleted; {} equal\n",
        count(&done.new),
        count(&done.changed),
        count(&done.deleted),
        grouped(done.equal)
    );
    let result = json!({
        "new": done.new,
        "changed": done.changed,
        "deleted": done.deleted,
        "equal": done.equal,
        "dry_run": options.dry_run,
    });
    tally.finish(text, result)
}

/// Returns which of two words names objects.
fn sides(from: &str, to: &str) -> Result<Sides, Failure> {
    let (direction, folder, prefix) = match (from.strip_prefix(OBJECTS), to.strip_prefix(OBJECTS)) {
        (None, Some(prefix)) => (Direction::ToObjects, from, prefix),
        (Some(prefix), None) => (Direction::ToFiles, to, prefix),
        _ => {
            let why = "one of the two words begins with `csd:` and names objects, as in `csd sync \
                       data csd:climate/` or `csd sync csd:climate/ data`; a folder of such a name \
                       is `./csd:...`";
            return Err(Failure::usage(why));
        }
    };
    Ok(Sides { direction, folder: folder.to_owned(), prefix: as_folder(prefix) })
}

/// Returns what is on the side that changes and not on the other.
fn to_delete(sides: &Sides, entries: &[Entry], walked: &Walked) -> Result<Vec<Extra>, Failure> {
    let name_of = |entry: &Entry| entry.name[sides.prefix.len()..].to_owned();
    let (is_empty, extra): (bool, Vec<Extra>) = match sides.direction {
        Direction::ToObjects => {
            let local: BTreeSet<&str> =
                walked.files.iter().map(|file| file.name.as_str()).collect();
            let extra =
                entries.iter().map(|entry| Extra::Object(name_of(entry), entry.clone().into()));
            (local.is_empty(), extra.filter(|extra| !local.contains(extra.name())).collect())
        }
        Direction::ToFiles => {
            let objects: BTreeSet<String> = entries.iter().map(name_of).collect();
            let extra = walked.files.iter().cloned().map(Extra::File);
            (objects.is_empty(), extra.filter(|extra| !objects.contains(extra.name())).collect())
        }
    };
    let is_read = |extra: &Extra| !is_below(extra.name(), &walked.left_out);
    let extra: Vec<Extra> = extra.into_iter().filter(is_read).collect();
    if is_empty && !extra.is_empty() {
        let from = match sides.direction {
            Direction::ToObjects => format!("folder {} has no files", sides.folder),
            Direction::ToFiles => format!("there are no objects under {:?}", sides.prefix),
        };
        let why = "--delete would delete everything on the other side: `csd rm` or `rm` does that";
        return Err(Failure::usage(format!("{from}: {why}")));
    }
    Ok(extra)
}

/// Returns true if a name is, or is below, something that was not read.
fn is_below(name: &str, left_out: &[LeftOut]) -> bool {
    left_out.iter().filter_map(|left| left.name.as_deref()).any(|unread| {
        name.strip_prefix(unread).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

fn ask(sides: &Sides, deleted: &[Extra]) -> Result<(), Failure> {
    let what = match sides.direction {
        Direction::ToObjects => {
            format!("{} under {:?}", counted(deleted.len() as u64, "object"), sides.prefix)
        }
        Direction::ToFiles => {
            format!("{} below {}", counted(deleted.len() as u64, "file"), sides.folder)
        }
    };
    confirm(
        &format!("delete {what}, such as {:?}?", deleted[0].name()),
        &format!("--delete deletes {what}"),
        "nothing was deleted, nothing was sent",
    )
}

/// Returns what is on the side that is read, each with what is on the other.
fn pairs(sides: &Sides, entries: Vec<Entry>, walked: Walked, tally: &mut Tally) -> Vec<Pair> {
    match sides.direction {
        Direction::ToObjects => {
            walked.left_out.iter().for_each(|left| tally.skip(&left.path, &left.why));
            Pair::of_files(walked.files, entries, &sides.prefix)
        }
        Direction::ToFiles => {
            let (pairs, refused) = Pair::of_objects(entries, &sides.folder, &sides.prefix);
            refused.iter().for_each(|(name, why)| tally.skip(name, why));
            pairs
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_names_objects() {
        let up = sides("data", "csd:p").unwrap();
        assert_eq!(
            (up.direction, &up.folder[..], &up.prefix[..]),
            (Direction::ToObjects, "data", "p/")
        );
        let down = sides("csd:", "./csd:x").unwrap();
        assert_eq!(
            (down.direction, &down.folder[..], &down.prefix[..]),
            (Direction::ToFiles, "./csd:x", "")
        );
        assert!(sides("data", "p/").is_err() && sides("csd:a", "csd:b").is_err());
    }

    #[test]
    fn what_was_not_read_protects_what_is_below_it() {
        let left = |name: &str| LeftOut {
            path: String::new(),
            name: Some(name.to_owned()),
            why: String::new(),
        };
        let all = [left("a/link"), left("b")];
        for (name, is) in [("a/link", true), ("a/link/x", true), ("a/linked", false), ("b", true)] {
            assert_eq!(is_below(name, &all), is, "{name}");
        }
    }
}
