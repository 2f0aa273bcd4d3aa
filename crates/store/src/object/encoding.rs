//! [`Encoding`]: an object whose stored chunks are encoded, and the pieces that this stores.
//!
//! It computes nothing: hosts do so in [`super::encode`], drives in [`super::in_drives`].

use std::cell::RefCell;
use std::rc::Rc;

use csd_kernels::erasure::Code;
use csd_reactor::Buffer;

use super::Error;
use super::pages::{Listed, Lists};
use crate::array::{Array, Drive, DriveSlot};
use crate::catalogue::{Entry, Placement};
use crate::layout::Stripes;
use crate::link::Link;
use crate::pace::Pace;
use crate::piece::Spot;
use crate::room::{self, Left};

/// A piece by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// A chunk.
    Chunk(u32),
    /// A parity piece, by its number among all.
    Parity(u32),
}

/// A parity piece with its CRC-32C.
pub(super) type Piece = (Buffer, u32);

/// Parity of an object.
#[derive(Default)]
pub(super) struct Encoded {
    /// CRC-32C of every chunk.
    pub(super) chunk_sums: Vec<u32>,
    /// CRC-32C of every parity piece.
    pub(super) sums: Vec<u32>,
    /// Pieces that no drive has acknowledged.
    pub(super) lost: Vec<Number>,
}

/// A whole object that is spread: the drive that has it, and its entry before.
pub(super) type Origin = (Rc<Drive>, Entry);

/// An object that is being encoded from its stored chunks.
pub(super) struct Encoding {
    pub(super) entry: Entry,
    pub(super) origin: Option<Origin>,
    pub(super) stripes: Stripes,
    pub(super) code: Code,
    pub(super) slots: Vec<DriveSlot>,
    /// By place, as the slots.
    pub(super) links: Vec<Rc<Link>>,
    pub(super) pace: Rc<Pace>,
    /// Page lists of the pieces that this host stores, if pages get checksums.
    pub(super) lists: RefCell<Option<Lists>>,
}

impl Encoding {
    /// Checks that the drives have room for the pieces that will be stored. Returns what is left
    /// then.
    pub(super) async fn check_room(&self, array: &Array) -> Result<Left, Error> {
        let of_stripe = |stripe| self.written(stripe).map(move |piece| (stripe, piece));
        let pieces = (0..self.stripes.count()).flat_map(of_stripe);
        let pieces = pieces.filter_map(|(stripe, piece)| {
            let (spot, bytes) = self.spot(stripe, piece);
            let drive = self.stripes.drive(stripe, piece)?;
            Some((drive, (!spot.is_on_blocks()).then_some(bytes)))
        });
        room::check(array, pieces).await
    }

    /// Returns the pieces of a stripe that are stored: the parity, and the chunks if they are
    /// copied.
    pub(super) fn written(&self, stripe: u32) -> impl Iterator<Item = usize> {
        let first = if self.origin.is_some() { 0 } else { self.stripes.scheme().data() };
        self.stripes.pieces(stripe).filter(move |piece| *piece >= first)
    }

    /// Returns true if chunks are copied to blocks, whose units were claimed for them.
    pub(super) fn writes_blocks(&self) -> bool {
        self.origin.is_some() && self.entry.placement != Placement::Kv
    }

    /// Returns the place where a piece is stored, and its length.
    pub(super) fn spot(&self, stripe: u32, piece: usize) -> (Spot, u32) {
        match self.stripes.chunks(stripe).get(piece) {
            Some(chunk) => {
                let layout = self.entry.layout();
                (Spot::of_chunk(&self.entry, &layout, *chunk), layout.chunk_len(*chunk))
            }
            None => {
                let number =
                    self.stripes.parity_number(stripe, piece - self.stripes.scheme().data());
                let id = self.entry.parity_id().expect("it is protected");
                let number = u32::try_from(number).expect("fewer pieces than 2^20");
                (Spot::Value(id, number), self.stripes.parity_bytes(stripe))
            }
        }
    }

    /// Returns the place of a piece in its drive's page lists, if it has one.
    pub(super) fn listed(&self, drive: &Drive, spot: Spot, bytes: usize) -> Option<Listed> {
        self.lists.borrow_mut().as_mut()?.listed(drive.index.into(), spot, self.entry.id, bytes)
    }

    /// Returns the number of a piece.
    pub(super) fn number(&self, stripe: u32, piece: usize) -> Number {
        match self.stripes.chunks(stripe).get(piece) {
            Some(chunk) => Number::Chunk(*chunk),
            None => {
                let parity = piece - self.stripes.scheme().data();
                let number = self.stripes.parity_number(stripe, parity);
                Number::Parity(u32::try_from(number).expect("fewer pieces than 2^20"))
            }
        }
    }

    /// Returns the drive that has a chunk, and the entry that says where.
    pub(super) fn source(&self, stripe: u32, piece: usize) -> Result<(&Rc<Drive>, &Entry), Error> {
        match &self.origin {
            Some((drive, entry)) => Ok((drive, entry)),
            None => Ok((self.drive(stripe, piece)?, &self.entry)),
        }
    }

    /// Returns the drive of a piece.
    pub(super) fn drive(&self, stripe: u32, piece: usize) -> Result<&Rc<Drive>, Error> {
        let index = self.stripes.drive(stripe, piece).expect("a piece of the stripe");
        Ok(self.slots[index].up()?)
    }
}
