//! Parity of an object: its plan before the first piece, and its record in the entry.
//!
//! Invariant: parity counts only if every stripe has one durable piece more than its data.

use std::rc::Rc;

use super::encoding::Number;
use super::flow::Flow;
use super::in_drives::InDrives;
use super::writer::Finished;
use super::{Error, encode};
use crate::array::{Array, DriveIndex};
use crate::catalogue::{Entry, Missing, PIECES_MAX, Parity, Placement, Protection};
use crate::error::ProtectionError;
use crate::layout::{self, Scheme, Stripes};

/// Returns the protection of an object on these members, without parity.
///
/// # Errors
/// [`ProtectionError::Impossible`] if the array has too few drives; [`Error::Array`] if
/// too few are up.
pub(super) fn plan(
    array: &Array,
    members: &[DriveIndex],
    scheme: Option<Scheme>,
) -> Result<Option<Protection>, Error> {
    let Some(scheme) = scheme else { return Ok(None) };
    let slots = array.size();
    check_fit(scheme, slots)?;
    let needed = layout::width(scheme, members.len()) + 1;
    array.require(needed)?;
    let mut group = array.voting();
    group.extend(members.iter().filter(|member| !group.contains(member)).collect::<Vec<_>>());
    // Drives that are down take part only if there are too few others; their pieces are missing.
    let occupied = DriveIndex::each(array.slots()).filter(|(_, slot)| !slot.is_vacant());
    let occupied = occupied.map(|(index, _)| index);
    let down: Vec<DriveIndex> = occupied.filter(|drive| !group.contains(drive)).collect();
    let lacking = scheme.pieces().saturating_sub(group.len());
    group.extend(down.into_iter().take(lacking));
    group.sort_unstable();
    Ok(Some(Protection { scheme, epoch: 0, group, parity: None }))
}

/// Checks that so many drives suffice for a code.
///
/// # Errors
/// [`ProtectionError::Impossible`].
pub(super) fn check_fit(scheme: Scheme, drives: usize) -> Result<(), Error> {
    if scheme.pieces() <= drives {
        return Ok(());
    }
    let why = format!(
        "{scheme} needs {} drives, and the array has {drives}: choose fewer pieces, or add drives \
         with `csd array add`",
        scheme.pieces()
    );
    Err(Error::Protection(ProtectionError::Impossible { why }))
}

/// Adds parity that was written under the protection's epoch, or the entry's own if it has none; it
/// has these sums, and these pieces of the object are missing.
///
/// # Errors
/// [`ProtectionError::Thin`] if a stripe has too few durable pieces;
/// [`ProtectionError::Impossible`] for too many.
pub(super) fn add(entry: &mut Entry, sums: Vec<u32>, lost: Vec<Number>) -> Result<(), Error> {
    let stripes = entry.stripes().expect("the object is protected");
    let scheme = stripes.scheme();
    let mut missing = Missing::default();
    for number in lost {
        let (stripe, piece) = match number {
            Number::Chunk(chunk) => stripes.position(chunk),
            Number::Parity(number) => {
                let parity = u32::try_from(scheme.parity()).expect("at most 16");
                (number / parity, scheme.data() + (number % parity) as usize)
            }
        };
        missing.add(stripes.count(), scheme, stripe, piece);
    }
    check_durable(&entry.name, &stripes, &missing)?;
    check_size(entry)?;
    let epoch = entry.epoch;
    let protection = entry.protection.as_mut().expect("the object is protected");
    if protection.epoch == 0 {
        protection.epoch = epoch;
    }
    protection.parity = Some(Parity { sums, missing });
    Ok(())
}

/// Checks that every stripe has one durable piece more than its data.
fn check_durable(name: &str, stripes: &Stripes, missing: &Missing) -> Result<(), Error> {
    if missing.count() == 0 {
        return Ok(());
    }
    for stripe in 0..stripes.count() {
        let is_durable = |piece: &usize| !missing.has(stripes.scheme(), stripe, *piece);
        let durable = stripes.pieces(stripe).filter(is_durable).count();
        let needed = stripes.chunks(stripe).len() + 1;
        if durable < needed {
            return Err(Error::Protection(ProtectionError::Thin {
                name: name.to_owned(),
                stripe,
                durable,
                needed,
            }));
        }
    }
    Ok(())
}

/// Checks that the entry can list all pieces.
pub(super) fn check_size(entry: &Entry) -> Result<(), Error> {
    let Some(protection) = &entry.protection else { return Ok(()) };
    let (layout, scheme) = (entry.layout(), protection.scheme);
    let stripes = u64::from(layout::stripes(&layout, entry.members.len(), scheme));
    let pieces = u64::from(layout.chunks()) + stripes * scheme.parity() as u64;
    if pieces > PIECES_MAX {
        let why = format!(
            "object {:?} would have {pieces} pieces, and an entry lists {PIECES_MAX}: use larger \
             chunks",
            entry.name
        );
        return Err(Error::Protection(ProtectionError::Impossible { why }));
    }
    Ok(())
}

/// Encodes an object whose chunks are stored, in `drives` if they are given, and completes the
/// entry accordingly.
///
/// # Errors
/// [`DriveError::Corrupt`](crate::error::DriveError::Corrupt) for a damaged chunk;
/// [`DriveError::Full`](crate::error::DriveError::Full); [`ProtectionError::Thin`]; an error of the
/// drives.
pub(super) async fn encode(
    array: &Array,
    entry: &mut Entry,
    drives: Option<&Rc<InDrives>>,
    page_bytes: Option<u32>,
    flow: &Flow,
) -> Result<(), Error> {
    let encoded = encode::stored(array, entry, (None, drives), page_bytes, flow).await?;
    entry.sums = encoded.chunk_sums;
    add(entry, encoded.sums, encoded.lost)
}

/// Completes the entry of an object whose chunks were written, and encodes it now if it is
/// protected and its parity was not written with the chunks.
///
/// # Errors
/// As [`add`] and [`encode`].
pub(super) async fn complete(
    array: &Array,
    entry: &mut Entry,
    finished: Finished,
    page_bytes: Option<u32>,
    flow: &Flow,
) -> Result<(), Error> {
    if let (Placement::Block(all), Some(extents)) = (&mut entry.placement, finished.extents) {
        *all = extents;
    }
    match finished.parity {
        Some(written) => add(entry, written, finished.missing),
        None if entry.protection.is_some() => encode(array, entry, None, page_bytes, flow).await,
        None => Ok(()),
    }
}
