//! Page lists of an object on a drive: the names of damaged pages, by comparisons in the drive, and
//! lists that are damaged themselves.
//!
//! A piece without a list, and one that cannot be read at all, has no names. Writes nothing.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::pages::{self, Header, List, NONE, Task};

use super::pieces::Piece;
use crate::array::{Drive, OBJECTS_NSID};
use crate::catalogue::ObjectId;
use crate::error::Error;
use crate::piece::is_damage;
use crate::run::program_index;
use crate::sweep::list_keys;

/// Longest list that is read, bytes; writers make shorter ones.
const LIST_BYTES_MAX: u32 = 128 << 10;
/// Most pages of a piece that are named.
const PAGES_MAX: usize = 256;

/// The sound page lists of an object on a drive.
pub(super) struct Lists {
    drive: Rc<Drive>,
    /// Index of the program that compares pages, if the drive has it.
    program: Option<u16>,
    /// Places of pieces in the lists, by identifier and start.
    places: BTreeMap<(ObjectId, u64), Listed>,
    /// Size of the pages of a list, bytes; `None` if there is no list.
    page_bytes: Option<u32>,
}

/// Place of a piece in a list.
#[derive(Clone, Copy)]
struct Listed {
    /// Number of the list.
    number: u32,
    /// Number of the piece in it.
    piece: u32,
    /// Number of the piece's pages.
    pages: usize,
}

/// Returns the number of a list, from its key.
pub(super) fn number_of(key: &Key) -> u32 {
    let [.., a, b, c] = key.as_bytes() else { return 0 };
    u32::from_be_bytes([0, *a, *b, *c])
}

/// Returns the keys of the lists under an identifier that do not match their own checksums. The
/// lists do not cross the wire.
///
/// # Errors
/// A failed command.
pub(super) async fn damaged(drive: &Drive, object: ObjectId) -> Result<Vec<Key>, Error> {
    let (mut found, front) = (Vec::new(), u32::try_from(Header::SIZE).expect("32"));
    for key in list_keys(drive, object).await? {
        // The drive compares the whole value, however little it returns.
        match drive.objects.front(&key, front).await {
            Ok(_) => {}
            Err(error) if is_damage(error.status()) => found.push(key),
            Err(error) => return Err(Error::command(drive, error)),
        }
    }
    Ok(found)
}

impl Lists {
    /// Reads the lists of these identifiers.
    ///
    /// # Errors
    /// A failed command.
    pub(super) async fn read(drive: &Rc<Drive>, objects: &[ObjectId]) -> Result<Self, Error> {
        let program = match program_index(drive, pages::PROGRAM_ID).await {
            Ok(program) => Some(program),
            Err(Error::Corrupt { .. }) => None,
            Err(error) => return Err(error),
        };
        let (places, page_bytes) = (BTreeMap::new(), None);
        let mut lists = Self { drive: Rc::clone(drive), program, places, page_bytes };
        for object in objects {
            for key in list_keys(drive, *object).await? {
                let value = match drive.objects.retrieve(&key, LIST_BYTES_MAX).await {
                    Ok(value) => value,
                    // A damaged list names nothing.
                    Err(error) if error.status().is_some() => None,
                    Err(error) => return Err(Error::command(drive, error)),
                };
                let Some(list) = value.and_then(|value| List::parse(&value).ok()) else { continue };
                let number = number_of(&key);
                lists.page_bytes = Some(list.page_bytes);
                for (piece, of_piece) in (0..).zip(&list.pieces) {
                    let pages = of_piece.bytes.div_ceil(list.page_bytes) as usize;
                    lists.places.insert((*object, of_piece.start), Listed { number, piece, pages });
                }
            }
        }
        Ok(lists)
    }

    /// Returns the size of the pages, bytes, if there is a list.
    pub(super) fn page_bytes(&self) -> Option<u32> {
        self.page_bytes
    }

    /// Returns true if a list names a piece of an object.
    pub(super) fn has(&self, piece: &Piece, object: ObjectId) -> bool {
        self.places.contains_key(&piece.listed_as(object))
    }

    /// Returns the pages of a piece of an object that differ from their checksums; none if all do,
    /// because then the piece is another one.
    ///
    /// # Errors
    /// A lost drive.
    pub(super) async fn differing(
        &self,
        piece: &Piece,
        object: ObjectId,
    ) -> Result<Vec<u32>, Error> {
        let (object, start) = piece.listed_as(object);
        let (Some(listed), Some(program)) = (self.places.get(&(object, start)), self.program)
        else {
            return Ok(Vec::new());
        };
        let Listed { number, piece, pages } = *listed;
        let (mut found, mut from) = (Vec::new(), 0);
        while found.len() < PAGES_MAX {
            let task = Task { nsid: OBJECTS_NSID, object: object.0, number, piece, from };
            let done = self.drive.compute.execute(program, &task.execution()).await;
            let result = match done {
                Ok(result) => result,
                // It is missing, or its medium fails.
                Err(error) if error.status().is_some() => return Ok(found),
                Err(error) => return Err(Error::command(&self.drive, error)),
            };
            let [a, b, c, d, count @ ..] = result.to_le_bytes();
            let (page, count) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(count));
            if page == NONE || count as usize == pages {
                break;
            }
            found.push(page);
            from = page + 1;
        }
        Ok(found)
    }
}
