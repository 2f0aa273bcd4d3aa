//! [`Piece`]: the pieces of an object that a drive holds, and [`Batch`]: those of one execution.
//!
//! A piece is a chunk, or a parity piece of a protected object. Performs no I/O. Invariants: a
//! batch has at most [`CHUNKS_MAX`] pieces, and at most [`BATCH_BYTES`] unless it has one; all its
//! pieces but the last are full chunks, so that each is a page of `verify`.

use csd_nvme::vendor::execute::{CHUNKS_MAX, SourceData};

use super::Cause;
use crate::array::DriveIndex;
use crate::catalogue::{Entry, ObjectId};
use crate::layout::{Layout, Stripes};
use crate::piece::Spot;

/// Most bytes of an execution, so that a budget is kept evenly.
pub(super) const BATCH_BYTES: u64 = 32 << 20;

/// Name of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    /// Stripe; `None` if the object is not protected.
    pub(super) stripe: Option<u32>,
    /// Number in the stripe, or that of the chunk in the object's order.
    pub(super) piece: u32,
}

/// A piece that a drive holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) name: Name,
    pub(super) spot: Spot,
    /// True if it is parity.
    pub(super) is_parity: bool,
    /// Length, bytes.
    pub(super) bytes: u32,
    /// CRC-32C, if the catalogue has it.
    pub(super) sum: Option<u32>,
    /// True if the entry says that it was never stored.
    pub(super) is_missing: bool,
}

/// Pieces that one execution reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) pieces: Vec<Piece>,
    pub(super) bytes: u64,
}

/// An object with its stripes.
pub(super) struct Object {
    pub(super) entry: Entry,
    layout: Layout,
    /// Stripes, if its parity counts.
    stripes: Option<Stripes>,
}

impl Object {
    pub(super) fn new(entry: &Entry) -> Self {
        let stripes = entry.protected().and_then(|_| entry.stripes());
        Self { entry: entry.clone(), layout: entry.layout(), stripes }
    }

    /// Returns the identifiers of the page lists of its pieces.
    pub(super) fn identifiers(&self) -> Vec<ObjectId> {
        let parity = self.entry.protected().and_then(|_| self.entry.parity_id());
        [Some(self.entry.id), parity].into_iter().flatten().collect()
    }

    /// Returns the drives that may hold pieces, as indices into the array.
    pub(super) fn drives(&self) -> Vec<DriveIndex> {
        let mut drives = self.entry.members.clone();
        if let Some((protection, _)) = self.entry.protected() {
            drives.extend(&protection.group);
        }
        drives.sort_unstable();
        drives.dedup();
        drives
    }

    /// Returns the pieces on a drive: its chunks in order, then its parity pieces.
    pub(super) fn pieces(&self, drive: DriveIndex) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if let Some(member) = self.entry.members.iter().position(|member| *member == drive) {
            for run in self.layout.runs(member) {
                let chunks = (0..run.locals.end - run.locals.start)
                    .map(|step| run.first + step * run.stride);
                pieces.extend(chunks.map(|chunk| self.chunk(chunk)));
            }
        }
        if let Some(stripes) = &self.stripes {
            let parity =
                (0..stripes.scheme().parity()).map(|number| stripes.scheme().data() + number);
            for stripe in 0..stripes.count() {
                let here =
                    parity.clone().filter(|piece| stripes.drive(stripe, *piece) == Some(drive));
                pieces.extend(here.map(|piece| self.parity(stripes, stripe, piece)));
            }
        }
        pieces
    }

    fn chunk(&self, chunk: u32) -> Piece {
        let bytes = self.layout.chunk_len(chunk);
        let spot = Spot::of_chunk(&self.entry, &self.layout, chunk);
        let name = match &self.stripes {
            Some(stripes) => named(stripes.position(chunk)),
            None => Name { stripe: None, piece: chunk },
        };
        let is_missing = self.is_missing(name);
        let sum = self.entry.sum(chunk);
        Piece { name, spot, is_parity: false, bytes, sum, is_missing }
    }

    fn parity(&self, stripes: &Stripes, stripe: u32, piece: usize) -> Piece {
        let (_, parity) = self.entry.protected().expect("it has stripes");
        let at = stripes.parity_number(stripe, piece - stripes.scheme().data());
        let id = self.entry.parity_id().expect("it is protected");
        let number = u32::try_from(at).expect("fewer pieces than 2^20");
        let name = named((stripe, piece));
        Piece {
            name,
            spot: Spot::Value(id, number),
            is_parity: true,
            bytes: stripes.parity_bytes(stripe),
            sum: Some(parity.sums[at]),
            is_missing: self.is_missing(name),
        }
    }

    fn is_missing(&self, name: Name) -> bool {
        let (Some(stripe), Some((protection, parity))) = (name.stripe, self.entry.protected())
        else {
            return false;
        };
        parity.missing.has(protection.scheme, stripe, name.piece as usize)
    }
}

fn named((stripe, piece): (u32, usize)) -> Name {
    Name { stripe: Some(stripe), piece: u32::try_from(piece).expect("at most 48 pieces") }
}

impl Batch {
    /// Divides pieces, of which a full one has `chunk_bytes` bytes, among executions.
    pub(super) fn all(pieces: Vec<Piece>, chunk_bytes: u32) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for piece in pieces {
            let bytes = u64::from(piece.bytes);
            let has_room = |batch: &&mut Self| {
                batch.pieces.len() < CHUNKS_MAX as usize
                    && batch.bytes + bytes <= BATCH_BYTES
                    && batch.pieces.last().is_some_and(|last| last.bytes == chunk_bytes)
            };
            match all.last_mut().filter(has_room) {
                Some(batch) => batch.add(piece),
                None => all.push(Self::one(piece)),
            }
        }
        all
    }

    /// Returns a batch of one piece.
    pub(super) fn one(piece: Piece) -> Self {
        let mut batch = Self::default();
        batch.add(piece);
        batch
    }

    fn add(&mut self, piece: Piece) {
        self.bytes += u64::from(piece.bytes);
        self.pieces.push(piece);
    }

    /// Returns the checksums of the pieces; `None` if the catalogue does not have one.
    pub(super) fn sums(&self) -> Option<Vec<u32>> {
        self.pieces.iter().map(|piece| piece.sum).collect()
    }

    /// Returns the sources of the pieces, as few as possible.
    pub(super) fn sources(&self, block_bytes: u32) -> Vec<SourceData> {
        let mut sources: Vec<SourceData> = Vec::new();
        for piece in &self.pieces {
            let next = piece.spot.location(block_bytes).source(piece.bytes);
            if sources.last_mut().is_none_or(|last| !extend(last, next, block_bytes)) {
                sources.push(next);
            }
        }
        sources
    }
}

impl Piece {
    /// Returns the identifier of the page lists that may name the piece of an object with this
    /// identifier, and its start in them.
    pub(super) fn listed_as(&self, object: ObjectId) -> (ObjectId, u64) {
        let (_, _, id, start) = self.spot.listed(object);
        (id, start)
    }

    /// Returns true if single pages may be what is bad: a value that is intact is another one.
    pub(super) fn may_have_pages(&self, cause: Cause) -> bool {
        match self.spot {
            Spot::Value(..) => cause == Cause::Unreadable,
            Spot::Blocks(_) => matches!(cause, Cause::Differs | Cause::Unreadable),
        }
    }
}

/// Extends a source by the next piece; returns false if that is not possible.
fn extend(last: &mut SourceData, next: SourceData, block_bytes: u32) -> bool {
    match (last, next) {
        (
            SourceData::KvChunks { prefix, first, count, stride, .. },
            SourceData::KvChunks { prefix: of_next, first: number, .. },
        ) if *prefix == of_next && number > *first => {
            let distance = number - *first;
            if *count == 1 {
                *stride = distance;
            }
            let follows = u64::from(*count) * u64::from(*stride) == u64::from(distance);
            *count += u32::from(follows);
            follows
        }
        (
            SourceData::Blocks { slba, bytes, .. },
            SourceData::Blocks { slba: at, bytes: more, .. },
        ) => {
            let follows =
                bytes.is_multiple_of(block_bytes) && *slba + u64::from(*bytes / block_bytes) == at;
            *bytes += if follows { more } else { 0 };
            follows
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{BLOCK_NSID, OBJECTS_NSID};

    fn value(number: u32, bytes: u32) -> Piece {
        let name = Name { stripe: None, piece: number };
        let spot = Spot::Value(ObjectId([7; 12]), number);
        Piece { name, spot, is_parity: false, bytes, sum: Some(number), is_missing: false }
    }

    fn blocks(start: u64, bytes: u32) -> Piece {
        Piece { spot: Spot::Blocks(start), ..value(0, bytes) }
    }

    fn batch(pieces: Vec<Piece>) -> Batch {
        pieces.into_iter().fold(Batch::default(), |mut batch, piece| {
            batch.add(piece);
            batch
        })
    }

    #[test]
    fn a_short_piece_ends_a_batch_and_long_ones_have_few() {
        let lengths = [8192, 8192, 100, 8192, 8192];
        let pieces: Vec<Piece> = (0..).zip(lengths).map(|(at, bytes)| value(at, bytes)).collect();
        let all = Batch::all(pieces, 8192);
        let numbers = |batch: &Batch| batch.pieces.iter().map(|of| of.name.piece).collect();
        let numbers: Vec<Vec<u32>> = all.iter().map(numbers).collect();
        assert_eq!(numbers, [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!((all[0].bytes, all[0].sums()), (16_484, Some(vec![0, 1, 2])));
        let long = (0..9).map(|at| value(at, 8 << 20)).collect();
        let sizes = Batch::all(long, 8 << 20).into_iter().map(|batch| batch.pieces.len());
        assert_eq!(sizes.collect::<Vec<_>>(), [4, 4, 1]);
        let many = Batch::all((0..600).map(|at| value(at, 16)).collect(), 16);
        assert_eq!(many.iter().map(|batch| batch.pieces.len()).max(), Some(CHUNKS_MAX as usize));
    }

    #[test]
    fn numbers_at_equal_distances_and_adjacent_blocks_are_one_source() {
        let sources = |pieces| batch(pieces).sources(4096);
        let chunks = |first: u32, count: u32, stride: u32| SourceData::KvChunks {
            nsid: OBJECTS_NSID,
            prefix: [7; 12],
            first,
            count,
            stride,
        };
        let values = [3, 6, 9, 11, 13, 14].map(|number| value(number, 8192)).to_vec();
        assert_eq!(sources(values), [chunks(3, 3, 3), chunks(11, 2, 2), chunks(14, 1, 1)]);
        // Numbers of another kind may be lower.
        assert_eq!(
            sources([5, 2].map(|at| value(at, 1)).to_vec()),
            [chunks(5, 1, 1), chunks(2, 1, 1)]
        );
        let run =
            |slba: u64, bytes: u32| SourceData::Blocks { nsid: BLOCK_NSID, slba, skip: 0, bytes };
        let pieces = vec![blocks(8192, 8192), blocks(16_384, 100), blocks(20_480, 8192)];
        assert_eq!(sources(pieces), [run(2, 8292), run(5, 8192)]);
    }
}
