//! Page lists of repaired pieces: each drive sums the pages of its own pieces ([`crate::pages`]).
//!
//! Covers all good pieces, so that a repair also makes the lists that an interrupted one has not
//! made. A list that cannot be made is no failure of the repair. As before any write, the object is
//! looked up before a list is stored: once an object is removed, its blocks soon belong to another
//! one.

use std::collections::BTreeMap;

use super::mover::Mover;
use super::piece::Piece;
use super::subject::{PieceState, Subject};
use super::{Fleet, Repair};
use crate::array::DriveIndex;
use crate::error::Error;
use crate::pages::{Group, ListedPieces, Maker, Wanted, add};

impl<M: Mover + 'static> Repair<'_, M> {
    /// Makes lists of the good pieces that have none, if another piece of the object has one: if
    /// not, it was put without.
    ///
    /// # Errors
    /// A failed look at the object's entry.
    pub(super) async fn list_pages(&self, subject: &Subject) -> Result<(), Error> {
        let (object, ids) = (subject.entry.id, subject.entry.own_ids());
        let mut all = Vec::new();
        for pieces in good(&self.fleet, subject).into_values() {
            if let Ok(listed) = ListedPieces::read(&pieces[0].drive, &ids).await {
                all.push((listed, pieces));
            }
        }
        let page_bytes = all.iter().find_map(|(listed, _)| listed.page_bytes());
        let Some(page_bytes) = page_bytes else { return Ok(()) };
        for (listed, pieces) in all {
            let is_listed = |piece: &Piece| {
                let (_, _, id, start) = piece.spot.listed(object);
                listed.find((id, start)).is_some()
            };
            let wanted = |Piece { spot, bytes, sum, .. }| Wanted { spot, bytes, sum };
            let wanted = pieces.into_iter().filter(|piece| !is_listed(piece)).map(wanted);
            let groups = Group::all(wanted, object, page_bytes);
            if groups.is_empty() {
                continue;
            }
            let Ok(maker) = Maker::new(&listed.drive).await else { continue };
            for group in groups {
                if self.limits.stop.get() {
                    return Ok(());
                }
                if !maker.takes_room(&group) {
                    continue;
                }
                self.fleet.pace(listed.drive.index, group.bytes()).await;
                let Ok(list) = group.list(&maker).await else { break };
                let Some(list) = list else { continue };
                if self.limits.stop.get() || !self.is_there(subject, false).await? {
                    return Ok(());
                }
                if add(&listed.drive, &list).await.is_err() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Returns the good pieces of an object by drive.
fn good(fleet: &Fleet, subject: &Subject) -> BTreeMap<DriveIndex, Vec<Piece>> {
    let mut good: BTreeMap<DriveIndex, Vec<Piece>> = BTreeMap::new();
    for (stripe, number) in subject.all() {
        let index = subject.drive(stripe, number);
        if let (PieceState::Good, Some(drive)) = (subject.state(stripe, number), fleet.drive(index))
        {
            good.entry(index).or_default().push(subject.piece(drive, stripe, number));
        }
    }
    good
}
