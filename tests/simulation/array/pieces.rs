//! The pieces of protected objects, read from the media themselves and compared with the scalar
//! code; and values on the media that belong to no object.

use std::collections::BTreeSet;

use csd_kernels::erasure::scalar;
use csd_nvme::kv::Key;
use csd_nvme::vendor::execute::chunk_key;
use csd_store::catalogue::{Entry, Extents, ObjectId, Placement};
use csd_store::extent_ranges::byte_ranges;
use csd_store::layout::{Layout, Stripes};
use csd_store::object;

use super::Lane;
use super::history::CHUNK_BYTES;
use super::medium::AtRest;
use super::pace::ask;

/// Returns the first byte of a chunk in the block namespace of its drive.
pub fn first_byte(layout: &Layout, extents: &[Extents], chunk: u32) -> u64 {
    let start = u64::from(layout.local(chunk)) * CHUNK_BYTES;
    let (offset, _) = byte_ranges(&extents[layout.member(chunk)], start, CHUNK_BYTES)[0];
    offset
}

impl AtRest {
    /// Reads a piece as it is on the medium; `None` if it is missing or damaged.
    pub fn piece(&self, place: &Place) -> Option<Vec<u8>> {
        match place.at {
            At::Value(key) => self.value(&key),
            At::Blocks(offset) => self.blocks(offset, place.bytes),
        }
    }

    /// Returns the place of a piece on the medium; `None` if a start might refuse the medium, or
    /// take the piece for the torn end of the log, if the piece were damaged.
    pub fn place_of(&self, place: &Place) -> Option<u64> {
        match place.at {
            At::Value(key) => self.settled(&key),
            At::Blocks(offset) => self.block(offset),
        }
    }
}

/// A value, or the first byte of blocks.
#[derive(Clone, Copy)]
enum At {
    Value(Key),
    Blocks(u64),
}

/// Place of a piece.
pub struct Place {
    pub drive: usize,
    at: At,
    pub bytes: usize,
}

impl Place {
    /// Returns the place of a chunk.
    pub fn of_chunk(entry: &Entry, chunk: u32) -> Self {
        let layout = entry.layout();
        let at = match &entry.placement {
            Placement::Kv => At::Value(chunk_key(&entry.id.0, layout.number(chunk))),
            Placement::Block(extents) => At::Blocks(first_byte(&layout, extents, chunk)),
        };
        let drive = usize::from(entry.members[layout.member(chunk)]);
        Self { drive, at, bytes: layout.chunk_len(chunk) as usize }
    }
}

/// Stripe and number of a piece, its place, and its digest.
type Wanted = (u32, usize, Place, u32);

/// Pieces of a protected object that the media hold with the digests of its entry.
pub struct Sound {
    pub stripes: Stripes,
    /// Piece by stripe and number.
    pub pieces: Vec<(u32, usize, Vec<u8>)>,
}

impl Sound {
    /// Returns the places of all pieces, with their digests, and no piece; `None` if the object is
    /// not protected.
    fn places(entry: &Entry) -> Option<(Self, Vec<Wanted>)> {
        let (_, parity) = entry.protected()?;
        let (stripes, mut places) = (entry.stripes()?, Vec::new());
        for stripe in 0..stripes.count() {
            for piece in stripes.pieces(stripe) {
                let (place, sum) = match piece.checked_sub(stripes.scheme().data()) {
                    None => {
                        let chunk = stripes.chunks(stripe)[piece];
                        (Place::of_chunk(entry, chunk), entry.sum(chunk)?)
                    }
                    Some(number) => {
                        let drive = usize::from(stripes.drive(stripe, piece)?);
                        let at = At::Value(entry.parity_key(stripe, number)?);
                        let bytes = stripes.parity_bytes(stripe) as usize;
                        let sum = parity.sums[stripes.parity_number(stripe, number)];
                        (Place { drive, at, bytes }, sum)
                    }
                };
                places.push((stripe, piece, place, sum));
            }
        }
        Some((Self { stripes, pieces: Vec::new() }, places))
    }

    /// Reads the pieces from the media themselves; `None` if the object is not protected.
    pub fn at_rest(media: &[AtRest], entry: &Entry) -> Option<Self> {
        let (mut sound, places) = Self::places(entry)?;
        for (stripe, piece, place, sum) in places {
            let held = media[place.drive].piece(&place);
            let held = held.filter(|held| crc32c::crc32c(held) == sum);
            sound.pieces.extend(held.map(|held| (stripe, piece, held)));
        }
        Some(sound)
    }

    /// Returns the places of pieces in stripes that would still be read without the piece.
    pub fn spare(media: &[AtRest], entry: &Entry) -> Vec<Place> {
        let Some((found, (_, places))) = Self::at_rest(media, entry).zip(Self::places(entry))
        else {
            return Vec::new();
        };
        let is_spare = |stripe, piece| {
            let is_it = |of: &(u32, usize, Vec<u8>)| (of.0, of.1) == (stripe, piece);
            found.margin(stripe).is_some_and(|margin| margin > 0) && found.pieces.iter().any(is_it)
        };
        let spare = places.into_iter().filter(|(stripe, piece, ..)| is_spare(*stripe, *piece));
        spare.map(|(.., place, _)| place).collect()
    }

    /// Returns the number of pieces that a stripe has beyond those that it needs; `None` if bytes
    /// are lost.
    fn margin(&self, stripe: u32) -> Option<usize> {
        let found = self.pieces.iter().filter(|(of, ..)| *of == stripe).count();
        found.checked_sub(self.stripes.chunks(stripe).len())
    }

    /// Returns true if every stripe has as many pieces as data, so that nothing is lost.
    pub fn is_enough(&self) -> bool {
        (0..self.stripes.count()).all(|stripe| self.margin(stripe).is_some())
    }

    /// Returns true if no piece is lacking.
    pub fn is_full(&self) -> bool {
        let all = (0..self.stripes.count()).map(|stripe| self.stripes.pieces(stripe).count());
        self.pieces.len() == all.sum::<usize>()
    }

    /// Compares the pieces with those of the object's bytes; returns what differs. Any n pieces of
    /// a stripe that are equal to the code's give all others.
    pub fn differences(&self, entry: &Entry, bytes: &[u8]) -> Vec<String> {
        let (code, chunk) = (self.stripes.scheme().code(), usize::try_from(CHUNK_BYTES).unwrap());
        let mut found = Vec::new();
        for (stripe, piece, held) in &self.pieces {
            let of_chunk = |number: &u32| {
                let begin = usize::try_from(*number).unwrap() * chunk;
                &bytes[begin..bytes.len().min(begin + chunk)]
            };
            let data: Vec<&[u8]> = self.stripes.chunks(*stripe).iter().map(of_chunk).collect();
            let expected = match piece.checked_sub(code.data()) {
                None => data[*piece].to_vec(),
                Some(parity) => scalar::parity(&code, parity, &data),
            };
            if *held != expected {
                found.push(format!("{:?}: piece {stripe}:{piece} is not the code's", entry.name));
            }
        }
        found
    }
}

/// Deletes what no entry refers to, and returns what the media still hold of it.
pub fn left_after_reclaim(lane: &Lane) -> Vec<String> {
    let known: BTreeSet<ObjectId> = ask(lane, 1, async |array| {
        object::reclaim(&array).await.expect("all drives answer");
        let listed = object::list(&array).await.expect("all drives answer");
        listed.sealed.iter().chain(&listed.staged).flat_map(Entry::ids).collect()
    });
    let media = lane.media_at_rest();
    let of_drive = |(drive, medium): (usize, &AtRest)| of_none(drive, medium.keys(&[]), &known);
    media.iter().enumerate().flat_map(of_drive).collect()
}

/// Returns those of a drive's keys that pieces and page lists of other objects than these have.
pub fn of_none<'a>(
    drive: usize,
    keys: impl IntoIterator<Item = &'a Key>,
    known: &BTreeSet<ObjectId>,
) -> Vec<String> {
    // Pieces have keys of 16 bytes, their page lists of 15.
    let is_chunk = |key: &&Key| key.as_bytes().len() >= 15 && key.as_bytes()[0] >= 0x80;
    let is_known = |key: &Key| known.contains(&ObjectId(*key.as_bytes().first_chunk().unwrap()));
    let left = keys.into_iter().filter(is_chunk).filter(|key| !is_known(key));
    left.map(|key| format!("drive {drive} holds {key:?} of no object")).collect()
}
