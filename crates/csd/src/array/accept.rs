//! `csd array rebuild --accept` and `--accept-name`: what is left of the catalogue is taken for
//! true.
//!
//! Writers with this array file are excluded. Invariants: nothing is accepted without its option,
//! and only while every drive is up, so that none can come back with more.

use csd_store::array::{Array, DriveIndex, Plan};
use csd_store::catalogue::rebuild::{self, Rebuilt};
use csd_store::catalogue::{self, Entry};
use serde_json::{Value, json};

use super::Local;
use super::lock::{Lock, Writers};
use crate::context::{Context, with_plan};
use crate::report::{Failure, Report};

/// Gives votes to the drives that have none, from those that vote, however few. Returns them as in
/// JSON output, and drives that are still down or without a vote.
pub(super) fn votes(
    names: &[String],
    context: &Context,
) -> Result<(Vec<Value>, Vec<String>), Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let _writers = Writers::exclude(path)?;
    let plan = Plan::new(&Local::load(path)?.file);
    let mut drives = Vec::new();
    loop {
        // Each that has its vote back is a witness for the next one.
        let names = names.to_vec();
        let next = with_plan(&plan, context.options()?, async move |array: &Array| {
            let without = wanted(array, &names)?.into_iter();
            let next = without.into_iter().find(|index| array.slots()[*index].vote().is_err());
            let Some(index) = next else { return Ok(Err(array.down())) };
            let done = rebuild::rebuild_from_few(array, index).await?;
            Ok(Ok(describe(array, index, done)))
        })?;
        match next {
            Ok(drive) => drives.push(drive),
            Err(down) => return Ok((drives, down)),
        }
    }
}

/// Accepts the highest copies of names that can be read.
pub(super) fn names(names: &[String], context: &Context) -> Result<Report, Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let _writers = Writers::exclude(path)?;
    let plan = Plan::new(&Local::load(path)?.file);
    let names = names.to_vec();
    let accepted = with_plan(&plan, context.options()?, async move |array: &Array| {
        let mut accepted = Vec::new();
        for name in &names {
            let key = catalogue::key_of_words(name).unwrap_or_else(|| catalogue::key(name));
            accepted.push(catalogue::accept(array, &key, name).await?);
        }
        Ok(accepted)
    })?;
    let line =
        |entry: &Entry| format!("{}: accepted: {}\n", entry.name, catalogue::in_words(entry));
    let text: String = accepted.iter().map(line).collect();
    let accepted = accepted.iter().map(|entry| json!({ "name": entry.name, "epoch": entry.epoch }));
    Ok(Report::new(text, json!({ "drives": [], "accepted": accepted.collect::<Vec<Value>>() })))
}

/// Adds to a failure of a rebuild what the drives that vote could go on with, if they are too few.
pub(crate) fn advised(array: &Array, failure: Failure) -> Failure {
    let (voters, slots) = (array.voters(), array.slots());
    let without = slots.iter().filter(|slot| slot.drive().is_ok() && slot.vote().is_err()).count();
    if voters.is_empty() || without == 0 || voters.len() >= array.quorum().witnesses() {
        return failure;
    }
    let names: Vec<&str> = voters.iter().map(|drive| drive.name.as_str()).collect();
    let message = format!(
        "{}; if no drive that knows more can be brought back, `csd array rebuild --accept` goes on \
         with what {} know: names and changes that only other drives knew are lost, and a removed \
         name may come back",
        failure.message,
        names.join(", ")
    );
    Failure { message, ..failure }
}

/// Returns the indices of the drives to rebuild.
pub(super) fn wanted(array: &Array, names: &[String]) -> Result<Vec<DriveIndex>, Failure> {
    let slots = || DriveIndex::each(array.slots());
    if names.is_empty() {
        let without = slots().filter(|(_, slot)| slot.drive().is_ok() && slot.vote().is_err());
        return Ok(without.map(|(index, _)| index).collect());
    }
    let place = |name: &String| {
        let found = slots().find(|(_, slot)| slot.name == *name);
        let unknown = || Failure::usage(format!("the array has no drive {name:?}"));
        found.map(|(index, _)| index).ok_or_else(unknown)
    };
    names.iter().map(place).collect()
}

/// Describes a rebuilt drive for JSON output.
pub(super) fn describe(array: &Array, index: DriveIndex, done: Rebuilt) -> Value {
    let name = &array.slots()[index].name;
    json!({ "name": name, "names": done.names, "stored": done.stored })
}
