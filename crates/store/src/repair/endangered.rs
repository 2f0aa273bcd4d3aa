//! [`endangered`]: objects that lose bytes when a drive is taken away.
//!
//! The drives read every piece that the answer counts on, and compare it with its digest: a name
//! says nothing of a piece that has rotted. Writes nothing.

use std::borrow::Cow;
use std::rc::Rc;

use super::fleet::Fleet;
use super::known_pieces::KnownPieces;
use super::subject::Subject;
use super::{Limits, check_all, checks_of};
use crate::array::{Array, DriveIndex};
use crate::catalogue::Entry;
use crate::error::{Error, NameError};
use crate::object;

/// Returns the names of objects of which bytes would be lost without the drive with this index. One
/// that was removed meanwhile loses none, and one that was put again is looked at as it is then.
/// Objects that have lost bytes already are among them only if the drive holds a part of them.
pub async fn endangered(
    array: &Array,
    entries: &[Entry],
    index: DriveIndex,
    limits: &Limits,
) -> Vec<String> {
    let fleet = Rc::new(Fleet::new(array, limits.bytes_per_s));
    fleet.leave_out(index);
    let mut names = Vec::new();
    for listed in entries {
        let mut entry = Cow::Borrowed(listed);
        while needs(array, &fleet, &entry, index, limits).await {
            match object::lookup(array, &entry.name).await {
                Err(Error::Name(NameError::Missing { .. })) => break,
                Ok(now) if now.ids() != entry.ids() => entry = Cow::Owned(now),
                // As it was looked at, or nobody can say.
                Ok(_) | Err(_) => {
                    names.push(entry.name.clone());
                    break;
                }
            }
        }
    }
    names
}

/// Returns true if bytes of an object, as its entry describes it, would be lost without the drive.
async fn needs(
    array: &Array,
    fleet: &Rc<Fleet>,
    entry: &Entry,
    index: DriveIndex,
    limits: &Limits,
) -> bool {
    match &entry.protection {
        Some(protection) if entry.protected().is_some() => {
            protection.group.contains(&index) && is_at_risk(array, fleet, entry, limits).await
        }
        _ => {
            let member = entry.members.iter().position(|drive| *drive == index);
            member.is_some_and(|member| entry.layout().count(member) > 0)
        }
    }
}

/// Returns true if the drives of the fleet cannot give back all bytes of a protected object.
async fn is_at_risk(array: &Array, fleet: &Rc<Fleet>, entry: &Entry, limits: &Limits) -> bool {
    let known = KnownPieces::read(fleet, entry).await;
    let Some(subject) = Subject::new(fleet, entry, &known).map(Rc::new) else { return true };
    if subject.least_margin(fleet) >= 0 {
        check_all(fleet, &subject, checks_of(array, &subject), limits).await;
    }
    // Pieces that were not read because it was stopped do not count.
    limits.stop.get() || subject.least_margin(fleet) < 0
}
