//! `csd rm -r`: removes every object whose name begins with a prefix, several at once.
//!
//! Invariant: what is removed was listed when the user was asked; an object that got one of the
//! names since stays.

use std::sync::atomic::Ordering::Relaxed;

use csd_store::array::Array;
use csd_store::catalogue::Entry;
use csd_store::in_flight::in_flight;
use csd_store::object;
use serde_json::json;

use super::listing::{amount, as_folder, under};
use crate::cli;
use crate::confirm::confirm;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::{Failure, Report};
use crate::runtime::Interrupt;
use crate::tally::Tally;

/// Removes the objects of folders.
pub(crate) fn remove_folder(options: &cli::Rm, context: &Context) -> Result<Report, Failure> {
    let prefixes: Vec<String> = options.names.iter().map(|name| as_folder(name)).collect();
    let wanted = prefixes.clone();
    let (entries, down) = context.with_array(async move |array: &Array| {
        let mut entries: Vec<Entry> = Vec::new();
        for prefix in &wanted {
            let found = under(array, prefix).await?;
            if found.is_empty() {
                let why = format!("no object's name begins with {prefix:?}: `csd ls` lists them");
                return Err(Failure::usage(why));
            }
            entries.extend(found);
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        Ok((entries, array.down()))
    })?;
    if !options.yes {
        let what = format!("{}, below {}", amount(&entries), of(&prefixes));
        let question = format!("remove {what}?");
        confirm(&question, &format!("this removes {what}"), "nothing was removed")?;
    }
    let interrupt = Interrupt::watch()?;
    let asked = std::sync::Arc::clone(&interrupt.asked);
    let bar = Bar::new(context, "rm", Some(entries.iter().map(|entry| entry.bytes).sum()));
    let mut tally = Tally::over(context, &bar);
    tally.warn(down);
    let progress = bar.progress.clone();
    let (removed, tally) = context.with_array_to_write(async move |array: &Array| {
        let (mut waiting, mut removed) = (entries.into_iter(), Vec::new());
        let one =
            |entry: Entry| (1, async move { (object::remove_this(array, &entry).await, entry) });
        let next = || if asked.load(Relaxed) { None } else { waiting.next().map(one) };
        in_flight(next, |(done, entry)| match done {
            Ok(warnings) => {
                tally.done();
                tally.warn(warnings);
                progress.add(entry.bytes);
                removed.push(entry);
            }
            Err(error) => tally.fail(&entry.name, error.into()),
        })
        .await;
        waiting.for_each(|entry| tally.leave(&entry.name));
        Ok((removed, tally))
    })?;
    drop(bar);
    let bytes: u64 = removed.iter().map(|entry| entry.bytes).sum();
    let text = format!("{}: {}, removed\n", of(&prefixes), amount(&removed));
    let names: Vec<String> = removed.into_iter().map(|entry| entry.name).collect();
    tally.finish(text, json!({ "removed": names, "bytes": bytes }))
}

/// Returns prefixes in words.
fn of(prefixes: &[String]) -> String {
    let shown = |prefix: &String| match prefix.as_str() {
        "" => "all names".to_owned(),
        prefix => format!("{prefix:?}"),
    };
    prefixes.iter().map(shown).collect::<Vec<_>>().join(", ")
}
