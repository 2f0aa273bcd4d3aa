//! Page lists on the media. Those that exist are right, no matter which host or drive has made the
//! pieces. After the last repair of an object of which nothing is lacking, every piece has a list
//! if any has.

use std::collections::BTreeMap;

use csd_nvme::pages::{KEY_BYTES, List, PieceKind};
use csd_store::catalogue::{Entry, Placement};

use super::pieces::{Medium, Sound, first_byte};

/// Place of a piece: drive, kind, identifier and start, as lists name it.
type Place = (usize, u8, [u8; 12], u64);

/// Returns the place of a piece.
fn place(entry: &Entry, sound: &Sound, stripe: u32, piece: usize) -> Option<Place> {
    let drive = usize::from(sound.stripes.drive(stripe, piece)?);
    if let Some(parity) = piece.checked_sub(sound.stripes.scheme().data()) {
        let key = entry.parity_key(stripe, parity)?;
        let (id, number) = key.as_bytes().split_first_chunk()?;
        let number = u32::from_be_bytes(number.try_into().ok()?);
        return Some((drive, PieceKind::VALUES.0, *id, number.into()));
    }
    let chunk = sound.stripes.chunks(stripe)[piece];
    let Placement::Block(extents) = &entry.placement else {
        return Some((drive, PieceKind::VALUES.0, entry.id.0, chunk.into()));
    };
    let start = first_byte(&entry.layout(), extents, chunk);
    Some((drive, PieceKind::BLOCKS.0, entry.id.0, start))
}

/// Returns what is wrong with the lists of a protected object, and the number of sound pieces that
/// they name; `None` if a drive cannot be reached.
pub async fn look(media: &[Medium], entry: &Entry, sound: &Sound) -> Option<(Vec<String>, u64)> {
    let mut unlisted: BTreeMap<Place, (u32, usize, &[u8])> = BTreeMap::new();
    for (stripe, piece, bytes) in &sound.pieces {
        unlisted.insert(place(entry, sound, *stripe, *piece)?, (*stripe, *piece, bytes));
    }
    let (mut wrong, mut named) = (Vec::new(), 0);
    let (pieces, mut page) = (unlisted.clone(), None);
    for (drive, Medium { kv, .. }) in media.iter().enumerate() {
        for id in entry.own_ids() {
            for key in kv.list_all(&id.0).await.ok()? {
                if key.as_bytes().len() != KEY_BYTES {
                    continue;
                }
                let Ok(list) = List::parse(&kv.retrieve(&key, 4096).await.ok()??) else {
                    wrong.push(format!("{:?}: drive {drive} has a malformed list", entry.name));
                    continue;
                };
                page = Some(list.page_bytes as usize);
                for number in 0..list.pieces.len() {
                    let (of, sums) = list.piece(number)?;
                    let place = (drive, list.kind.0, list.object, of.start);
                    let Some((stripe, piece, bytes)) = pieces.get(&place) else { continue };
                    let pages = bytes.chunks(list.page_bytes as usize).map(crc32c::crc32c);
                    if !pages.eq(sums.iter().copied()) {
                        let name = &entry.name;
                        wrong.push(format!("{name:?}: the list of {stripe}:{piece} is wrong"));
                    }
                    unlisted.remove(&place);
                    named += 1;
                }
            }
        }
    }
    if let Some(page) = page.filter(|_| sound.is_full()) {
        let lacking = unlisted.into_values().filter(|(.., bytes)| bytes.len() > page);
        wrong.extend(lacking.map(|(stripe, piece, _)| {
            format!("{:?}: no list has {stripe}:{piece} after a repair", entry.name)
        }));
    }
    Some((wrong, named))
}
