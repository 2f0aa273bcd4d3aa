//! The merge over keys: a block of each input in, their merge out.
//!
//! Never: more than a block of an input, and the merge of two, in memory. Invariant: every element
//! is checked against the one before it, across pieces, before it counts.

use super::key::Key;
use super::{Error, Piece, Side, Taken};
use crate::arch::merge::{Functions, SLACK};
use crate::numeric::Numeric;

/// Elements of an input taken at once: the buffers of both stay in the nearest caches.
const BLOCK: usize = 4096;

/// A merge in progress over elements of one size.
#[derive(Clone, Debug)]
pub(super) struct Merger<K: Key> {
    element: Numeric,
    functions: Functions<K>,
    sides: [Input<K>; 2],
    last: Option<K>,
    merged: Vec<K>,
    bytes: Vec<u8>,
    failed: Option<Error>,
    /// Elements of the result.
    pub(super) written: u64,
}

/// One input: its block, and where the merge stands in it.
#[derive(Clone, Debug)]
struct Input<K> {
    side: Side,
    block: Vec<K>,
    at: usize,
    previous: K,
    elements: u64,
    last: bool,
}

impl<K: Key> Input<K> {
    fn new(side: Side) -> Self {
        Self { side, block: Vec::new(), at: 0, previous: K::MIN, elements: 0, last: false }
    }

    fn keys(&self) -> &[K] {
        &self.block[self.at..]
    }

    /// Nothing at hand, and nothing to come.
    fn is_over(&self) -> bool {
        self.last && self.keys().is_empty()
    }

    /// Takes a block from the front of `piece`, if none is at hand.
    fn refill(
        &mut self,
        functions: &Functions<K>,
        float: bool,
        piece: &mut Piece<'_>,
    ) -> Result<usize, Error> {
        if !self.keys().is_empty() {
            return Ok(0);
        }
        let count = BLOCK.min(piece.bytes.len() / K::BYTES);
        let (front, rest) = piece.bytes.split_at(count * K::BYTES);
        self.at = 0;
        self.block.resize(count, K::MIN);
        if !(functions.decode)(front, float, self.previous, &mut self.block) {
            return Err(self.fault(front, float));
        }
        self.previous = self.block.last().copied().unwrap_or(self.previous);
        self.elements += count as u64;
        piece.bytes = rest;
        self.last = piece.last && rest.is_empty();
        Ok(front.len())
    }

    /// What is wrong with a block that did not pass its check: the first element that is.
    fn fault(&self, bytes: &[u8], float: bool) -> Error {
        let (side, mut previous) = (self.side, self.previous);
        for (index, element) in bytes.chunks_exact(K::BYTES).enumerate() {
            let at = self.elements + index as u64;
            match K::of(element, float) {
                None => return Error::Nan { side, at },
                Some(key) if key < previous => return Error::NotSorted { side, at },
                Some(key) => previous = key,
            }
        }
        unreachable!("a version refused a sorted block")
    }
}

impl<K: Key> Merger<K> {
    pub(super) fn new(element: Numeric, functions: Functions<K>) -> Self {
        Self {
            element,
            functions,
            sides: [Input::new(Side::Left), Input::new(Side::Right)],
            last: None,
            merged: vec![K::MIN; 2 * BLOCK + SLACK],
            bytes: vec![0; 2 * BLOCK * K::BYTES],
            failed: None,
            written: 0,
        }
    }

    pub(super) fn elements(&self) -> u64 {
        self.sides[0].elements + self.sides[1].elements
    }

    pub(super) fn feed(
        &mut self,
        pieces: [Piece<'_>; 2],
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Taken, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.run(pieces, sink);
        self.failed = result.err();
        result
    }

    fn run(
        &mut self,
        mut pieces: [Piece<'_>; 2],
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Taken, Error> {
        for piece in &pieces {
            self.element.elements(piece.bytes).map_err(Error::Misaligned)?;
        }
        let float = matches!(self.element, Numeric::F32 | Numeric::F64);
        let mut taken = [0; 2];
        loop {
            for (index, side) in self.sides.iter_mut().enumerate() {
                taken[index] += side.refill(&self.functions, float, &mut pieces[index])?;
            }
            let [left, right] = &self.sides;
            let nothing = left.keys().is_empty() && right.keys().is_empty();
            let waits = |input: &Input<K>| input.keys().is_empty() && !input.is_over();
            if nothing || waits(left) || waits(right) {
                return Ok(Taken { left: taken[0], right: taken[1] });
            }
            self.step(float, sink);
        }
    }

    /// Merges until a block is used up, or copies on when the other input is over.
    fn step(&mut self, float: bool, sink: &mut dyn FnMut(&[u8])) {
        let [left, right] = &mut self.sides;
        let first = left.keys().first().into_iter().chain(right.keys().first()).min();
        let first = *first.expect("one block is not empty");
        let before = self.last.unwrap_or(first.other());
        let (a, b) = (left.keys(), right.keys());
        // Blocks that do not overlap need no merge: the lower one goes first, as it is.
        let alone = match (a.last(), b.last()) {
            (Some(_), None) => Some(0),
            (None, _) => Some(1),
            (Some(high), Some(_)) if *high < b[0] => Some(0),
            (Some(_), Some(high)) if *high < a[0] => Some(1),
            _ => None,
        };
        let (from_left, from_right, written) = match alone {
            Some(0) => (a.len(), 0, (self.functions.unique)(a, before, &mut self.merged)),
            Some(_) => (0, b.len(), (self.functions.unique)(b, before, &mut self.merged)),
            None => (self.functions.merge)(a, b, before, &mut self.merged),
        };
        left.at += from_left;
        right.at += from_right;
        let merged = &self.merged[..written];
        if let Some(last) = merged.last() {
            self.last = Some(*last);
            self.written += written as u64;
            let bytes = &mut self.bytes[..written * K::BYTES];
            (self.functions.encode)(merged, float, bytes);
            sink(bytes);
        }
    }
}
