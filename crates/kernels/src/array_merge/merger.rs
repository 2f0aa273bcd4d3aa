//! Merges keys: takes a block of each input and writes their merge.
//!
//! Holds at most one block of each input and the merge of two in memory. Invariant: every element
//! is compared with the one before it, across pieces, before it is merged.

use super::key::Key;
use super::{Error, Piece, Side, Taken};
use crate::arch::array_merge::{Functions, SLACK};
use crate::numeric::Numeric;

/// Number of elements taken from an input at once: two blocks and their merge stay in near caches.
const BLOCK: usize = 2048;
/// Shortest run of keys of one input alone that is copied instead of merged.
const RUN: usize = 128;

/// Merge in progress over elements of one size.
#[derive(Clone, Debug)]
pub(super) struct Merger<K: Key> {
    element: Numeric,
    functions: Functions<K>,
    sides: [Input<K>; 2],
    last: Option<K>,
    merged: Vec<K::Raw>,
    failed: Option<Error>,
}

/// Input: its elements that were taken but not merged, and the state of its check.
#[derive(Clone, Debug)]
struct Input<K: Key> {
    side: Side,
    held: Vec<K::Raw>,
    at: usize,
    previous: K,
    elements: u64,
    last: bool,
}

impl<K: Key> Input<K> {
    fn new(side: Side) -> Self {
        Self { side, held: Vec::new(), at: 0, previous: K::MIN, elements: 0, last: false }
    }

    /// Takes a block from the front of `piece` and checks it. Returns integers in place; converts
    /// floating numbers into keys and holds those.
    fn take<'p>(
        &mut self,
        functions: &Functions<K>,
        float: bool,
        piece: &mut Piece<'p>,
    ) -> Result<&'p [K::Raw], Error> {
        let count = BLOCK.min(piece.bytes.len() / K::BYTES);
        let (front, rest) = piece.bytes.split_at(count * K::BYTES);
        let block = K::raws(front);
        let right = if float {
            self.at = 0;
            self.held.resize(count, K::MIN.to_raw());
            (functions.decode)(block, self.previous, &mut self.held)
        } else {
            (functions.sorted)(block, self.previous)
        };
        if !right {
            return Err(self.fault(block, float));
        }
        let last = if float { self.held.last() } else { block.last() };
        self.previous = last.map_or(self.previous, |last| K::from_raw(*last));
        self.elements += count as u64;
        piece.bytes = rest;
        self.last = piece.last && rest.is_empty();
        Ok(if float { &[] } else { block })
    }

    /// Returns the first error in a block that did not pass its check.
    fn fault(&self, block: &[K::Raw], float: bool) -> Error {
        let (side, mut previous) = (self.side, self.previous);
        for (index, element) in block.iter().enumerate() {
            let at = self.elements + index as u64;
            match K::of(*element, float) {
                None => return Error::Nan { side, at },
                Some(key) if key < previous => return Error::NotSorted { side, at },
                Some(key) => previous = key,
            }
        }
        unreachable!("a version refused a sorted block")
    }
}

/// Next keys of an input, either in the caller's piece or held.
struct Front<'p, 'i, K: Key> {
    piece: Piece<'p>,
    block: &'p [K::Raw],
    input: &'i mut Input<K>,
}

impl<K: Key> Front<'_, '_, K> {
    fn keys(&self) -> &[K::Raw] {
        if self.block.is_empty() { &self.input.held[self.input.at..] } else { self.block }
    }

    /// Takes a block if there are no next keys.
    fn refill(&mut self, functions: &Functions<K>, float: bool) -> Result<(), Error> {
        if self.keys().is_empty() {
            self.block = self.input.take(functions, float, &mut self.piece)?;
        }
        Ok(())
    }

    /// Returns true if there are no next keys yet and the input is not over.
    fn waits(&self) -> bool {
        self.keys().is_empty() && !self.input.last
    }

    fn consume(&mut self, count: usize) {
        if self.block.is_empty() {
            self.input.at += count;
        } else {
            self.block = &self.block[count..];
        }
    }

    /// Holds the rest of a block, because the piece is only borrowed.
    fn hold(&mut self) {
        if !self.block.is_empty() {
            self.input.held.clear();
            self.input.held.extend_from_slice(self.block);
            self.input.at = 0;
        }
    }
}

impl<K: Key> Merger<K> {
    pub(super) fn new(element: Numeric, functions: Functions<K>) -> Self {
        Self {
            element,
            functions,
            sides: [Input::new(Side::Left), Input::new(Side::Right)],
            last: None,
            merged: vec![K::MIN.to_raw(); 2 * BLOCK + SLACK],
            failed: None,
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

    fn run(&mut self, pieces: [Piece<'_>; 2], sink: &mut dyn FnMut(&[u8])) -> Result<Taken, Error> {
        for piece in &pieces {
            self.element.elements(piece.bytes).map_err(Error::Misaligned)?;
        }
        let float = matches!(self.element, Numeric::F32 | Numeric::F64);
        let [left, right] = &mut self.sides;
        let mut left = Front { piece: pieces[0], block: &[], input: left };
        let mut right = Front { piece: pieces[1], block: &[], input: right };
        loop {
            left.refill(&self.functions, float)?;
            right.refill(&self.functions, float)?;
            let nothing = left.keys().is_empty() && right.keys().is_empty();
            if nothing || left.waits() || right.waits() {
                break;
            }
            let (a, b) = (left.keys(), right.keys());
            let step = Step::next::<K>(a, b);
            let before = self.last.unwrap_or_else(|| first::<K>(a, b).other());
            let written = step.run(&self.functions, [a, b], before, &mut self.merged);
            left.consume(step.from_left);
            right.consume(step.from_right);
            let merged = &mut self.merged[..written];
            if let Some(last) = merged.last() {
                self.last = Some(K::from_raw(*last));
                if float {
                    (self.functions.encode)(merged);
                }
                sink(K::bytes(merged));
            }
        }
        left.hold();
        right.hold();
        let taken = |piece: Piece<'_>, front: Piece<'_>| piece.bytes.len() - front.bytes.len();
        Ok(Taken { left: taken(pieces[0], left.piece), right: taken(pieces[1], right.piece) })
    }
}

/// Returns the smallest of the next keys.
fn first<K: Key>(a: &[K::Raw], b: &[K::Raw]) -> K {
    let first = a.first().into_iter().chain(b.first()).map(|raw| K::from_raw(*raw)).min();
    first.expect("one block is not empty")
}

/// Number of keys of both inputs to process next, and the method.
#[derive(Clone, Copy)]
struct Step {
    from_left: usize,
    from_right: usize,
    way: Way,
}

/// Method by which keys are put into the result; equal ones are dropped.
#[derive(Clone, Copy)]
enum Way {
    /// Keys of the left are copied; the right has none of them, or the same ones.
    Left,
    /// Keys of the right are copied.
    Right,
    Merge,
}

impl Step {
    /// Chooses the next step. Copies keys that are the same in both inputs, or below all keys of
    /// the other; merges others as far as no smaller key can follow.
    fn next<K: Key>(a: &[K::Raw], b: &[K::Raw]) -> Self {
        let key = |keys: &[K::Raw], at: usize| K::from_raw(keys[at]);
        let through =
            |keys: &[K::Raw], high: K| keys.partition_point(|raw| K::from_raw(*raw) <= high);
        let (Some(a_last), Some(b_last)) = (a.len().checked_sub(1), b.len().checked_sub(1)) else {
            let way = if b.is_empty() { Way::Left } else { Way::Right };
            return Self { from_left: a.len(), from_right: b.len(), way };
        };
        let pairs = a.chunks_exact(RUN).zip(b.chunks_exact(RUN));
        let same = RUN * pairs.take_while(|(a, b)| K::bytes(a) == K::bytes(b)).count();
        if same > 0 {
            return Self { from_left: same, from_right: same, way: Way::Left };
        }
        if key(a, a_last.min(RUN)) <= key(b, 0) {
            return Self { from_left: through(a, key(b, 0)), from_right: 0, way: Way::Left };
        }
        if key(b, b_last.min(RUN)) <= key(a, 0) {
            return Self { from_left: 0, from_right: through(b, key(a, 0)), way: Way::Right };
        }
        let high = key(a, a_last).min(key(b, b_last));
        Self { from_left: through(a, high), from_right: through(b, high), way: Way::Merge }
    }

    fn run<K: Key>(
        self,
        functions: &Functions<K>,
        [a, b]: [&[K::Raw]; 2],
        before: K,
        out: &mut [K::Raw],
    ) -> usize {
        let (left, right) = (self.from_left, self.from_right);
        match self.way {
            Way::Left => (functions.unique)(&a[..left], before, out),
            Way::Right => (functions.unique)(&b[..right], before, out),
            Way::Merge => (functions.merge)(a, b, left + right, before, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::array_merge;

    #[test]
    fn positions_and_counters_go_on_beyond_32_bits() {
        // State after this many elements of both, the last of which was 5.
        const BEFORE: u64 = u32::MAX as u64 - 1;
        let mut merger = Merger::<i32>::new(Numeric::I32, array_merge::best().run.narrow);
        for side in &mut merger.sides {
            (side.elements, side.previous) = (BEFORE, 5);
        }
        merger.last = Some(5);
        let piece = |bytes| Piece { bytes, last: false };
        let bytes =
            |values: &[i32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
        let (left, right) = (bytes(&[5, 6, 8, 10]), bytes(&[7, 9, 11]));
        let mut merged = Vec::new();
        let mut sink = |bytes: &[u8]| merged.extend_from_slice(bytes);
        merger.feed([piece(&left), piece(&right)], &mut sink).unwrap();
        assert_eq!(merged, bytes(&[6, 7, 8, 9, 10]));
        assert_eq!(merger.elements(), 2 * BEFORE + 7);
        let error = merger.feed([piece(&bytes(&[12, 11])), piece(&[])], &mut |_| {}).unwrap_err();
        assert_eq!(error, Error::NotSorted { side: Side::Left, at: BEFORE + 5 });
    }
}
