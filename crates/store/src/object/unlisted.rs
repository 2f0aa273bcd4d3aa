//! Page lists of pieces that drives have stored, from sums that the drives compute where the pieces
//! lie ([`crate::pages`]).
//!
//! A list that cannot be made costs the names of pages only: without it a scrub names the piece.
//! Invariant: no list is stored long after another writer has taken the name.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_reactor::{Class, now, spawn};

use super::copy::Flow;
use super::writer::check_owner;
use super::{CHECK_INTERVAL, Error};
use crate::array::Array;
use crate::catalogue::Entry;
use crate::pages::{Group, Maker, Wanted, add};

/// Pieces that shall have page lists, by the index of the drive that has stored them.
pub(super) type Unlisted = BTreeMap<usize, Vec<Wanted>>;

/// Stores lists of these pieces of an object, whose pages have this size.
///
/// # Errors
/// [`Error::Stopped`]; [`Error::Overtaken`], or those of the catalogue.
pub(super) async fn list(
    array: &Array,
    entry: &Entry,
    (unlisted, page_bytes): (Unlisted, u32),
    flow: &Flow,
) -> Result<(), Error> {
    let mut lanes = Vec::new();
    for (index, pieces) in unlisted {
        let Ok(drive) = array.drive(index) else { continue };
        let Ok(maker) = Maker::new(drive).await else { continue };
        let groups = Group::all(pieces, entry.id, page_bytes).into_iter();
        lanes.push((index, Rc::new(maker), groups));
    }
    let mut checked = now();
    loop {
        if flow.stop.get() {
            return Err(Error::Stopped);
        }
        if now().since(checked) >= CHECK_INTERVAL {
            check_owner(array, entry).await?;
            checked = now();
        }
        let mut making = Vec::new();
        for (index, maker, groups) in &mut lanes {
            let Some(group) = groups.find(|group| maker.takes_room(group)) else { continue };
            let (index, maker, pace) = (*index, Rc::clone(maker), Rc::clone(&flow.pace));
            making.push(spawn(Class::Foreground, async move {
                pace.wait(index, group.bytes()).await;
                if let Some(list) = group.list(&maker).await? {
                    add(&maker.drive, &list).await?;
                }
                Ok::<_, Error>(())
            }));
        }
        if making.is_empty() {
            return Ok(());
        }
        for made in making {
            let _made = made.await;
        }
    }
}
