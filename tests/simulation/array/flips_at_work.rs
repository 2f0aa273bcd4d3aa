//! Bits that flip at rest while hosts work, other faults happen and repairs run.
//!
//! A bit flips only in a stripe that has more pieces on the media than it needs. A fault after it
//! may take what the stripe has left, as it may after a chunk was replaced.

use csd_store::array::GUARDED;

use super::flips::flip_bit;
use super::pieces::Sound;
use super::{Lane, at_rest};

impl Lane {
    /// Flips a bit of a piece of a protected object, if there is one and all guards are on.
    pub(super) fn flip_at_work(&mut self) {
        if self.guards != GUARDED {
            return;
        }
        let media = self.known.borrow().media_at_rest();
        let mut spare = Vec::new();
        for entry in at_rest::sealed(&media) {
            for place in Sound::spare(&media, &entry) {
                let at = media[place.drive].place_of(&place);
                spare.extend(at.map(|at| (place.drive, at, place.bytes)));
            }
        }
        if spare.is_empty() {
            return;
        }
        let draw = |below: usize| usize::try_from(self.draw(0..below as u64)).unwrap();
        let (drive, at, bytes) = spare[draw(spare.len())];
        flip_bit(&self.drives[drive].disk, at + draw(bytes) as u64, self.draw(0..8));
        self.known.borrow_mut().losses += 1;
        self.faults.flipped_at_work += 1;
    }
}
