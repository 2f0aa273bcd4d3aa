//! Protect: parity for an object, so that it survives the loss of drives.
//!
//! A put of a spread object computes parity while it reads ([`super::encode`]). Any other object is
//! stored first; then each stripe is read from its drives, encoded on this host or in a drive
//! ([`super::in_drives`]), and its parity is stored. Data stays where it is, except that a whole
//! object is spread.
//!
//! Before `csd protect` writes a piece, it writes an entry of the next epoch that announces the
//! parity; the names of the pieces carry this epoch. A second entry makes the parity count. An
//! interrupted command therefore leaves an object as readable as before, and pieces whose names no
//! later command uses; the next one, `csd rm` and `csd array reclaim` delete them. Invariant:
//! parity counts only if every stripe has one durable piece more than its data.

use std::rc::Rc;

use csd_reactor::random_bytes;

use super::draft::{Stored, thinned};
use super::in_drives::InDrives;
use super::pages::PAGE_BYTES;
use super::way::{Account, Encode, Model};
use super::{Error, Progress, check_name, parity, remove, respread};
use crate::array::Array;
use crate::catalogue::{self, Entry, Placement, State};
use crate::layout::Scheme;

/// A protected object, and how it was encoded.
#[derive(Clone, Debug)]
pub struct Protected {
    /// The object.
    pub stored: Stored,
    /// Account of its encoding; `None` if it was protected before.
    pub account: Option<Account>,
}

/// Protects the object `name`; does nothing if it is protected in this way.
///
/// # Errors
/// [`Error::Missing`]; [`Error::Protection`] if it is protected in another way, or the array has
/// too few drives; [`Error::Thin`]; [`Error::Overtaken`]; an error of the drives.
pub async fn protect(
    array: &Array,
    name: &str,
    scheme: Scheme,
    encode: Encode,
    progress: &Progress,
) -> Result<Protected, Error> {
    check_name(name)?;
    let before_bytes = crossed(array);
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
        return Ok(Protected { stored: Stored { entry, warnings }, account: None });
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
    let sealed = match encoded(array, &mut entry, encode, progress).await {
        Ok(encoded) => seal(array, &begun, &mut entry).await.map(|more| (encoded, more)),
        Err(error) => Err(error),
    };
    match sealed {
        Ok(((mut account, helped), more)) => {
            warnings.extend(more);
            if entry.id != begun.id
                && let Err(error) = remove::sweep(array, begun.id).await
            {
                warnings.push(format!("its former chunks are not all deleted: {error}"));
            }
            warnings.extend(thinned(&entry));
            warnings.extend(helped);
            account.host_crossed_bytes = crossed(array).saturating_sub(before_bytes);
            Ok(Protected { stored: Stored { entry, warnings }, account: Some(account) })
        }
        Err(error) => {
            // The user must see the first error, not one of the clean-up.
            let _cleaned = withdraw(array, &begun, &before).await;
            Err(error)
        }
    }
}

/// Encodes an object whose parity is announced, and completes its entry. Returns the account, so
/// far without the bytes that crossed, and warnings about drives that did not encode.
async fn encoded(
    array: &Array,
    entry: &mut Entry,
    encode: Encode,
    progress: &Progress,
) -> Result<(Account, Vec<String>), Error> {
    let moved = entry.whole.then(|| respread::moved(array, entry)).transpose()?;
    let model = model(array, entry, moved.as_ref());
    let by = match encode {
        // A late write of a peer could reach blocks that belong to another object by then.
        _ if entry.whole && entry.placement != Placement::Kv => Encode::Host,
        Encode::Auto => model.better(),
        chosen => chosen,
    };
    let drives = (by == Encode::Drives).then(Rc::<InDrives>::default);
    match moved {
        Some(moved) => respread::spread(array, entry, moved, drives.as_ref(), progress).await?,
        None => parity::encode(array, entry, drives.as_ref(), Some(PAGE_BYTES), progress).await?,
    }
    let helped = drives.iter().flat_map(|drives| drives.warnings()).collect();
    let stripes_here = drives.map_or(0, |drives| drives.encoded_here());
    Ok((Account { model, by, stripes_here, host_crossed_bytes: 0 }, helped))
}

/// Returns the data that has crossed between this host and the drives so far, bytes.
fn crossed(array: &Array) -> u64 {
    array.drives().map(|drive| drive.crossed_bytes()).sum()
}

/// Counts the bytes that the ways to encode an object move; `moved` is the entry of a whole object
/// once it is spread.
fn model(array: &Array, entry: &Entry, moved: Option<&Entry>) -> Model {
    let origin = moved.map(|_| usize::from(entry.members[0]));
    let entry = moved.unwrap_or(entry);
    let stripes = entry.stripes().expect("the object is protected");
    Model::new(&entry.layout(), &stripes, origin, array.slots().len())
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
