//! [`Lists`]: names of damaged pages, by comparisons of a drive with its page lists.
//!
//! A piece without a list, and one that cannot be read at all, has no names. Writes nothing.

use std::rc::Rc;

use csd_nvme::vendor::pages::{self, NONE, Task};

use super::pieces::Piece;
use crate::array::{Drive, OBJECTS_NSID};
use crate::catalogue::ObjectId;
use crate::error::DriveError;
use crate::error::Error;
use crate::in_place::program_index;
use crate::pages::{Listed, ListedPieces};

/// Most pages of a piece that are named.
const PAGES_MAX: usize = 256;

/// The sound page lists of an object on a drive that compares pages with them.
pub(super) struct Lists {
    listed: ListedPieces,
    /// Index of the program that compares pages, if the drive has it.
    program: Option<u16>,
}

impl Lists {
    /// Reads the lists of these identifiers.
    ///
    /// # Errors
    /// A failed command.
    pub(super) async fn read(drive: &Rc<Drive>, objects: &[ObjectId]) -> Result<Self, Error> {
        let program = match program_index(drive, pages::PROGRAM_ID).await {
            Ok(program) => Some(program),
            Err(Error::Drive(DriveError::Corrupt { .. })) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { listed: ListedPieces::read(drive, objects).await?, program })
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
        let (Some(listed), Some(program)) = (self.listed.find((object, start)), self.program)
        else {
            return Ok(Vec::new());
        };
        let Listed { number, piece, pages } = listed;
        let (mut found, mut from) = (Vec::new(), 0);
        while found.len() < PAGES_MAX {
            let task = Task { nsid: OBJECTS_NSID, object: object.0, number, piece, from };
            let drive = &self.listed.drive;
            let result = match drive.compute.execute(program, &task.execution()).await {
                Ok(result) => result,
                // It is missing, or its medium fails.
                Err(error) if error.status().is_some() => return Ok(found),
                Err(error) => return Err(Error::command(drive, error)),
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
