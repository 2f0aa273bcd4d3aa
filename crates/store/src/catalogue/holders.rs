//! Number of drives that must hold an entry.
//!
//! It is a majority, or more: an object that survives the loss of most drives is found only if its
//! entry survives it too. Later entries of the name must be on as many drives, also that of its
//! removal, because a reader of few answers takes the newest entry among them for the newest of
//! all. Does no I/O.

use super::Entry;
use crate::array::Array;
use crate::error::Error;
use crate::error::NameError;

/// Returns the losses that the name of `entry` must survive from now on, if a majority of holders
/// does not suffice for them, else 0. `before` is the name's entry so far.
pub(super) fn survives(array: &Array, entry: &Entry, before: Option<&Entry>) -> u8 {
    let losses = entry.losses().max(before.map_or(0, Entry::losses));
    match array.quorum_of(losses) == array.quorum() {
        true => 0,
        false => u8::try_from(losses).expect("a code has at most 16 parity pieces"),
    }
}

/// Returns the number of drives that must hold this entry.
pub(crate) fn needed(array: &Array, entry: &Entry) -> usize {
    array.quorum_of(entry.losses()).write()
}

/// Checks that as many drives vote as must hold this entry.
///
/// # Errors
/// [`Error::Array`], or [`NameError::Writers`] if a majority would not suffice.
pub(super) fn require(array: &Array, entry: &Entry) -> Result<(), Error> {
    let (needed, up) = (needed(array, entry), array.voters().len());
    if needed == array.quorum().write() {
        return Ok(array.require(needed)?);
    }
    if up >= needed {
        return Ok(());
    }
    let (name, losses, drives) = (entry.name.clone(), entry.losses(), array.size());
    Err(Error::Name(NameError::Writers { name, losses, needed, drives, up, down: array.down() }))
}

/// Checks that enough drives hold the entry, of which `count` acknowledged it.
///
/// # Errors
/// The first of `failures`, or as [`require`].
pub(super) fn enough(
    array: &Array,
    entry: &Entry,
    count: usize,
    failures: &mut Vec<Error>,
) -> Result<(), Error> {
    match count >= needed(array, entry) {
        true => Ok(()),
        false if failures.is_empty() => require(array, entry),
        false => Err(failures.remove(0)),
    }
}
