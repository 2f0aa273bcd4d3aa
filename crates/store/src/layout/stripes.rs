//! [`Stripes`]: the stripes of a protected object, with the drives of their pieces.
//!
//! A stripe has one chunk each of up to n drives, and parity on k others. Chunks stay where the
//! layout puts them. Of a spread object a stripe is n consecutive chunks, or as many as there are
//! members if they are fewer. Of parts a stripe takes the next chunk of each of the n members that
//! have most chunks left, the first of equal ones; this gives the least number of stripes. A stripe
//! may therefore have fewer than n chunks; the others are empty, which the code counts as zeros.
//!
//! Parity goes to the drives that hold least parity so far, of equal ones to the first behind the
//! drive of the stripe's last chunk. Performs no I/O. Invariants: no drive holds two pieces of a
//! stripe; the same object gives the same stripes on every host, so this is a part of the format.

use std::ops::Range;

use super::{Layout, Scheme};
use crate::array::DriveIndex;

/// Stripes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stripes {
    scheme: Scheme,
    /// Position in `chunks` of the first chunk of every stripe, and the number of all chunks.
    firsts: Vec<usize>,
    /// Chunks by stripe and piece.
    chunks: Vec<u32>,
    /// Drives by stripe and piece, as `chunks`.
    drives: Vec<DriveIndex>,
    /// Drives of parity by stripe and piece.
    parity_drives: Vec<DriveIndex>,
    /// Length of the longest chunk of every stripe, bytes.
    lengths: Vec<u32>,
    /// Stripe and piece of every chunk.
    places: Vec<(u32, usize)>,
}

impl Stripes {
    /// Returns the stripes of an object whose members are these drives, with parity on drives of
    /// `group`.
    ///
    /// # Panics
    /// If the group has too few drives; parsing an entry excludes this.
    #[must_use]
    pub fn new(
        layout: &Layout,
        members: &[DriveIndex],
        scheme: Scheme,
        group: &[DriveIndex],
    ) -> Self {
        let width = width(scheme, members.len());
        let (firsts, chunks) = match layout {
            Layout::Spread(spread) => {
                let starts = (0..spread.chunks() as usize).step_by(width);
                (starts.chain([spread.chunks() as usize]).collect(), (0..spread.chunks()).collect())
            }
            Layout::Parts(_) => deal_chunks(layout, members.len(), width),
        };
        let drives: Vec<DriveIndex> =
            chunks.iter().map(|chunk| members[layout.member(*chunk)]).collect();
        let mut places = vec![(0, 0); chunks.len()];
        let (mut dealer, mut parity_drives) = (Dealer::new(scheme, group), Vec::new());
        let mut lengths = Vec::with_capacity(firsts.len() - 1);
        for (stripe, range) in (0..).zip(firsts.windows(2)) {
            let range = range[0]..range[1];
            parity_drives.extend(dealer.deal(&drives[range.clone()]));
            let of_stripe = &chunks[range];
            of_stripe.iter().enumerate().for_each(|(piece, chunk)| {
                places[*chunk as usize] = (stripe, piece);
            });
            lengths.push(of_stripe.iter().map(|chunk| layout.chunk_len(*chunk)).max().unwrap_or(0));
        }
        Self { scheme, firsts, chunks, drives, parity_drives, lengths, places }
    }

    /// Returns the numbers of pieces of a stripe.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the number of stripes.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.lengths.len()).expect("no more stripes than chunks")
    }

    /// Returns the chunks of a stripe: its data pieces from 0 on.
    #[must_use]
    pub fn chunks(&self, stripe: u32) -> &[u32] {
        &self.chunks[self.range(stripe)]
    }

    /// Returns the stripe of a chunk, and the number of its piece.
    #[must_use]
    pub fn position(&self, chunk: u32) -> (u32, usize) {
        self.places[chunk as usize]
    }

    /// Returns the numbers of the pieces that a stripe has: data, then parity from n on.
    pub fn pieces(&self, stripe: u32) -> impl Iterator<Item = usize> {
        (0..self.chunks(stripe).len()).chain(self.scheme.data()..self.scheme.pieces())
    }

    /// Returns the drive of a piece; `None` if the stripe has no such piece.
    #[must_use]
    pub fn drive(&self, stripe: u32, piece: usize) -> Option<DriveIndex> {
        match piece.checked_sub(self.scheme.data()) {
            None => self.drives[self.range(stripe)].get(piece).copied(),
            Some(parity) if parity < self.scheme.parity() => {
                Some(self.parity_drives[self.parity_number(stripe, parity)])
            }
            Some(_) => None,
        }
    }

    /// Returns the length of a stripe's parity pieces, which is that of its longest chunk, bytes.
    #[must_use]
    pub fn parity_bytes(&self, stripe: u32) -> u32 {
        self.lengths[stripe as usize]
    }

    /// Returns the number of a parity piece, counted from 0, among all parity pieces.
    #[must_use]
    pub fn parity_number(&self, stripe: u32, parity: usize) -> usize {
        stripe as usize * self.scheme.parity() + parity
    }

    fn range(&self, stripe: u32) -> Range<usize> {
        self.firsts[stripe as usize]..self.firsts[stripe as usize + 1]
    }
}

/// Returns the greatest number of chunks of a stripe.
#[must_use]
pub fn width(scheme: Scheme, members: usize) -> usize {
    scheme.data().min(members).max(1)
}

/// Returns the number of stripes of an object with so many members.
#[must_use]
pub fn stripes(layout: &Layout, members: usize, scheme: Scheme) -> u32 {
    let width = u32::try_from(width(scheme, members)).expect("at most 32");
    let least = layout.chunks().div_ceil(width);
    match layout {
        Layout::Spread(_) => least,
        Layout::Parts(_) => {
            least.max((0..members).map(|member| layout.count(member)).max().unwrap_or(0))
        }
    }
}

/// Deals the chunks of parts to stripes.
fn deal_chunks(layout: &Layout, members: usize, width: usize) -> (Vec<usize>, Vec<u32>) {
    let mut left = vec![std::collections::VecDeque::new(); members];
    (0..layout.chunks()).for_each(|chunk| left[layout.member(chunk)].push_back(chunk));
    let (mut firsts, mut chunks) = (vec![0], Vec::with_capacity(layout.chunks() as usize));
    while chunks.len() < layout.chunks() as usize {
        let mut fullest: Vec<usize> = (0..members).filter(|one| !left[*one].is_empty()).collect();
        fullest.sort_by_key(|member| std::cmp::Reverse(left[*member].len()));
        fullest.truncate(width);
        fullest.sort_unstable();
        chunks.extend(fullest.into_iter().filter_map(|member| left[member].pop_front()));
        firsts.push(chunks.len());
    }
    (firsts, chunks)
}

/// Deals parity pieces to drives, stripe by stripe.
#[derive(Clone, Debug)]
pub struct Dealer {
    parity: usize,
    group: Vec<DriveIndex>,
    /// Parity pieces that each drive of the group holds.
    held: Vec<u32>,
}

impl Dealer {
    /// Returns a dealer to the drives of `group`.
    #[must_use]
    pub fn new(scheme: Scheme, group: &[DriveIndex]) -> Self {
        Self { parity: scheme.parity(), group: group.to_vec(), held: vec![0; group.len()] }
    }

    /// Returns the drives of the parity of the next stripe, whose chunks are on the drives `data`.
    ///
    /// # Panics
    /// If the group has too few other drives.
    pub fn deal(&mut self, data: &[DriveIndex]) -> Vec<DriveIndex> {
        let last = data.last().and_then(|last| self.group.iter().position(|one| one == last));
        let (behind, count) = (last.map_or(0, |last| last + 1), self.group.len());
        let around = (0..count).map(|step| (behind + step) % count);
        let mut free: Vec<usize> =
            around.filter(|index| !data.contains(&self.group[*index])).collect();
        free.sort_by_key(|index| self.held[*index]);
        free.truncate(self.parity);
        assert_eq!(free.len(), self.parity, "the group has a drive for every piece");
        free.iter().for_each(|index| self.held[*index] += 1);
        free.into_iter().map(|index| self.group[index]).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Kind, Part, Parts, Spread};
    use super::*;

    fn scheme(data: usize, parity: usize) -> Scheme {
        Scheme::new(data, parity).unwrap()
    }

    fn spread(chunks: u64, members: u16, offset: u16) -> Layout {
        Layout::Spread(Spread { bytes: chunks * 4096 - 1, chunk_bytes: 4096, members, offset })
    }

    fn parts(members: u16, lengths: &[u64]) -> Layout {
        let part = |(index, bytes): (usize, &u64)| {
            let member = u16::try_from(index).unwrap() % members;
            Part { member, number: 0, bytes: *bytes, mark: 0 }
        };
        let parts = lengths.iter().enumerate().map(part).collect();
        Layout::Parts(Parts::new(Kind::Range, 4096, members, parts).unwrap().unwrap())
    }

    /// Checks that every chunk is in one stripe, and every piece of a stripe on a drive of its own.
    fn check(layout: &Layout, members: u16, scheme: Scheme, group: &[DriveIndex]) -> Stripes {
        let members: Vec<DriveIndex> = group[..usize::from(members)].to_vec();
        let made = Stripes::new(layout, &members, scheme, group);
        assert_eq!(made.count(), stripes(layout, members.len(), scheme));
        let mut seen = vec![0; layout.chunks() as usize];
        for stripe in 0..made.count() {
            let drives: Vec<_> =
                made.pieces(stripe).map(|piece| made.drive(stripe, piece).unwrap()).collect();
            let different: BTreeSet<_> = drives.iter().collect();
            assert_eq!(different.len(), drives.len(), "stripe {stripe}: {drives:?}");
            assert!((1..=scheme.data()).contains(&made.chunks(stripe).len()));
            for (piece, chunk) in made.chunks(stripe).iter().enumerate() {
                assert_eq!(made.position(*chunk), (stripe, piece));
                assert_eq!(made.drive(stripe, piece), Some(members[layout.member(*chunk)]));
                assert!(layout.chunk_len(*chunk) <= made.parity_bytes(stripe));
                seen[*chunk as usize] += 1;
            }
            assert_eq!(made.drive(stripe, scheme.pieces()), None);
        }
        assert!(seen.iter().all(|times| *times == 1), "{seen:?}");
        made
    }

    /// Returns the least and the greatest number of parity pieces of a drive of the group.
    fn spans(made: &Stripes, group: &[DriveIndex]) -> (usize, usize) {
        let held =
            |drive: &DriveIndex| made.parity_drives.iter().filter(|one| *one == drive).count();
        let held: Vec<usize> = group.iter().map(held).collect();
        (*held.iter().min().unwrap(), *held.iter().max().unwrap())
    }

    #[test]
    fn every_chunk_is_in_one_stripe_and_no_drive_holds_two_of_its_pieces() {
        let lengths = [5000, 0, 4096, 1, 20_000, 60_000, 0, 8192, 100_000, 3];
        for (data, parity) in [(1, 1), (2, 2), (4, 2), (3, 5)] {
            let scheme = scheme(data, parity);
            for more in 0..3 {
                let group: Vec<DriveIndex> =
                    (0..scheme.pieces() + more).map(DriveIndex::new).collect();
                for members in 1..=u16::try_from(group.len()).unwrap() {
                    for chunks in [0, 1, data as u64, data as u64 + 1, 50] {
                        let layout = match chunks {
                            0 => parts(members, &[]),
                            chunks => spread(chunks, members, members - 1),
                        };
                        check(&layout, members, scheme, &group);
                    }
                    check(&parts(members, &lengths), members, scheme, &group);
                }
            }
        }
    }

    #[test]
    fn parity_is_spread_evenly() {
        for (data, parity, drives) in
            [(4, 2, 6), (4, 2, 7), (4, 2, 9), (2, 1, 4), (8, 3, 12), (1, 1, 5), (3, 3, 6)]
        {
            let group: Vec<DriveIndex> = (0..drives).map(DriveIndex::from).collect();
            for offset in 0..drives {
                let layout = spread(u64::from(drives) * 40, drives, offset);
                let made = check(&layout, drives, scheme(data, parity), &group);
                let (least, most) = spans(&made, &group);
                assert!(most - least <= 2, "{data}+{parity} on {drives}: {least} to {most}");
            }
        }
    }

    #[test]
    fn stripes_of_parts_are_as_few_as_possible_and_begin_with_the_fullest_members() {
        let group: Vec<DriveIndex> = (0..6).map(DriveIndex::from).collect();
        let layout = parts(3, &[40_960, 4096, 8192]);
        let made = check(&layout, 3, scheme(2, 1), &group);
        assert_eq!(made.count(), 10);
        assert_eq!(
            (made.chunks(0), made.chunks(1), made.chunks(9)),
            (&[0, 11][..], &[1, 10][..], &[9][..])
        );
    }

    #[test]
    fn parity_has_the_length_of_the_longest_chunk() {
        let group: Vec<DriveIndex> = (0..3).map(DriveIndex::from).collect();
        let layout =
            Layout::Spread(Spread { bytes: 5000, chunk_bytes: 4096, members: 3, offset: 0 });
        let made = Stripes::new(&layout, &group, scheme(2, 1), &group);
        assert_eq!(
            (made.count(), made.parity_bytes(0), made.drive(0, 2)),
            (1, 4096, Some(group[2]))
        );
        let layout = Layout::Spread(Spread { bytes: 1, chunk_bytes: 4096, members: 3, offset: 2 });
        let made = Stripes::new(&layout, &group, scheme(2, 1), &group);
        assert_eq!(
            (made.parity_bytes(0), made.drive(0, 0), made.drive(0, 1)),
            (1, Some(group[2]), None)
        );
        assert_eq!(made.drive(0, 2), Some(group[0]));
    }
}
