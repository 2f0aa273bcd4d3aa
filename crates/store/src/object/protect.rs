//! Protect: parity for an object, so that it survives the loss of drives.
//!
//! A put of a spread object computes parity while it reads ([`super::encode`]). Any other object is
//! stored first; then each stripe is read from its drives, encoded on this host, and its parity is
//! stored. Data stays where it is, except that a whole object is spread.
//!
//! Before `csd protect` writes a piece, it writes an entry of the next epoch that announces the
//! parity; the names of the pieces carry this epoch. A second entry makes the parity count. An
//! interrupted command therefore leaves an object as readable as before, and pieces whose names no
//! later command uses; the next one, `csd rm` and `csd array reclaim` delete them. Invariant:
//! parity counts only if every stripe has one durable piece more than its data.

use csd_reactor::random_bytes;

use super::draft::{Stored, thinned};
use super::{Error, Progress, check_name, parity, remove, respread};
use crate::array::Array;
use crate::catalogue::{self, Entry, State};
use crate::layout::Scheme;

/// Protects the object `name`; does nothing if it is protected in this way.
///
/// # Errors
/// [`Error::Missing`]; [`Error::Protection`] if it is protected in another way, or the array has
/// too few drives; [`Error::Thin`]; [`Error::Overtaken`]; an error of the drives.
pub async fn protect(
    array: &Array,
    name: &str,
    scheme: Scheme,
    progress: &Progress,
) -> Result<Stored, Error> {
    check_name(name)?;
    let ground = catalogue::settle(array, name).await?;
    let sealed = ground.found.newest().filter(|entry| entry.state == State::Sealed);
    let Some(before) = sealed.cloned() else {
        return Err(Error::Missing { name: name.to_owned() });
    };
    let mut warnings = array.down();
    if let Some((protection, parity)) = before.protected() {
        let missing = parity.missing.count();
        if protection.scheme != scheme || missing > 0 {
            return Err(already(name, protection.scheme, missing));
        }
        let is_same = |(_, held): &&(usize, Option<Entry>)| held.as_ref() == Some(&before);
        let mut entry = before.clone();
        // The last entry of an interrupted command may be on too few drives.
        let holders = ground.found.answers.iter().filter(is_same).count();
        if holders < catalogue::holders_needed(array, &before) {
            random_bytes(&mut entry.writer);
            warnings.extend(catalogue::write(array, &mut entry, &ground).await?);
        }
        return Ok(Stored { entry, warnings });
    }
    let mut entry = before.clone();
    entry.protection = match before.whole {
        true => parity::plan(array, &respread::members(array, &before)?, Some(scheme))?,
        false => parity::plan(array, &before.members, Some(scheme))?,
    };
    parity::check_size(&entry)?;
    random_bytes(&mut entry.writer);
    warnings.extend(catalogue::write(array, &mut entry, &ground).await?);
    // Pieces of an interrupted command. Those on drives that are down are left to a reclaim.
    for left in before.ids().into_iter().filter(|id| *id != before.id) {
        let _left = remove::sweep(array, left).await;
    }
    let begun = entry.clone();
    let encoded = match before.whole {
        true => respread::spread(array, &mut entry, progress).await,
        false => parity::encode(array, &mut entry, progress).await,
    };
    let sealed = match encoded {
        Ok(()) => seal(array, &begun, &mut entry).await,
        Err(error) => Err(error),
    };
    match sealed {
        Ok(more) => {
            warnings.extend(more);
            if entry.id != begun.id
                && let Err(error) = remove::sweep(array, begun.id).await
            {
                warnings.push(format!("its former chunks are not all deleted: {error}"));
            }
            warnings.extend(thinned(&entry));
            Ok(Stored { entry, warnings })
        }
        Err(error) => {
            // The user must see the first error, not one of the clean-up.
            let _cleaned = withdraw(array, &begun, &before).await;
            Err(error)
        }
    }
}

fn already(name: &str, scheme: Scheme, missing: u64) -> Error {
    let why = match missing {
        0 => format!("object {name:?} is protected by {scheme} already: remove and put it again"),
        missing => format!(
            "object {name:?} is protected by {scheme} already, and {missing} of its pieces are \
             missing: `csd repair` stores them again"
        ),
    };
    Error::Protection { why }
}

/// Writes the entry with its parity, if no other writer has changed the name.
async fn seal(array: &Array, begun: &Entry, entry: &mut Entry) -> Result<Vec<String>, Error> {
    let ground = catalogue::settle(array, &begun.name).await?;
    if !ground.is_of(begun) {
        return Err(Error::Overtaken { name: begun.name.clone() });
    }
    catalogue::write(array, entry, &ground).await
}

/// Deletes what a failed command has written, and makes the entry as it was.
async fn withdraw(array: &Array, begun: &Entry, before: &Entry) -> Result<(), Error> {
    let ground = catalogue::settle(array, &begun.name).await?;
    let is_sealed = ground.found.newest().is_some_and(|newest| newest.protected().is_some());
    if is_sealed && ground.is_of(begun) {
        return Ok(());
    }
    for left in begun.ids().into_iter().filter(|id| *id != begun.id) {
        remove::sweep(array, left).await?;
    }
    if ground.is_of(begun) {
        let mut restored = before.clone();
        restored.protection = None;
        random_bytes(&mut restored.writer);
        catalogue::write(array, &mut restored, &ground).await?;
    }
    Ok(())
}
