//! [`Group`]: the pieces of a new page list, whose checksums the drive computes in place.
//!
//! The kernel `verify` writes the checksums of the pages to a value, which the host takes and
//! stores as a list: eight bytes of each page cross the wire. From them follows the checksum of a
//! piece. Invariant: a piece is listed only if that is the one in the object's entry, so that a
//! list is never wrong, whatever the drive holds or another host does meanwhile. A list that cannot
//! be made is missing, and another attempt makes it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use csd_kernels::verify;
use csd_nvme::kv::{Key, STORE_IF_ABSENT};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::{CHUNKS_MAX, chunk_key};
use csd_nvme::vendor::location::LocationKind;
use csd_nvme::vendor::pages::{self, LISTS_MAX, List, list_key};
use csd_reactor::{Buffer, Class, compute_fn, random_u64};

use super::LIST_BYTES;
use super::page_list_reader::number_of;
use crate::array::Drive;
use crate::catalogue::ObjectId;
use crate::error::Error;
use crate::in_place::{self, program_index};
use crate::piece::Spot;
use crate::room::{record_bytes, records_left};
use crate::sweep::list_keys;

/// Most bytes of one execution.
const EXECUTION_BYTES: u64 = 32 << 20;
/// Numbers, as those of pieces, of values with checksums that a host has not taken yet. No piece
/// has one, and no answer of a task that encodes.
const SUMS: Range<u32> = 0xC000_0000..0xE000_0000;

/// A piece without a page list that shall have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) spot: Spot,
    /// Length, bytes.
    pub(crate) bytes: u32,
    /// CRC-32C, as the object's entry has it.
    pub(crate) sum: u32,
}

/// A drive that makes page lists: asked once, not for each list.
pub(crate) struct Maker {
    pub(crate) drive: Rc<Drive>,
    /// Index of the program `verify`.
    program: u16,
    /// Bytes of records that lists may still take.
    left: Cell<u64>,
    /// Number of the values with checksums: two hosts do not take each other's.
    sums: u32,
}

impl Maker {
    /// Prepares a drive whose room for records is known, bytes.
    ///
    /// # Errors
    /// A failed command; [`DriveError::Corrupt`](crate::error::DriveError::Corrupt) for a
    /// drive without the program.
    pub(crate) async fn with_room(drive: &Rc<Drive>, left: u64) -> Result<Self, Error> {
        let program = program_index(drive, verify::PROGRAM_ID).await?;
        let drawn = random_u64() % u64::from(SUMS.end - SUMS.start);
        let sums = SUMS.start + u32::try_from(drawn).expect("less than 2^29");
        Ok(Self { drive: Rc::clone(drive), program, left: Cell::new(left), sums })
    }

    /// Prepares a drive, and asks for its room.
    ///
    /// # Errors
    /// Those of [`Self::with_room`].
    pub(crate) async fn new(drive: &Rc<Drive>) -> Result<Self, Error> {
        Self::with_room(drive, records_left(drive).await?).await
    }

    /// Takes room for the list of a group and its checksums, which lie next to it for a moment.
    /// Returns false if there is not enough: the catalogue does not need lists.
    pub(crate) fn takes_room(&self, group: &Group) -> bool {
        let list_bytes = List::encoded_bytes(group.pieces.len(), group.pages());
        let bytes = 2 * record_bytes(list_bytes as u64);
        let left = self.left.get().checked_sub(bytes);
        left.inspect(|left| self.left.set(*left)).is_some()
    }
}

/// Pieces of one list.
pub(crate) struct Group {
    kind: LocationKind,
    nsid: u32,
    /// Identifier in the key of the list.
    object: ObjectId,
    page_bytes: u32,
    /// Pieces, each with its start in the list.
    pieces: Vec<(u64, Wanted)>,
}

impl Group {
    /// Divides pieces of an object, on one drive, among lists. Pieces of one page have none.
    pub(crate) fn all(
        pieces: impl IntoIterator<Item = Wanted>,
        object: ObjectId,
        page_bytes: u32,
    ) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for piece in pieces.into_iter().filter(|piece| piece.bytes > page_bytes) {
            let (kind, nsid, id, start) = piece.spot.listed(object);
            let has_room = |group: &&mut Self| {
                let pages = group.pages() + piece.bytes.div_ceil(page_bytes) as usize;
                List::encoded_bytes(group.pieces.len() + 1, pages) <= LIST_BYTES
            };
            match groups.iter_mut().rev().find(|group| group.object == id).filter(has_room) {
                Some(group) => group.pieces.push((start, piece)),
                None => {
                    let pieces = vec![(start, piece)];
                    groups.push(Self { kind, nsid, object: id, page_bytes, pieces });
                }
            }
        }
        groups
    }

    fn pages(&self) -> usize {
        self.pieces.iter().map(|(_, piece)| self.pages_of(piece)).sum()
    }

    fn pages_of(&self, piece: &Wanted) -> usize {
        piece.bytes.div_ceil(self.page_bytes) as usize
    }

    /// Returns the length of the pieces, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|(_, piece)| u64::from(piece.bytes)).sum()
    }

    /// Returns the list of those pieces that the drive holds as they were put; `None` if there are
    /// none. The maker has taken room for it.
    ///
    /// # Errors
    /// An answer of the drive that says nothing about a piece.
    pub(crate) async fn list(&self, maker: &Maker) -> Result<Option<List>, Error> {
        let (mut pieces, mut all) = (Vec::new(), Vec::new());
        for batch in self.batches() {
            let mut sums = self.sums(maker, batch).await?;
            if sums.len() < batch.len() && batch.len() > 1 {
                // A piece of another length has moved the checksums of those behind it.
                let found: BTreeSet<u64> = sums.iter().map(|((start, _), _)| *start).collect();
                for piece in batch.chunks(1).filter(|piece| !found.contains(&piece[0].0)) {
                    sums.extend(self.sums(maker, piece).await?);
                }
            }
            for ((start, Wanted { bytes, .. }), sums) in sums {
                pieces.push(pages::Piece { start, bytes });
                all.extend(sums);
            }
        }
        let Self { kind, nsid, page_bytes, object, .. } = *self;
        let list = List { kind, nsid, page_bytes, object: object.0, pieces, sums: all };
        Ok(Some(list).filter(|list| !list.pieces.is_empty()))
    }

    /// Cuts the pieces into executions: a piece that ends in a page is the last of one.
    fn batches(&self) -> Vec<&[(u64, Wanted)]> {
        let (mut batches, mut begin, mut bytes) = (Vec::new(), 0, 0);
        for (index, (_, piece)) in self.pieces.iter().enumerate() {
            let is_full = bytes + u64::from(piece.bytes) > EXECUTION_BYTES
                || index - begin == CHUNKS_MAX as usize;
            if index > begin && is_full {
                batches.push(&self.pieces[begin..index]);
                (begin, bytes) = (index, 0);
            }
            bytes += u64::from(piece.bytes);
            if !piece.bytes.is_multiple_of(self.page_bytes) {
                batches.push(&self.pieces[begin..=index]);
                (begin, bytes) = (index + 1, 0);
            }
        }
        batches.extend(Some(&self.pieces[begin..]).filter(|rest| !rest.is_empty()));
        batches
    }

    /// Has the drive sum the pages of these pieces. Returns the pieces that are as they were put,
    /// each with its sums; none if one cannot be read.
    async fn sums(
        &self,
        maker: &Maker,
        pieces: &[(u64, Wanted)],
    ) -> Result<Vec<((u64, Wanted), Vec<u32>)>, Error> {
        let (drive, program) = (&*maker.drive, maker.program);
        let block_bytes = drive.block.block_bytes();
        let sources =
            pieces.iter().map(|(_, piece)| piece.spot.location(block_bytes).source(piece.bytes));
        let place = (self.object, maker.sums);
        let of = (program, self.page_bytes);
        if in_place::sums(drive, of, sources.collect(), place).await?.is_err() {
            return Ok(Vec::new());
        }
        let counts: Vec<usize> = pieces.iter().map(|(_, piece)| self.pages_of(piece)).collect();
        let expected = 4 * counts.iter().sum::<usize>();
        let key = chunk_key(&self.object.0, maker.sums);
        let failed = |error| Error::command(drive, error);
        let most = u32::try_from(expected).expect("at most a list");
        let sums = drive.objects.retrieve(&key, most).await.map_err(failed)?;
        drive.objects.delete(&key).await.map_err(failed)?;
        let Some(sums) = sums.filter(|sums| sums.len() == expected) else { return Ok(Vec::new()) };
        let (pieces, page_bytes) = (pieces.to_vec(), self.page_bytes);
        let work = move || {
            let (words, _) = sums.as_chunks::<4>();
            let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
            let of = |(piece, count)| (piece, words.by_ref().take(count).collect());
            let all: Vec<((u64, Wanted), Vec<u32>)> =
                pieces.into_iter().zip(counts).map(of).collect();
            all.into_iter().filter(|((_, piece), sums)| is_of(piece, page_bytes, sums)).collect()
        };
        compute_fn(Class::Execution, 0, work).await.map_err(|_| Error::ComputeThread)
    }
}

/// Returns true if pages with these checksums are together a piece with its checksum.
fn is_of(piece: &Wanted, page_bytes: u32, sums: &[u32]) -> bool {
    let (mut whole, mut left) = (0, piece.bytes);
    for sum in sums {
        let bytes = left.min(page_bytes);
        whole = crc32c::crc32c_combine(whole, *sum, bytes as usize);
        left -= bytes;
    }
    whole == piece.sum
}

/// Stores a list under the next number that is free, and returns its key; `None` if all are taken.
///
/// # Errors
/// A failed command.
pub(crate) async fn add(drive: &Drive, list: &List) -> Result<Option<Key>, Error> {
    let keys = list_keys(drive, ObjectId(list.object)).await?;
    let free = keys.last().map_or(0, |last| number_of(last) + 1);
    for number in free..LISTS_MAX {
        let key = list_key(&list.object, number);
        match drive.objects.store(&key, value(list), STORE_IF_ABSENT).await {
            Ok(()) => return Ok(Some(key)),
            // Another host has added one.
            Err(error) if error.status() == Some(Status::KEY_EXISTS) => {}
            Err(error) => return Err(Error::command(drive, error)),
        }
    }
    Ok(None)
}

/// Stores a list under this key.
///
/// # Errors
/// A failed command.
pub(crate) async fn store(drive: &Drive, key: &Key, list: &List) -> Result<(), Error> {
    let stored = drive.objects.store(key, value(list), 0).await;
    stored.map_err(|error| Error::command(drive, error))
}

fn value(list: &List) -> Vec<Buffer> {
    vec![Buffer::from_slice(&list.encode())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u32 = 4096;
    const OBJECT: ObjectId = ObjectId([9; 12]);

    fn value(id: u8, number: u32, bytes: u32) -> Wanted {
        Wanted { spot: Spot::Value(ObjectId([id; 12]), number), bytes, sum: 0 }
    }

    fn numbers(pieces: &[(u64, Wanted)]) -> Vec<u64> {
        pieces.iter().map(|(start, _)| *start).collect()
    }

    #[test]
    fn a_group_has_pieces_of_one_identifier_and_fits_a_list() {
        let pieces =
            (0..200).map(|number| value(if number % 2 == 0 { 7 } else { 8 }, number, 1 << 20));
        let short = value(7, 900, PAGE);
        let blocks = Wanted { spot: Spot::Blocks(8192), bytes: PAGE + 1, sum: 0 };
        let groups = Group::all(pieces.chain([short, blocks]), OBJECT, PAGE);
        assert_eq!(groups.iter().map(|group| group.pieces.len()).sum::<usize>(), 201);
        for group in &groups {
            let (pieces, pages) = (group.pieces.len(), group.pages());
            assert!(List::encoded_bytes(pieces, pages) <= LIST_BYTES);
            let listed = |(start, piece): &(u64, Wanted)| {
                piece.spot.listed(OBJECT) == (group.kind, group.nsid, group.object, *start)
            };
            assert!(group.pieces.iter().all(listed));
        }
        // 62 pieces of 1 MiB are as many as a list of 64 KiB has room for.
        let sizes: Vec<usize> = groups.iter().map(|group| group.pieces.len()).collect();
        assert_eq!(sizes, [62, 62, 38, 38, 1]);
        assert_eq!((groups[4].object, groups[4].kind), (OBJECT, LocationKind::BLOCKS));
        assert_eq!(groups[4].bytes(), u64::from(PAGE) + 1);
    }

    #[test]
    fn an_execution_ends_with_a_page_that_is_cut() {
        let pieces = [3 * PAGE, 3 * PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE];
        let pieces = (0..).zip(pieces).map(|(number, bytes)| value(7, number, bytes));
        let groups = Group::all(pieces, OBJECT, PAGE);
        let batches: Vec<_> = groups[0].batches().into_iter().map(numbers).collect();
        assert_eq!(batches, [vec![0, 1, 2], vec![3, 4]]);
        let long = (0..5).map(|number| value(7, number, 16 << 20));
        let batches = |groups: &[Group]| -> Vec<usize> {
            groups.iter().flat_map(Group::batches).map(<[_]>::len).collect()
        };
        assert_eq!(batches(&Group::all(long, OBJECT, 8 << 20)), [2, 2, 1]);
        let many = (0..600).map(|number| value(7, number, 2 * PAGE));
        assert_eq!(batches(&Group::all(many, OBJECT, PAGE)), [256, 256, 88]);
    }

    #[test]
    fn sums_of_pages_belong_to_the_piece_with_their_checksum_only() {
        let bytes: Vec<u8> = (0..10_000u32).flat_map(u32::to_le_bytes).collect();
        let mut sums: Vec<u32> = bytes.chunks(PAGE as usize).map(crc32c::crc32c).collect();
        let length = u32::try_from(bytes.len()).unwrap();
        let piece = Wanted { sum: crc32c::crc32c(&bytes), ..value(7, 0, length) };
        assert!(is_of(&piece, PAGE, &sums));
        assert!(!is_of(&Wanted { sum: piece.sum ^ 1, ..piece }, PAGE, &sums));
        sums.swap(0, 1);
        assert!(!is_of(&piece, PAGE, &sums));
    }
}
