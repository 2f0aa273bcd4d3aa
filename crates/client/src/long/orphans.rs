//! Pieces that no manifest names, left behind by hosts that ended while they stored or replaced an
//! object.
//!
//! Pieces of an object that is being stored look the same until its manifest is there: NVMe does
//! not say when a key was stored. A value that another client has stored under such a key looks
//! like a piece, too. So pieces count only with the first one of their object, which has the length
//! that this session gives pieces, and which is stored first and deleted last.

use std::collections::{BTreeMap, BTreeSet};

use csd_nvme::kv::Key;

use super::manifest::{MANIFEST_BYTES, Manifest, is_piece, piece_id, piece_number};
use super::put::manifest_in;
use super::remove::ABSENT_MAX;
use crate::ordered::Ordered;
use crate::{Error, Session};

/// Lengths of the pieces of one object, by key.
type Lengths = BTreeMap<Key, u64>;

impl Session {
    /// Returns the keys of pieces that no manifest names, in order. Reads the first bytes of all
    /// values that are not named. Leaves out manifests, values that do not follow each other as
    /// pieces do, and pieces of another length than this session gives them.
    ///
    /// # Errors
    /// Any of a command's.
    pub async fn orphans(&self) -> Result<Vec<Key>, Error> {
        let mut pieces = self.keys(is_piece).await?;
        if pieces.is_empty() {
            return Ok(pieces);
        }
        // Listed after the pieces: the manifest of an object that was published meanwhile is there.
        let others = self.keys(|key| !is_piece(key)).await?;
        let (mut named, mut objects) = (BTreeSet::new(), BTreeMap::<[u8; 8], Lengths>::new());
        let name = |_, found: Front| named.extend(found.manifest.map(|manifest| manifest.id));
        self.each_front(&others, name).await?;
        pieces.retain(|piece| !named.contains(&piece_id(piece)));
        let look = |piece, found: Front| match found.manifest {
            Some(manifest) => drop(named.insert(manifest.id)),
            None => drop(objects.entry(piece_id(&piece)).or_default().insert(piece, found.bytes)),
        };
        self.each_front(&pieces, look).await?;
        objects.retain(|id, lengths| {
            !named.contains(id) && is_left_behind(lengths, self.piece_bytes().into())
        });
        Ok(objects.into_values().flat_map(BTreeMap::into_keys).collect())
    }

    /// Deletes keys of [`Self::orphans`]; returns their number. First pieces go last.
    ///
    /// # Errors
    /// Any of a command's; some may have been deleted then.
    pub async fn remove_orphans(&self, orphans: &[Key]) -> Result<u64, Error> {
        let (mut deletes, mut deleted) = (Ordered::new(), 0);
        for is_first in [false, true] {
            let mut keys = orphans.iter().filter(|key| (piece_number(key) == 0) == is_first);
            loop {
                while deletes.len() < self.settings().depth.max(1) {
                    let Some(key) = keys.next() else { break };
                    deletes.push(self.delete(key));
                }
                let Some(done) = deletes.next().await else { break };
                done?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Calls `visit` with what each of the values begins with.
    async fn each_front(
        &self,
        keys: &[Key],
        mut visit: impl FnMut(Key, Front),
    ) -> Result<(), Error> {
        let size = u32::try_from(MANIFEST_BYTES).expect("64");
        let mut fronts = Ordered::new();
        let mut keys = keys.iter();
        loop {
            while fronts.len() < self.settings().depth.max(1) {
                let Some(key) = keys.next() else { break };
                fronts.push(async move { (*key, self.front(key, size).await) });
            }
            let Some((key, front)) = fronts.next().await else { return Ok(()) };
            if let Some((front, bytes)) = front? {
                visit(key, Front { manifest: manifest_in(&front, bytes), bytes });
            }
        }
    }
}

/// Beginning of a value.
struct Front {
    manifest: Option<Manifest>,
    /// Length of the whole value.
    bytes: u64,
}

/// Returns true if values may be the pieces of an object: the first is there, all are as long as it
/// but the last, and no more are missing in between than a writer has under way.
fn is_left_behind(pieces: &Lengths, piece_bytes: u64) -> bool {
    let Some((first, _)) = pieces.first_key_value() else { return false };
    let Some((last, last_bytes)) = pieces.last_key_value() else { return false };
    let others = pieces.values().take(pieces.len() - usize::from(first != last));
    piece_number(first) == 0
        && (piece_number(last) as usize) < pieces.len() + ABSENT_MAX
        && (1..=piece_bytes).contains(last_bytes)
        && others.into_iter().all(|bytes| *bytes == piece_bytes)
}

/// Returns those keys of `now` whose object has the same pieces in `before`: it does not grow.
#[must_use]
pub fn unchanged(before: &[Key], now: &[Key]) -> Vec<Key> {
    let objects = |keys: &[Key]| {
        let mut objects: BTreeMap<[u8; 8], BTreeSet<Key>> = BTreeMap::new();
        for key in keys {
            objects.entry(piece_id(key)).or_default().insert(*key);
        }
        objects
    };
    let before = objects(before);
    let same = objects(now).into_iter().filter(|(id, pieces)| before.get(id) == Some(pieces));
    same.flat_map(|(_, pieces)| pieces).collect()
}

#[cfg(test)]
mod tests {
    use super::super::manifest::piece_key;
    use super::*;

    #[test]
    fn pieces_of_an_object_that_grows_are_not_unchanged() {
        let piece = |id: u8, number| piece_key(&[id; 8], number);
        let before = [piece(1, 0), piece(1, 1), piece(2, 0), piece(3, 0)];
        let now = [piece(1, 0), piece(1, 1), piece(2, 0), piece(2, 1), piece(4, 0)];
        assert_eq!(unchanged(&before, &now), [piece(1, 0), piece(1, 1)]);
        assert!(unchanged(&[], &now).is_empty() && unchanged(&before, &[]).is_empty());
    }

    #[test]
    fn values_that_cannot_be_pieces_of_one_object_are_not_left_behind() {
        let is_left = |pieces: &[(u32, u64)]| {
            let keyed = pieces.iter().map(|(number, bytes)| (piece_key(&[7; 8], *number), *bytes));
            is_left_behind(&keyed.collect(), 100)
        };
        assert!(is_left(&[(0, 100)]) && is_left(&[(0, 100), (1, 100), (2, 3)]));
        assert!(is_left(&[(0, 100), (5, 100), (65, 100)]), "some were under way");
        assert!(!is_left(&[(1, 100), (2, 100)]), "the first one is missing");
        assert!(!is_left(&[(0x0123_4567, 100)]));
        assert!(!is_left(&[(0, 100), (66, 100)]), "too many are missing");
        assert!(!is_left(&[(0, 99)]) && !is_left(&[(0, 101)]), "no writer makes such a first one");
        assert!(!is_left(&[(0, 100), (1, 99), (2, 100)]));
        assert!(!is_left(&[(0, 100), (1, 101)]) && !is_left(&[(0, 100), (1, 0)]));
    }
}
