//! [`Place`]: going through the pieces of a list, and leaving out those that no medium can have.

use csd_buffer::{ITEM, worked};

use super::{List, Piece};

/// Place in a list, from its first piece on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    piece: usize,
    /// The piece's first checksum.
    sum: usize,
}

impl List {
    /// Returns the piece at a place with the checksums of its pages, and goes on to the next one;
    /// `None` behind the last.
    pub fn next(&self, place: &mut Place) -> Option<(Piece, &[u32])> {
        let piece = *self.pieces.get(place.piece)?;
        let begin = place.sum;
        *place = Place { piece: place.piece + 1, sum: begin + self.pages(&piece) };
        Some((piece, self.sums.get(begin..place.sum)?))
    }

    /// Returns a piece with the checksums of its pages. Goes through all pieces before it.
    #[must_use]
    pub fn piece(&self, number: usize) -> Option<(Piece, &[u32])> {
        let mut place = Place::default();
        std::iter::from_fn(|| self.next(&mut place)).nth(number)
    }

    /// Keeps those pieces, with their checksums, whose bytes lie before `end` and in no other piece
    /// that is kept: of two that overlap, the one that begins first.
    pub fn keep_apart(&mut self, end: u64) {
        let mut order: Vec<usize> = (0..self.pieces.len()).collect();
        order.sort_by_key(|number| self.pieces[*number].start);
        let (mut free, mut kept) = (0, vec![false; order.len()]);
        for number in order {
            worked(ITEM);
            let Piece { start, bytes } = self.pieces[number];
            let behind = start.saturating_add(bytes.into());
            if start >= free && behind <= end {
                (free, kept[number]) = (behind, true);
            }
        }
        let (mut place, mut pieces, mut sums) = (Place::default(), Vec::new(), Vec::new());
        let mut is_kept = kept.into_iter();
        while let (Some((piece, of_piece)), Some(kept)) = (self.next(&mut place), is_kept.next()) {
            if kept {
                pieces.push(piece);
                sums.extend_from_slice(of_piece);
            }
        }
        (self.pieces, self.sums) = (pieces, sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::location::LocationKind;

    fn list(pieces: Vec<Piece>, sums: Vec<u32>) -> List {
        let (kind, object) = (LocationKind::BLOCKS, [7; 12]);
        List { kind, nsid: 1, page_bytes: 4096, object, pieces, sums }
    }

    #[test]
    fn a_list_is_gone_through_piece_by_piece() {
        let piece = |start, bytes| Piece { start, bytes };
        let list = list(vec![piece(8192, 8193), piece(1 << 40, 1)], vec![1, 2, 3, 4]);
        let mut place = Place::default();
        assert_eq!(list.next(&mut place), list.piece(0));
        assert_eq!(list.next(&mut place), list.piece(1));
        assert_eq!((list.next(&mut place), list.next(&mut place)), (None, None));
    }

    #[test]
    fn pieces_that_overlap_or_lie_beyond_the_end_are_left_out() {
        let piece = |start, bytes| Piece { start, bytes };
        let pieces = vec![
            piece(90, 10),
            piece(20, 5),
            piece(0, 21),
            piece(91, 10),
            piece(30, 60),
            piece(u64::MAX - 9, 9),
            piece(30, 1),
            piece(29, 1),
        ];
        let mut list = list(pieces, (0..8).collect());
        list.keep_apart(100);
        let apart = vec![piece(90, 10), piece(0, 21), piece(30, 60), piece(29, 1)];
        assert_eq!((list.pieces, list.sums), (apart, vec![0, 2, 4, 7]));
    }
}
