//! Deleted keys stay deleted, even if their old records are in an older segment than their
//! tombstones, and the tombstones' segments are cleaned again and again.

use std::rc::Rc;

use csd_drive::drive::Core;
use csd_nvme::kv::Key;

use crate::lives::{self, Lives, NSID, SMALL, keys_of};

/// Number of keys to delete, twice as many as the shard's log has segments. The shard has three
/// other keys: two anchors that keep the segment of these keys alive, and one to overwrite.
const DOOMED: usize = 300;

/// Returns keys of one shard.
fn keys() -> Vec<Key> {
    keys_of(3).take(DOOMED + 3).collect()
}

async fn store(core: &Core, key: Key, bytes: usize) {
    lives::store(core, key, &vec![0; bytes]).await.expect("stored");
}

/// Writes the keys to delete and the anchors into the oldest segment. Then deletes one key for
/// every segment that overwritten values fill, so that nearly every segment that is cleaned has a
/// tombstone.
async fn bury(core: &Core) {
    let keys = keys();
    let (doomed, others) = keys.split_at(DOOMED);
    for key in doomed {
        store(core, *key, 300).await;
    }
    store(core, others[0], 230 << 10).await;
    store(core, others[1], 130 << 10).await;
    for key in doomed {
        core.kv.delete(NSID, *key).await.expect("deleted");
        for _ in 0..2 {
            store(core, others[2], 256 << 10).await;
        }
    }
    let segments = &core.shared.segments;
    assert!(segments.count < 200, "{} segments", segments.count);
    assert!(segments.cleaned_count() > 80, "segments with tombstones were cleaned");
}

#[test]
fn tombstones_outlive_older_segments() {
    let mut lives = Lives::new(11, 1, SMALL);
    for life in 0..3 {
        let found = lives.live(move |core: Rc<Core>| async move {
            let mut found = Vec::new();
            for key in keys().into_iter().filter(|_| life > 0) {
                found.push(core.kv.exist(NSID, key).await.expect("found"));
            }
            match life {
                0 => bury(&core).await,
                _ => store(&core, keys()[DOOMED + 2], 256 << 10).await,
            }
            found
        });
        lives.cut_at_random();
        if life > 0 {
            let found = found.unwrap();
            let (doomed, others) = found.split_at(DOOMED);
            assert!(doomed.iter().all(|exists| !exists), "life {life}: a deleted key came back");
            assert!(others.iter().all(|exists| *exists), "life {life}: a key was lost");
        }
    }
}
