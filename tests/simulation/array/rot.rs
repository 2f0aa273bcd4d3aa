//! Bits that flip in the catalogue while hosts work, other faults happen, and hosts mend: in copies
//! of entries, in claims, in rosters and in lives.
//!
//! A bit flips in a copy of an entry only if a write quorum of other media has the entry and no
//! copy of the name is damaged; so enough copies are sound until other faults come. Rules: those of
//! the lane. After the last look, which mends, no copy, roster or list of lives on the media is
//! damaged.

use csd_nvme::kv::Key;
use csd_store::array::{Array, GUARDED, Lives, Quorum, Roster};
use csd_store::catalogue::{self, CLAIM_PREFIX, Entry, KEY_PREFIX};
use csd_store::scrub::{self, Cause};

use super::host::{Known, Shared, name_of};
use super::medium::AtRest;
use super::{DRIVES, Lane, NAMES};

/// Option that the message names if a user must decide.
const ACCEPTS: &str = "--accept-name";

/// Flipped bits by kind, copies that hosts mended, and names that a user had to accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rot {
    pub entries: u64,
    pub claims: u64,
    pub rosters: u64,
    pub lives: u64,
    pub mended: u64,
    pub accepted: u64,
}

impl Rot {
    pub fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.claims += other.claims;
        self.rosters += other.rosters;
        self.lives += other.lives;
        self.mended += other.mended;
        self.accepted += other.accepted;
    }

    /// Returns the number of the rarest kind. Claims last for a moment only.
    pub fn fewest(&self) -> u64 {
        [self.entries, self.rosters, self.lives, self.mended].into_iter().fold(u64::MAX, u64::min)
    }
}

fn record(name: &[u8]) -> Key {
    Key::new(name).unwrap()
}

fn is_sound(medium: &AtRest, key: &Key) -> bool {
    let Some(value) = medium.value(key) else { return false };
    match key.as_bytes()[0] {
        KEY_PREFIX | CLAIM_PREFIX => Entry::parse(&value).is_ok(),
        _ if *key == record(b"\x07roster") => Roster::parse(&value).is_some(),
        _ => Lives::parse(&value).is_some(),
    }
}

/// Returns false if a medium has a damaged value of this key.
pub fn is_sound_or_none(medium: &AtRest, key: &Key) -> bool {
    medium.keys(key.as_bytes()).all(|found| found != key || is_sound(medium, key))
}

/// Returns the keys of the catalogue that a medium has.
fn keys(medium: &AtRest) -> impl Iterator<Item = &Key> {
    [&[KEY_PREFIX][..], b"\x07"].into_iter().flat_map(|prefix| medium.keys(prefix))
}

/// Returns the damaged copies and records on the media.
pub fn damaged(media: &[AtRest]) -> Vec<String> {
    let of = |(drive, medium): (usize, &AtRest)| -> Vec<String> {
        let damaged = keys(medium).filter(|key| !is_sound(medium, key));
        damaged.map(|key| format!("drive {drive}: {key:?} is damaged at the end")).collect()
    };
    media.iter().enumerate().flat_map(of).collect()
}

/// Returns the copies of entries of which one may be damaged, as drive and key.
fn spare_entries(media: &[AtRest]) -> Vec<(usize, Key)> {
    let mut spare = Vec::new();
    let all: std::collections::BTreeSet<Key> =
        media.iter().flat_map(|medium| medium.keys(&[KEY_PREFIX]).copied()).collect();
    for key in all {
        let has = |medium: &&AtRest| medium.keys(key.as_bytes()).next().is_some();
        if media.iter().filter(has).any(|medium| !is_sound(medium, &key)) {
            continue;
        }
        let copies = media
            .iter()
            .enumerate()
            .filter_map(|(drive, medium)| Some((drive, Entry::parse(&medium.value(&key)?).ok()?)));
        let copies: Vec<(usize, Entry)> = copies.collect();
        let newest = copies.iter().map(|(_, entry)| entry.epoch).max().unwrap_or(0);
        let newest: Vec<_> = copies.iter().filter(|(_, entry)| entry.epoch == newest).collect();
        let losses = newest.iter().map(|(_, entry)| entry.losses()).max().unwrap_or(0);
        if newest.len() > Quorum::new(DRIVES, losses).write() {
            spare.extend(newest.iter().map(|(drive, _)| (*drive, key)));
        }
    }
    spare
}

impl Lane {
    /// Flips a bit of the catalogue, if it has one to spare and all guards are on.
    pub(super) fn rot_at_work(&mut self) {
        if self.guards != GUARDED {
            return;
        }
        let media = self.media_at_rest();
        let draw = |below: usize| usize::try_from(self.draw(0..below as u64)).unwrap();
        let kind = draw(8);
        let of_key = |key: Key| (0..DRIVES).map(|drive| (drive, key)).collect::<Vec<_>>();
        let (roster, lives) = (record(b"\x07roster"), record(b"\x07lives"));
        let is_whole = |key: &Key| media.iter().all(|medium| is_sound(medium, key));
        let forgets = {
            let known = self.known.borrow();
            known.media != known.voting
        };
        let mut targets = match kind {
            0..5 => spare_entries(&media),
            5 => {
                let claims = |(drive, medium): (usize, &AtRest)| -> Vec<(usize, Key)> {
                    medium.keys(&[CLAIM_PREFIX]).map(|key| (drive, *key)).collect()
                };
                media.iter().enumerate().flat_map(claims).collect()
            }
            6 if is_whole(&roster) => of_key(roster),
            7 if is_whole(&lives) && !forgets => of_key(lives),
            _ => Vec::new(),
        };
        targets.retain(|(drive, key)| {
            media[*drive].settled(key).is_some() && is_sound(&media[*drive], key)
        });
        if targets.is_empty() {
            return;
        }
        let (drive, key) = targets[draw(targets.len())];
        let bytes = media[drive].value(&key).expect("it is sound").len();
        let at = media[drive].settled(&key).expect("it is settled") + draw(bytes) as u64;
        let bit = draw(8);
        self.drives[drive].disk.at_rest(|memory| {
            let mut byte = [0];
            memory.read(at, &mut byte);
            memory.write(at, &[byte[0] ^ 1 << bit]);
        });
        match kind {
            0..5 => self.faults.rot.entries += 1,
            5 => self.faults.rot.claims += 1,
            6 => self.faults.rot.rosters += 1,
            _ => {
                // The drive has no vote until it is rebuilt.
                self.known.borrow_mut().media[drive] += 1;
                self.faults.rot.lives += 1;
            }
        }
    }
}

/// Mends the catalogue, and counts what was mended. Returns false if a drive failed, or something
/// is left that can be mended.
pub async fn mend(array: &Array, known: &Known) -> bool {
    known.borrow_mut().mends_open += 1;
    let found = scrub::names(array, &[], true).await;
    let Ok(found) = found else { return false };
    known.borrow_mut().undecidable |= found.trouble.iter().any(|why| why.contains(ACCEPTS));
    known.borrow_mut().mends_open -= 1;
    known.borrow_mut().mended += found.bad.iter().filter(|bad| bad.repaired).count() as u64;
    // A claim of an unknown name stays until the next writer of that name.
    found.trouble.is_empty()
        && found.bad.iter().all(|bad| bad.repaired || bad.cause == Cause::Claim)
}

/// Accepts what the drives hold of names of which a damaged claim hides the winner, as a user does
/// after the message that asks for it. No other host is at work.
pub async fn accept_undecidable(array: &Array, known: &Known) {
    if std::mem::take(&mut known.borrow_mut().undecidable) {
        for name in (0..NAMES).map(name_of) {
            // The others have nothing to accept.
            let accepted = catalogue::accept(array, &catalogue::key(&name), &name).await.is_ok();
            known.borrow_mut().accepted += u64::from(accepted);
        }
    }
}

impl Shared {
    /// Returns true if a mend may have been cut off while it wrote an entry again.
    pub fn was_mend_cut(&self) -> bool {
        self.mends_open > 0
    }
}
