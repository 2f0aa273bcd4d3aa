//! Page lists on the media. Those that exist are right, no matter which host or drive has made the
//! pieces. After the last repair of an object of which nothing is lacking, every piece has a list
//! if any has.

use std::collections::BTreeMap;

use csd_nvme::vendor::location::LocationKind;
use csd_nvme::vendor::pages::{KEY_BYTES, List};
use csd_store::catalogue::{Entry, Placement};

use super::medium::AtRest;
use super::pieces::{Sound, first_byte};

/// Place of a piece: drive, kind, identifier and start, as lists name it.
type Place = (usize, u8, [u8; 12], u64);

/// Returns the place of a piece.
fn place(entry: &Entry, sound: &Sound, stripe: u32, piece: usize) -> Option<Place> {
    let drive = usize::from(sound.stripes.drive(stripe, piece)?);
    if let Some(parity) = piece.checked_sub(sound.stripes.scheme().data()) {
        let key = entry.parity_key(stripe, parity)?;
        let (id, number) = key.as_bytes().split_first_chunk()?;
        let number = u32::from_be_bytes(number.try_into().ok()?);
        return Some((drive, LocationKind::VALUE.0, *id, number.into()));
    }
    let chunk = sound.stripes.chunks(stripe)[piece];
    let Placement::Block(extents) = &entry.placement else {
        return Some((drive, LocationKind::VALUE.0, entry.id.0, chunk.into()));
    };
    let start = first_byte(&entry.layout(), extents, chunk);
    Some((drive, LocationKind::BLOCKS.0, entry.id.0, start))
}

/// Returns what is wrong with the lists of a protected object, and the number of sound pieces that
/// they name.
pub fn look(media: &[AtRest], entry: &Entry, sound: &Sound) -> (Vec<String>, u64) {
    let mut unlisted: BTreeMap<Place, (u32, usize, &[u8])> = BTreeMap::new();
    for (stripe, piece, bytes) in &sound.pieces {
        let place = place(entry, sound, *stripe, *piece).expect("it is a piece of the object");
        unlisted.insert(place, (*stripe, *piece, bytes));
    }
    let (mut wrong, mut named) = (Vec::new(), 0);
    let (pieces, mut page) = (unlisted.clone(), None);
    for (drive, medium) in media.iter().enumerate() {
        for id in entry.own_ids() {
            for key in medium.keys(&id.0).filter(|key| key.as_bytes().len() == KEY_BYTES) {
                let list = medium.value(key).and_then(|list| List::parse(&list).ok());
                let Some(list) = list else {
                    wrong.push(format!("{:?}: drive {drive} has a malformed list", entry.name));
                    continue;
                };
                page = Some(list.page_bytes as usize);
                for number in 0..list.pieces.len() {
                    let (of, sums) = list.piece(number).expect("it has that many");
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
    (wrong, named)
}
