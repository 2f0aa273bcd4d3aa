//! [`Lists`]: the page lists of the pieces that a writer stores, in groups.
//!
//! A group is stored by the task that finishes its last piece. Invariants: a list names only pieces
//! that were durable before it was stored; a piece of one page has no list, because its
//! checksum in the entry is that of the page.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use csd_kernels::verify::{self, Plan};
use csd_nvme::vendor::location::LocationKind;
use csd_nvme::vendor::pages::{List, list_key};
use csd_reactor::{Buffer, Class, compute_fn, spawn};

use crate::catalogue::ObjectId;
use crate::error::Error;
use crate::link::Link;
use crate::pages::LIST_BYTES;
use crate::piece::Spot;
use crate::room;

/// Pieces with equal keys but for their numbers, or blocks of one object, on one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    /// Number of the drive among those of the writer.
    drive: usize,
    /// Kind of the places.
    kind: LocationKind,
    /// Namespace.
    nsid: u32,
    /// Identifier in the keys of the values, or of the object.
    object: [u8; 12],
}

/// The page lists of a writer.
pub(super) struct Lists {
    page_bytes: u32,
    open: BTreeMap<Series, Rc<Group>>,
    /// Number of lists begun, by series.
    begun: BTreeMap<Series, u32>,
}

/// A list in the making.
struct Group {
    series: Series,
    number: u32,
    page_bytes: u32,
    /// Number of pieces that have not ended yet; one more while pieces are added.
    pending: Cell<usize>,
    /// Length of the list once all pieces are in it, bytes.
    planned: Cell<usize>,
    content: RefCell<(Vec<csd_nvme::vendor::pages::Piece>, Vec<u32>)>,
}

impl Lists {
    /// Returns the lists of a writer that sums pages of this size.
    pub(super) fn new(page_bytes: u32) -> Self {
        Self { page_bytes, open: BTreeMap::new(), begun: BTreeMap::new() }
    }

    /// Returns the place of the next piece of a drive in its lists; `None` for a piece of one page.
    pub(super) fn listed(
        &mut self,
        drive: usize,
        spot: Spot,
        object: ObjectId,
        bytes: usize,
    ) -> Option<Listed> {
        let (kind, nsid, object, start) = spot.listed(object);
        let series = Series { drive, kind, nsid, object: object.0 };
        let (group, full) = self.group(series, bytes)?;
        Some(Listed { group, full, start })
    }

    /// Returns the group of the next piece of a series, and the one before it if that is full: its
    /// caller ends the part that it had in it.
    fn group(&mut self, series: Series, bytes: usize) -> Option<(Rc<Group>, Option<Rc<Group>>)> {
        let pages = bytes.div_ceil(self.page_bytes as usize);
        if pages < 2 {
            return None;
        }
        let room = List::encoded_bytes(1, pages) - List::encoded_bytes(0, 0);
        let has_room = |group: &&Rc<Group>| group.planned.get() + room <= LIST_BYTES;
        if let Some(open) = self.open.get(&series).filter(has_room) {
            open.planned.set(open.planned.get() + room);
            open.pending.set(open.pending.get() + 1);
            return Some((Rc::clone(open), None));
        }
        let number = self.begun.entry(series).or_default();
        let planned = Cell::new(List::encoded_bytes(0, 0) + room);
        let (pending, content) = (Cell::new(2), RefCell::default());
        let page_bytes = self.page_bytes;
        let group = Group { series, number: *number, page_bytes, pending, planned, content };
        *number += 1;
        let group = Rc::new(group);
        let full = self.open.insert(series, Rc::clone(&group));
        Some((group, full))
    }

    /// Ends the groups that are left: no more pieces are added.
    pub(super) async fn finish(self, link: impl Fn(usize) -> Rc<Link>) {
        let end = |(series, group): (Series, Rc<Group>)| {
            let link = link(series.drive);
            spawn(Class::Foreground, async move { group.end(&link).await })
        };
        let ends: Vec<_> = self.open.into_iter().map(end).collect();
        for end in ends {
            end.await;
        }
    }
}

/// The place of a piece in a page list.
pub(super) struct Listed {
    group: Rc<Group>,
    /// The list before, if this piece begins a new one.
    full: Option<Rc<Group>>,
    /// Start of the piece, as in the list.
    start: u64,
}

impl Listed {
    /// Stores the piece, and notes the checksums of its pages.
    pub(super) async fn store(self, link: &Link, spot: Spot, piece: Buffer) -> Result<(), Error> {
        if let Some(full) = &self.full {
            full.end(link).await;
        }
        let (page_bytes, bytes) = (self.group.page_bytes, piece.len());
        let work = move || {
            let sums = sums(page_bytes, &piece);
            (piece, sums)
        };
        let stored = match compute_fn(Class::Foreground, 0, work).await {
            Ok((piece, sums)) => {
                let stored = spot.write_over(link, piece).await;
                if stored.is_ok() {
                    self.group.add(self.start, bytes, &sums);
                }
                stored
            }
            Err(_) => Err(Error::ComputeThread),
        };
        self.group.end(link).await;
        stored
    }
}

impl Group {
    /// Adds a piece that was acknowledged.
    fn add(&self, start: u64, bytes: usize, sums: &[u32]) {
        let bytes = u32::try_from(bytes).expect("a piece is at most 16 MiB");
        let mut content = self.content.borrow_mut();
        content.0.push(csd_nvme::vendor::pages::Piece { start, bytes });
        content.1.extend_from_slice(sums);
    }

    /// Ends a part in the group; stores the list if it was the last. A list that cannot be stored
    /// costs the names of pages only. Lists of blocks take no room that the catalogue needs.
    async fn end(&self, link: &Link) {
        let left = self.pending.get() - 1;
        self.pending.set(left);
        let (pieces, sums) = match left {
            0 => self.content.take(),
            _ => return,
        };
        if pieces.is_empty() {
            return;
        }
        let Series { kind, nsid, object, .. } = self.series;
        let list = List { kind, nsid, page_bytes: self.page_bytes, object, pieces, sums }.encode();
        let store = link.run(async |drive| {
            if kind == LocationKind::BLOCKS {
                let room = room::records_left(drive).await?;
                // Blocks that were acknowledged may still be in a cache.
                let flushed = drive.block.flush().await;
                flushed.map_err(|error| Error::command(drive, error))?;
                if room < room::record_bytes(list.len() as u64) {
                    return Ok(());
                }
            }
            let value = vec![Buffer::from_slice(&list)];
            let stored = drive.objects.store(&list_key(&object, self.number), value, 0).await;
            stored.map_err(|error| Error::command(drive, error))
        });
        let _stored = store.await;
    }
}

/// Returns the checksums of the pages of a piece.
fn sums(page_bytes: u32, piece: &[u8]) -> Vec<u32> {
    verify::checksums(Plan::sequential(page_bytes), piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(drive: usize) -> Series {
        Series { drive, kind: LocationKind::VALUE, nsid: 3, object: [9; 12] }
    }

    #[test]
    fn pieces_of_a_series_share_groups_until_these_are_full() {
        let mut lists = Lists::new(4096);
        assert!(lists.group(series(0), 4096).is_none() && lists.group(series(0), 0).is_none());
        let mut numbers = Vec::new();
        let mut full = 0;
        // Each takes 16 bytes and 256 sums.
        for _ in 0..100 {
            let (group, before) = lists.group(series(0), 1 << 20).unwrap();
            numbers.push(group.number);
            full += usize::from(before.is_some());
            assert!(group.planned.get() <= LIST_BYTES);
        }
        assert_eq!((full, numbers[61], numbers[62], numbers[99]), (1, 0, 1, 1));
        let (other, before) = lists.group(series(1), 4097).unwrap();
        assert_eq!((other.number, other.pending.get(), before.is_none()), (0, 2, true));
        let left: Vec<_> =
            lists.open.iter().map(|(series, group)| (series.drive, group.number)).collect();
        assert_eq!(left, [(0, 1), (1, 0)]);
    }

    #[test]
    fn a_piece_longer_than_a_list_has_one_of_its_own() {
        let mut lists = Lists::new(4096);
        let (first, _) = lists.group(series(0), 100 << 20).unwrap();
        assert!(first.planned.get() > LIST_BYTES);
        let (next, full) = lists.group(series(0), 8192).unwrap();
        assert_eq!((next.number, full.map(|group| group.number)), (1, Some(0)));
    }
}
