//! The pieces of protected objects on the media, read with plain commands and compared with the
//! scalar code; and values on the media that belong to no object.

use std::collections::BTreeSet;

use csd_initiator::{Block, Controller, Kv};
use csd_kernels::erasure::scalar;
use csd_nvme::execute::chunk_key;
use csd_nvme::kv::Key;
use csd_store::array::{Array, BLOCK_NSID, OBJECTS_NSID};
use csd_store::catalogue::{Entry, Extents, ObjectId, Placement};
use csd_store::extent::byte_ranges;
use csd_store::layout::{Layout, Stripes};
use csd_store::object;

use super::history::CHUNK_BYTES;
use super::host::options;
use super::{DRIVES, address};

/// Returns the first byte of a chunk in the block namespace of its drive.
pub fn first_byte(layout: &Layout, extents: &[Extents], chunk: u32) -> u64 {
    let start = u64::from(layout.local(chunk)) * CHUNK_BYTES;
    let (offset, _) = byte_ranges(&extents[layout.member(chunk)], start, CHUNK_BYTES)[0];
    offset
}

/// Values and blocks of a drive.
pub struct Medium {
    pub kv: Kv,
    pub block: Block,
}

/// Connects to the media of all drives; `None` if one cannot be reached.
pub async fn media() -> Option<Vec<Medium>> {
    let mut media = Vec::new();
    for index in 0..DRIVES {
        let controller = Controller::connect(&address(index), &options()).await.ok()?;
        let kv = Kv::open(&controller, OBJECTS_NSID).ok()?;
        media.push(Medium { kv, block: Block::open(&controller, BLOCK_NSID).ok()? });
    }
    Some(media)
}

impl Medium {
    /// Reads a value, `Some(None)` if it is missing or damaged; `None` if the drive fails.
    async fn value(&self, key: &Key) -> Option<Option<Vec<u8>>> {
        let bytes = u32::try_from(CHUNK_BYTES).unwrap();
        match self.kv.retrieve(key, bytes).await {
            Ok(value) => Some(value.map(|value| value.to_vec())),
            Err(error) => error.status().map(|_| None),
        }
    }

    /// Reads a chunk on blocks, as [`Self::value`].
    async fn chunk(&self, entry: &Entry, chunk: u32) -> Option<Option<Vec<u8>>> {
        let Placement::Block(extents) = &entry.placement else {
            return self.value(&chunk_key(&entry.id.0, chunk)).await;
        };
        let (layout, bytes) = (entry.layout(), usize::try_from(CHUNK_BYTES).unwrap());
        match self.block.read(first_byte(&layout, extents, chunk), bytes).await {
            Ok(read) => Some(Some(read[..layout.chunk_len(chunk) as usize].to_vec())),
            Err(error) => error.status().map(|_| None),
        }
    }
}

/// Pieces of a protected object that the media hold with the digests of its entry.
pub struct Sound {
    pub stripes: Stripes,
    /// Piece by stripe and number.
    pub pieces: Vec<(u32, usize, Vec<u8>)>,
}

impl Sound {
    /// Reads the pieces; `None` if the object is not protected, or a drive cannot be reached.
    pub async fn read(media: &[Medium], entry: &Entry) -> Option<Self> {
        let (_, parity) = entry.protected()?;
        let (stripes, mut pieces) = (entry.stripes()?, Vec::new());
        for stripe in 0..stripes.count() {
            for piece in stripes.pieces(stripe) {
                let medium = &media[usize::from(stripes.drive(stripe, piece)?)];
                let number = piece.checked_sub(stripes.scheme().data());
                let (held, sum) = match number {
                    None => {
                        let chunk = stripes.chunks(stripe)[piece];
                        (medium.chunk(entry, chunk).await?, entry.sum(chunk)?)
                    }
                    Some(number) => {
                        let at = stripes.parity_number(stripe, number);
                        let key = entry.parity_key(stripe, number)?;
                        (medium.value(&key).await?, parity.sums[at])
                    }
                };
                if let Some(held) = held.filter(|held| crc32c::crc32c(held) == sum) {
                    pieces.push((stripe, piece, held));
                }
            }
        }
        Some(Self { stripes, pieces })
    }

    /// Returns true if every stripe has as many pieces as data, so that nothing is lost.
    pub fn is_enough(&self) -> bool {
        (0..self.stripes.count()).all(|stripe| {
            let found = self.pieces.iter().filter(|(of, ..)| *of == stripe).count();
            found >= self.stripes.chunks(stripe).len()
        })
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

/// Deletes what no entry refers to, and returns what is left of it; `None` if a drive cannot be
/// reached.
pub async fn left_after_reclaim(array: &Array, media: &[Medium]) -> Option<Vec<String>> {
    object::reclaim(array).await.ok()?;
    let listed = object::list(array).await.ok()?;
    let entries = listed.sealed.iter().chain(&listed.staged);
    let known: BTreeSet<ObjectId> = entries.flat_map(Entry::ids).collect();
    let mut left = Vec::new();
    for (index, Medium { kv, .. }) in media.iter().enumerate() {
        // Pieces have keys of 16 bytes, their page lists of 15.
        let is_chunk = |key: &&Key| key.as_bytes().len() >= 15 && key.as_bytes()[0] >= 0x80;
        for key in kv.list_all(&[]).await.ok()?.iter().filter(is_chunk) {
            let id = ObjectId(*key.as_bytes().first_chunk().unwrap());
            if !known.contains(&id) {
                left.push(format!("drive {index} holds {key:?} of no object"));
            }
        }
    }
    Some(left)
}
