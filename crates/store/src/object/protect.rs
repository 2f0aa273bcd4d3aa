//! Protect: parity for an object, so that it survives the loss of drives.
//!
//! A put of a spread object computes parity while it reads ([`super::encode`]). Any other object is
//! stored first; then each stripe is read from its drives, encoded on this host or in a drive
//! ([`super::in_drives`]), and its parity is stored. Data stays where it is, except that a whole
//! object is spread.
//!
//! Before `csd protect` writes a piece, it writes an entry of the next epoch that announces the
//! parity; the names of the pieces carry this epoch. A second entry makes the parity count
//! ([`super::change`]). Invariant: parity counts only if every stripe has one durable piece more
//! than its data.

use std::rc::Rc;

use super::change::{self, Change};
use super::copy;
use super::draft::{Stored, thinned};
use super::encode_cost::{Account, Encode, Model};
use super::flow::Flow;
use super::in_drives::InDrives;
use super::{Error, Progress, check_name, parity, remove};
use crate::array::{Array, DriveIndex};
use crate::catalogue::Entry;
use crate::error::ProtectionError;
use crate::layout::Scheme;
use crate::pages::PAGE_BYTES;

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
/// [`NameError::Missing`](crate::error::NameError::Missing);
/// [`ProtectionError::Impossible`] if it is protected in another way, or the array has too few
/// drives; [`ProtectionError::Thin`]; [`NameError::Overtaken`](crate::error::NameError::Overtaken);
/// an error of the drives.
pub async fn protect(
    array: &Array,
    name: &str,
    scheme: Scheme,
    encode: Encode,
    progress: &Progress,
) -> Result<Protected, Error> {
    check_name(name)?;
    let before_bytes = array.crossed_bytes();
    let (before, ground) = change::look(array, name).await?;
    let mut warnings = array.down();
    if let Some((protection, parity)) = before.protected() {
        let missing = parity.missing.count();
        if protection.scheme != scheme || missing > 0 {
            return Err(already(name, protection.scheme, missing));
        }
        let (entry, more) = change::confirm(array, &ground, before).await?;
        warnings.extend(more);
        return Ok(Protected { stored: Stored { entry, warnings }, account: None });
    }
    let mut entry = before.clone();
    let members = if before.whole { voters(array, &before)? } else { before.members.clone() };
    entry.protection = parity::plan(array, &members, Some(scheme))?;
    entry.copy = before.whole.then(copy::new_id);
    parity::check_size(&entry)?;
    let is_moved = entry.copy.is_some();
    let mut change = Change::begin(array, (before, &ground), &mut entry).await?;
    warnings.append(&mut change.warnings);
    let former = entry.id;
    let sealed = match encoded(array, &mut entry, members, encode, progress).await {
        Ok(encoded) => change.seal(array, &mut entry).await.map(|more| (encoded, more)),
        Err(error) => Err(error),
    };
    match sealed {
        Ok(((mut account, helped), more)) => {
            warnings.extend(more);
            if is_moved && let Err(error) = remove::sweep_ids(array, vec![former]).await {
                warnings.push(format!("its former chunks are not all deleted: {error}"));
            }
            warnings.extend(thinned(&entry));
            warnings.extend(helped);
            account.host_crossed_bytes = array.crossed_bytes().saturating_sub(before_bytes);
            Ok(Protected { stored: Stored { entry, warnings }, account: Some(account) })
        }
        Err(error) => {
            // The user must see the first error, not one of the clean-up.
            let _cleaned = change.withdraw(array).await;
            Err(error)
        }
    }
}

/// Returns the drives over which a whole object is spread.
///
/// # Errors
/// [`Error::Array`] if its own drive is down.
fn voters(array: &Array, entry: &Entry) -> Result<Vec<DriveIndex>, Error> {
    array.drive(entry.members[0])?;
    Ok(array.voting())
}

/// Encodes an object whose parity is announced, spread over `members` if it is whole, and completes
/// its entry. Returns the account, so far without the bytes that crossed, and warnings about drives
/// that did not encode.
async fn encoded(
    array: &Array,
    entry: &mut Entry,
    members: Vec<DriveIndex>,
    encode: Encode,
    progress: &Progress,
) -> Result<(Account, Vec<String>), Error> {
    let moved = entry.whole.then(|| copy::planned(entry, members, false)).transpose()?;
    let model = model(array, entry, moved.as_ref());
    let by = match encode {
        Encode::Auto => model.better(),
        chosen => chosen,
    };
    let drives = (by == Encode::Drives).then(Rc::<InDrives>::default);
    let flow = Flow::free(array, progress);
    match (moved, &drives) {
        (Some(moved), Some(drives)) => {
            copy::make_in_drives(array, entry, moved, drives, &flow).await?
        }
        (Some(moved), None) => copy::make(array, entry, moved, &flow).await?,
        (None, drives) => {
            parity::encode(array, entry, drives.as_ref(), Some(PAGE_BYTES), &flow).await?
        }
    }
    let helped = drives.iter().flat_map(|drives| drives.warnings()).collect();
    let stripes_here = drives.map_or(0, |drives| drives.encoded_here());
    Ok((Account { model, by, stripes_here, host_crossed_bytes: 0 }, helped))
}

/// Counts the bytes that the ways to encode an object move; `moved` is the entry of a whole object
/// once it is spread.
fn model(array: &Array, entry: &Entry, moved: Option<&Entry>) -> Model {
    let origin = moved.map(|_| entry.members[0]);
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
    Error::Protection(ProtectionError::Impossible { why })
}
