//! [`ListedPieces`]: the pieces of an object on a drive that have page lists; and lists that are
//! damaged.
//!
//! Only the fronts of lists cross the wire. Writes nothing.

use std::collections::BTreeMap;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::vendor::pages::{Front, Header};
use csd_reactor::Buffer;

use crate::array::Drive;
use crate::catalogue::ObjectId;
use crate::error::Error;
use crate::piece::is_damage;
use crate::sweep::list_keys;

/// Bytes of a list that are read at first: the front of some 250 pieces.
const FRONT_BYTES: u32 = 4 << 10;

/// The sound page lists of an object on a drive.
pub(crate) struct ListedPieces {
    pub(crate) drive: Rc<Drive>,
    /// Places of pieces in the lists, by identifier and start.
    places: BTreeMap<(ObjectId, u64), Listed>,
    /// Size of the pages of a list, bytes; `None` if there is no list.
    page_bytes: Option<u32>,
}

/// Place of a piece in a list.
#[derive(Clone, Copy)]
pub(crate) struct Listed {
    /// Number of the list.
    pub(crate) number: u32,
    /// Number of the piece in it.
    pub(crate) piece: u32,
    /// Number of the piece's pages.
    pub(crate) pages: usize,
}

impl ListedPieces {
    /// Reads the lists of these identifiers. A damaged one names nothing.
    ///
    /// # Errors
    /// A failed command.
    pub(crate) async fn read(drive: &Rc<Drive>, objects: &[ObjectId]) -> Result<Self, Error> {
        let (places, page_bytes) = (BTreeMap::new(), None);
        let mut listed = Self { drive: Rc::clone(drive), places, page_bytes };
        for object in objects {
            for key in list_keys(drive, *object).await? {
                let Some(front) = front(drive, &key).await? else { continue };
                let number = number_of(&key);
                listed.page_bytes = Some(front.page_bytes);
                for (piece, of_piece) in (0..).zip(&front.pieces) {
                    let pages = of_piece.bytes.div_ceil(front.page_bytes) as usize;
                    listed
                        .places
                        .insert((*object, of_piece.start), Listed { number, piece, pages });
                }
            }
        }
        Ok(listed)
    }

    /// Returns the size of the pages, bytes, if there is a list.
    pub(crate) fn page_bytes(&self) -> Option<u32> {
        self.page_bytes
    }

    /// Returns the entry of the piece that lists of this identifier name by this start.
    pub(crate) fn find(&self, listed_as: (ObjectId, u64)) -> Option<Listed> {
        self.places.get(&listed_as).copied()
    }
}

/// Returns the size of the pages of an object, bytes, as one of its lists on a drive says; `None`
/// if there is no sound list.
///
/// # Errors
/// A failed command.
pub(crate) async fn page_bytes(drive: &Drive, object: ObjectId) -> Result<Option<u32>, Error> {
    for key in list_keys(drive, object).await? {
        if let Some(front) = front(drive, &key).await? {
            return Ok(Some(front.page_bytes));
        }
    }
    Ok(None)
}

/// Returns the keys of the lists under an identifier that do not match their own checksums. The
/// lists do not cross the wire.
///
/// # Errors
/// A failed command.
pub(crate) async fn damaged(drive: &Drive, object: ObjectId) -> Result<Vec<Key>, Error> {
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

/// Returns the number of a list, from its key.
pub(super) fn number_of(key: &Key) -> u32 {
    let [.., a, b, c] = key.as_bytes() else { return 0 };
    u32::from_be_bytes([0, *a, *b, *c])
}

/// Returns the front of a list; `None` if it is gone or damaged.
async fn front(drive: &Drive, key: &Key) -> Result<Option<Front>, Error> {
    let Some((begin, whole)) = beginning(drive, key, FRONT_BYTES).await? else { return Ok(None) };
    let bytes = Front::bytes(&begin).filter(|bytes| *bytes <= whole);
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    let begin = match bytes {
        None => None,
        Some(bytes) if bytes <= FRONT_BYTES => Some(begin),
        Some(bytes) => beginning(drive, key, bytes).await?.map(|(begin, _)| begin),
    };
    Ok(begin.and_then(|begin| Front::parse(&begin).ok()))
}

/// Returns the first bytes of a value, and the length of all; `None` if it is gone or damaged.
async fn beginning(drive: &Drive, key: &Key, bytes: u32) -> Result<Option<(Buffer, u64)>, Error> {
    match drive.objects.front(key, bytes).await {
        Ok(read) => Ok(read),
        Err(error) if error.status().is_some() => Ok(None),
        Err(error) => Err(Error::command(drive, error)),
    }
}
