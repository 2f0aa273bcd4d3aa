//! [`endangered`]: objects that lose bytes when a drive is taken away.
//!
//! Reads names only, and writes nothing.

use super::fleet::Fleet;
use super::known_pieces::KnownPieces;
use super::subject::Subject;
use crate::array::{Array, DriveIndex};
use crate::catalogue::Entry;

/// Returns the names of objects of which bytes would be lost without the drive with this index, by
/// the names of pieces on all drives. Objects that have lost bytes already are among them only if
/// the drive holds a part of them.
pub async fn endangered(array: &Array, entries: &[Entry], index: DriveIndex) -> Vec<String> {
    let fleet = Fleet::new(array, None);
    fleet.leave_out(index);
    let mut names = Vec::new();
    for entry in entries {
        let holds = |drives: &[DriveIndex]| drives.contains(&index);
        let is_at_risk = match &entry.protection {
            Some(protection) if entry.protected().is_some() => {
                let known = KnownPieces::read(&fleet, entry).await;
                let subject = Subject::new(&fleet, entry, &known);
                holds(&protection.group)
                    && subject.is_some_and(|subject| subject.least_margin(&fleet) < 0)
            }
            _ => {
                let member = entry.members.iter().position(|drive| *drive == index);
                member.is_some_and(|member| entry.layout().count(member) > 0)
            }
        };
        names.extend(is_at_risk.then(|| entry.name.clone()));
    }
    names
}
