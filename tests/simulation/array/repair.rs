//! Repairs of the hosts, and their rule: success leaves every piece on the media.

use std::cell::Cell;
use std::rc::Rc;

use csd_reactor::random_u64;
use csd_store::array::{Array, Guards};
use csd_store::catalogue::{Entry, ObjectId};
use csd_store::error::NameError;
use csd_store::object::{self, Error};
use csd_store::repair::{self, Limits, On, Repaired};

use super::history::Told;
use super::host::{Known, refused};
use super::listed;
use super::pieces::Sound;

/// Returns true if repairs do not hide that a guard is off. They also bring entries back that too
/// few drives hold.
pub fn hides_nothing(guards: Guards) -> bool {
    guards.fence && guards.slots
}

/// Returns the limits of a repair at any rate, without a stop or a callback.
pub fn no_limits(on: On) -> Limits {
    let stop = Rc::new(Cell::new(false));
    let (total, progress) = (Rc::new(|_| {}), object::Progress::none());
    Limits { on, bytes_per_s: None, stop, total, progress }
}

async fn run(array: &Array, entries: &[Entry], known: &Known) -> Option<Repaired> {
    let on = if random_u64().is_multiple_of(3) { On::Host } else { On::Drives };
    let found = repair::repair(array, entries, &no_limits(on)).await;
    known.borrow_mut().rebuilt_pieces += found.rebuilt;
    known.borrow_mut().by_drives += found.by_drives;
    // An object that was not repaired is as one whose repair did not come to its end.
    Some(found).filter(|found| found.failed.is_empty())
}

/// Repairs one object, and looks at the media if no piece is said to be missing.
pub async fn one(array: &Array, name: &str, known: &Known) -> Told {
    let losses = known.borrow().losses;
    let entry = match object::lookup(array, name).await {
        Ok(entry) => entry,
        Err(error) => return refused(&error),
    };
    let id = entry.id;
    let Some(found) = run(array, &[entry], known).await else { return Told::Unknown };
    match (found.is_whole(), found.objects) {
        (true, 1) => {}
        // It was removed, or pieces are missing, and the host knows.
        (true, 0) => return Told::Unknown,
        _ => return Told::Exists,
    }
    known.borrow_mut().repaired += 1;
    if let Some(violation) = look(array, (name, id), known, losses).await {
        known.borrow_mut().history.violations.push(violation);
    }
    Told::Done
}

/// Compares the media with a repair's success; `None` if all pieces are there, or pieces were lost
/// or the object removed or moved since.
async fn look(
    array: &Array,
    (name, id): (&str, ObjectId),
    known: &Known,
    losses: u64,
) -> Option<String> {
    let entry = object::lookup(array, name).await.ok().filter(|entry| entry.id == id)?;
    let (_, parity) = entry.protected()?;
    let sound = Sound::at_rest(&known.borrow().media_at_rest(), &entry)?;
    let now = object::lookup(array, name).await.ok()?;
    let is_full = sound.is_full() && parity.missing.count() == 0;
    let is_settled = now == entry && known.borrow().losses == losses;
    (is_settled && !is_full).then(|| format!("{name} was repaired, and lacks pieces"))
}

/// Repairs all objects while nothing else happens. Returns false if a drive cannot be reached.
pub async fn all(array: &Array, known: &Known) -> bool {
    let Ok(listed) = object::list(array).await else { return false };
    let (mut before, media) = (Vec::new(), known.borrow().media_at_rest());
    for entry in listed.sealed.iter().filter(|entry| entry.protected().is_some()) {
        let sound = Sound::at_rest(&media, entry).expect("it is protected");
        before.push((entry.name.clone(), sound.is_enough()));
    }
    let Some(found) = run(array, &listed.sealed, known).await else { return false };
    let mut after = Vec::new();
    for (name, is_enough) in before {
        match object::lookup(array, &name).await {
            Ok(entry) => after.push((name, is_enough, entry)),
            Err(Error::Name(NameError::Missing { .. })) => {}
            Err(_) => return false,
        }
    }
    let media = known.borrow().media_at_rest();
    for (name, is_enough, entry) in after {
        let sound = Sound::at_rest(&media, &entry).expect("it is protected");
        let is_missing = found.missing.iter().any(|missing| missing.object == name);
        if sound.is_full() == is_missing || (is_enough && is_missing) {
            let text = format!("{name}, {is_enough}, was repaired at last: {found:?}");
            known.borrow_mut().history.violations.push(text);
        }
        let (wrong, named) = listed::look(&media, &entry, &sound);
        known.borrow_mut().history.violations.extend(wrong);
        known.borrow_mut().listed += named;
    }
    true
}
