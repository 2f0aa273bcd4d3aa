//! Pieces that no manifest names, left behind by hosts that ended while they stored or replaced an
//! object.
//!
//! Pieces of an object that is being stored look the same until its manifest is there: NVMe does
//! not say when a key was stored.

use std::collections::{BTreeMap, BTreeSet};

use csd_nvme::kv::Key;

use super::manifest::{MANIFEST_BYTES, Manifest, is_piece, piece_id};
use crate::ordered::Ordered;
use crate::{Error, Session};

impl Session {
    /// Returns the keys of pieces that no manifest names, in order. Reads the first bytes of all
    /// other values.
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
        let named = self.named(&others).await?;
        pieces.retain(|piece| !named.contains(&piece_id(piece)));
        pieces.sort_unstable();
        Ok(pieces)
    }

    /// Deletes keys of [`Self::orphans`]; returns their number.
    ///
    /// # Errors
    /// Any of a command's; some may have been deleted then.
    pub async fn remove_orphans(&self, orphans: &[Key]) -> Result<u64, Error> {
        let (mut deletes, mut deleted) = (Ordered::new(), 0);
        let mut keys = orphans.iter();
        loop {
            while deletes.len() < self.settings().depth.max(1) {
                let Some(key) = keys.next() else { break };
                deletes.push(self.delete(key));
            }
            let Some(done) = deletes.next().await else { return Ok(deleted) };
            done?;
            deleted += 1;
        }
    }

    /// Returns the identifiers of the pieces that the manifests under `keys` name.
    async fn named(&self, keys: &[Key]) -> Result<BTreeSet<[u8; 8]>, Error> {
        let size = u32::try_from(MANIFEST_BYTES).expect("64");
        let (mut fronts, mut named) = (Ordered::new(), BTreeSet::new());
        let mut keys = keys.iter();
        loop {
            while fronts.len() < self.settings().depth.max(1) {
                let Some(key) = keys.next() else { break };
                fronts.push(self.front(key, size));
            }
            let Some(front) = fronts.next().await else { return Ok(named) };
            named.extend(front?.and_then(|(front, _)| Manifest::parse(&front)).map(|one| one.id));
        }
    }
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
}
