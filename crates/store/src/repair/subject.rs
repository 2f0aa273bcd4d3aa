//! [`Subject`]: a protected object that is repaired, with the state of each of its pieces.
//!
//! Performs no I/O. Invariant: a piece is [`PieceState::Good`] only after a drive or the host has
//! compared it with its digest, and one that was rebuilt only after its own drive has.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use csd_kernels::erasure::Code;
use csd_reactor::{Instant, now};

use super::fleet::Fleet;
use super::known_pieces::KnownPieces;
use super::piece::Piece;
use crate::array::{Drive, DriveIndex};
use crate::catalogue::Entry;
use crate::layout::{Layout, Stripes};
use crate::piece::Spot;

/// State of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceState {
    /// It may be there, and was not read.
    Unknown,
    /// It is there and has its digest.
    Good,
    /// It is missing, damaged, or another one than was put.
    Bad,
    /// It is bad, and could not be stored again.
    Failed,
}

/// A protected object.
pub(super) struct Subject {
    pub(super) entry: Rc<Entry>,
    layout: Layout,
    stripes: Stripes,
    code: Code,
    /// By stripe and number.
    states: RefCell<Vec<PieceState>>,
    /// Time of the last look at the object's entry.
    pub(super) looked: Cell<Instant>,
    /// True once the object is known to be removed.
    pub(super) is_gone: Cell<bool>,
    /// Drives on which its blocks are marked as not all written.
    unwritten: Vec<DriveIndex>,
}

impl Subject {
    /// Returns the subject with pieces that are there by name; `None` if the object is not
    /// protected.
    pub(super) fn new(fleet: &Fleet, entry: &Entry, known: &KnownPieces) -> Option<Self> {
        let (protection, _) = entry.protected()?;
        let stripes = entry.stripes()?;
        let count = stripes.count() as usize * protection.scheme.pieces();
        let subject = Self {
            entry: Rc::new(entry.clone()),
            layout: entry.layout(),
            code: protection.scheme.code(),
            states: RefCell::new(vec![PieceState::Unknown; count]),
            stripes,
            looked: Cell::new(now()),
            is_gone: Cell::new(false),
            unwritten: (0..entry.members.len())
                .filter(|member| known.is_unwritten(*member))
                .map(|member| entry.members[member])
                .collect(),
        };
        for stripe in 0..subject.stripes.count() {
            for number in subject.stripes.pieces(stripe) {
                let drive = subject.drive(stripe, number);
                let is_there = match subject.spot(stripe, number) {
                    // Also one that the entry lists as missing: a medium that was lost may be back.
                    // Its bytes and their digest tell.
                    Spot::Blocks(_) => {
                        let chunk = subject.stripes.chunks(stripe)[number];
                        known.has_unit(subject.layout.member(chunk), subject.byte(chunk))
                    }
                    Spot::Value(id, key) => known.has_value(drive, id, key),
                };
                if !is_there && fleet.drive(drive).is_some() {
                    subject.set(stripe, number, PieceState::Bad);
                }
            }
        }
        Some(subject)
    }

    /// Returns the stripes.
    pub(super) fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    /// Returns the code.
    pub(super) fn code(&self) -> &Code {
        &self.code
    }

    /// Returns the layout.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns every piece, by stripe and number.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, usize)> {
        let of = |stripe| self.stripes.pieces(stripe).map(move |number| (stripe, number));
        (0..self.stripes.count()).flat_map(of)
    }

    /// Returns the index of a piece's drive.
    pub(super) fn drive(&self, stripe: u32, number: usize) -> DriveIndex {
        self.stripes.drive(stripe, number).expect("a piece of the stripe")
    }

    /// Returns the length of a piece, bytes.
    pub(super) fn bytes(&self, stripe: u32, number: usize) -> u32 {
        match self.stripes.chunks(stripe).get(number) {
            Some(chunk) => self.layout.chunk_len(*chunk),
            None => self.stripes.parity_bytes(stripe),
        }
    }

    /// Returns the length of all pieces, bytes.
    pub(super) fn bytes_of_all(&self) -> u64 {
        self.all().map(|(stripe, number)| u64::from(self.bytes(stripe, number))).sum()
    }

    /// Returns the first byte of a chunk among its member's data.
    fn byte(&self, chunk: u32) -> u64 {
        u64::from(self.layout.local(chunk)) * u64::from(self.entry.chunk_bytes)
    }

    /// Returns the place of a piece on its drive.
    pub(super) fn spot(&self, stripe: u32, number: usize) -> Spot {
        let Some(chunk) = self.stripes.chunks(stripe).get(number).copied() else {
            let parity = self.stripes.parity_number(stripe, number - self.code.data());
            let parity = u32::try_from(parity).expect("fewer pieces than 2^20");
            return Spot::Value(self.entry.parity_id().expect("it is protected"), parity);
        };
        Spot::of_chunk(&self.entry, &self.layout, chunk)
    }

    fn sum(&self, stripe: u32, number: usize) -> u32 {
        let (_, parity) = self.entry.protected().expect("checked when it was made");
        match self.stripes.chunks(stripe).get(number) {
            Some(chunk) => self.entry.sum(*chunk).expect("a protected object has all sums"),
            None => parity.sums[self.stripes.parity_number(stripe, number - self.code.data())],
        }
    }

    /// Returns a piece, on its drive.
    pub(super) fn piece(&self, drive: &Rc<Drive>, stripe: u32, number: usize) -> Piece {
        Piece {
            number,
            drive: Rc::clone(drive),
            spot: self.spot(stripe, number),
            bytes: self.bytes(stripe, number),
            sum: self.sum(stripe, number),
        }
    }

    /// Returns the position of a piece among all states.
    fn position(&self, stripe: u32, number: usize) -> usize {
        stripe as usize * self.code.pieces() + number
    }

    /// Returns the state of a piece.
    pub(super) fn state(&self, stripe: u32, number: usize) -> PieceState {
        self.states.borrow()[self.position(stripe, number)]
    }

    /// Sets the state of a piece.
    pub(super) fn set(&self, stripe: u32, number: usize, state: PieceState) {
        self.states.borrow_mut()[self.position(stripe, number)] = state;
    }

    /// Returns the states of all pieces.
    pub(super) fn states(&self) -> Vec<PieceState> {
        self.states.borrow().clone()
    }

    /// Takes over what an earlier look at the same pieces has found, except for pieces that have
    /// gone since.
    pub(super) fn remember(&self, before: &[PieceState]) {
        for (state, before) in self.states.borrow_mut().iter_mut().zip(before) {
            if *state == PieceState::Unknown
                && matches!(before, PieceState::Good | PieceState::Failed)
            {
                *state = *before;
            }
        }
    }

    /// Forgets what was found.
    pub(super) fn forget(&self) {
        self.states.borrow_mut().fill(PieceState::Unknown);
    }

    /// Returns the drives whose blocks are marked as not all written although all chunks there are
    /// good.
    pub(super) fn written_again(&self) -> impl Iterator<Item = DriveIndex> {
        let is_bad = |stripe, number| {
            self.spot(stripe, number).is_on_blocks()
                && self.state(stripe, number) != PieceState::Good
        };
        self.unwritten.iter().copied().filter(move |drive| {
            let mut on_drive = self.all().filter(|piece| self.drive(piece.0, piece.1) == *drive);
            !on_drive.any(|(stripe, number)| is_bad(stripe, number))
        })
    }

    /// Returns the pieces of a stripe in this state whose drives take part.
    pub(super) fn in_state(&self, fleet: &Fleet, stripe: u32, state: PieceState) -> Vec<usize> {
        let is_so = |number: &usize| {
            self.state(stripe, *number) == state
                && fleet.drive(self.drive(stripe, *number)).is_some()
        };
        self.stripes.pieces(stripe).filter(is_so).collect()
    }

    /// Returns the number of pieces that a stripe can lose before bytes are lost; negative if it
    /// has lost too many already.
    pub(super) fn margin(&self, fleet: &Fleet, stripe: u32) -> i32 {
        let count = |state| self.in_state(fleet, stripe, state).len();
        let left = count(PieceState::Good) + count(PieceState::Unknown);
        let small = |count: usize| i32::try_from(count).expect("at most 48 pieces");
        small(left) - small(self.stripes.chunks(stripe).len())
    }

    /// Returns the smallest redundancy of all stripes.
    pub(super) fn least_margin(&self, fleet: &Fleet) -> i32 {
        let margins = (0..self.stripes.count()).map(|stripe| self.margin(fleet, stripe));
        margins.min().unwrap_or(0)
    }

    /// Returns the stripes with bad pieces that have a drive, least redundancy first.
    pub(super) fn bad_stripes(&self, fleet: &Fleet) -> Vec<(i32, u32)> {
        let is_bad = |stripe: &u32| !self.in_state(fleet, *stripe, PieceState::Bad).is_empty();
        let mut bad: Vec<(i32, u32)> = (0..self.stripes.count())
            .filter(is_bad)
            .map(|stripe| (self.margin(fleet, stripe), stripe))
            .collect();
        bad.sort_unstable();
        bad
    }
}
