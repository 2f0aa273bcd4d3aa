//! Page lists of pieces that drives have stored, from checksums that the drives compute in place
//! ([`crate::pages`]).
//!
//! Without a list a scrub names a damaged piece, but not the page in it. So a list that cannot be
//! made is no failure.
//! Invariant: no list is stored long after another writer has taken the name.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_reactor::{Class, now, spawn};

use super::flow::Flow;
use super::{CHECK_INTERVAL, Error, check_owner};
use crate::array::{Array, DriveIndex};
use crate::catalogue::Entry;
use crate::pages::{Group, Maker, Wanted, add};
use crate::room::Left;

/// Bytes of pieces after which the name is looked up again: drives sum them quickly, and a look-up
/// crosses the network.
const CHECK_BYTES: u64 = 256 << 20;

/// Pieces of an object that shall have page lists.
#[derive(Default)]
pub(super) struct UnlistedPieces {
    /// The pieces, by the index of the drive that has stored them.
    pieces: BTreeMap<DriveIndex, Vec<Wanted>>,
    /// Room that each drive has left once all of the object is stored, if the drives were asked: a
    /// question takes some KiB for each drive.
    pub(super) left: Option<Left>,
}

impl UnlistedPieces {
    /// Returns an empty set; `left` is the room that each drive has left once the object is stored.
    pub(super) fn new(left: Left) -> Self {
        Self { pieces: BTreeMap::new(), left: Some(left) }
    }

    /// Adds a piece that a drive, by its index, has stored.
    pub(super) fn add(&mut self, drive: DriveIndex, piece: Wanted) {
        self.pieces.entry(drive).or_default().push(piece);
    }
}

/// Stores lists of these pieces of an object, whose pages have this size.
///
/// # Errors
/// [`Error::Stopped`]; [`NameError::Overtaken`](crate::error::NameError::Overtaken), or
/// those of the catalogue.
pub(super) async fn list(
    array: &Array,
    entry: &Entry,
    (unlisted, page_bytes): (UnlistedPieces, u32),
    flow: &Flow,
) -> Result<(), Error> {
    let mut queues = Vec::new();
    let left = unlisted.left.unwrap_or_default();
    for (index, pieces) in unlisted.pieces {
        let groups = Group::all(pieces, entry.id, page_bytes);
        let (Ok(drive), Some(left)) = (array.drive(index), left.get(&index)) else { continue };
        if groups.is_empty() {
            continue;
        }
        let Ok(maker) = Maker::with_room(drive, *left).await else { continue };
        queues.push((index, Rc::new(maker), groups.into_iter()));
    }
    let (mut checked, mut unchecked_bytes) = (now(), 0);
    loop {
        let next = queues.iter_mut().filter_map(|(index, maker, groups)| {
            let group = groups.find(|group| maker.takes_room(group))?;
            Some((*index, Rc::clone(maker), group))
        });
        let next: Vec<_> = next.collect();
        if next.is_empty() {
            return Ok(());
        }
        if flow.stop.get() {
            return Err(Error::Stopped);
        }
        let is_late = flow.pace.is_limited() && now().since(checked) >= CHECK_INTERVAL;
        if is_late || unchecked_bytes >= CHECK_BYTES {
            check_owner(array, entry).await?;
            (checked, unchecked_bytes) = (now(), 0);
        }
        unchecked_bytes += next.iter().map(|(_, _, group)| group.bytes()).sum::<u64>();
        let begin = |(index, maker, group): (DriveIndex, Rc<Maker>, Group)| {
            let pace = Rc::clone(&flow.pace);
            spawn(Class::Foreground, async move {
                pace.wait(index, group.bytes()).await;
                if let Some(list) = group.list(&maker).await? {
                    add(&maker.drive, &list).await?;
                }
                Ok::<_, Error>(())
            })
        };
        let making: Vec<_> = next.into_iter().map(begin).collect();
        for made in making {
            let _made = made.await;
        }
    }
}
