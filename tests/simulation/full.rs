//! A full drive: every key can still be deleted, and that frees room.

use std::rc::Rc;

use csd_drive::drive::Core;
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::Buffer;

use crate::lives::{Lives, NSID, SMALL};

/// Stores values until the drive is full; returns the keys.
async fn fill(core: &Core, bytes: usize) -> Vec<Key> {
    let mut keys = Vec::new();
    for number in 0u64.. {
        let key = Key::new(&number.to_be_bytes()).unwrap();
        match core.kv.store(NSID, key, vec![Buffer::zeroed(bytes)], 0).await {
            Ok(()) => keys.push(key),
            Err(status) => {
                assert_eq!(status, Status::CAPACITY_EXCEEDED);
                return keys;
            }
        }
    }
    unreachable!("a drive is full some day")
}

async fn live(core: Rc<Core>) {
    for (round, bytes) in [256 << 10, 100 << 10, 256 << 10].into_iter().enumerate() {
        let keys = fill(&core, bytes).await;
        assert!(keys.len() * bytes > 12 << 20, "round {round}: {} values", keys.len());
        for key in &keys {
            core.kv.delete(NSID, *key).await.expect("deleting makes room");
        }
        let key = Key::new(b"small").unwrap();
        let stored = core.kv.store(NSID, key, vec![Buffer::zeroed(200)], 0).await;
        assert_eq!(stored, Ok(()), "round {round}");
    }
}

#[test]
fn a_full_drive_can_delete_everything() {
    for seed in 0..6 {
        let lived = Lives::new(seed, 1, SMALL).live(live);
        assert_eq!(lived, Ok(()), "seed {seed}");
    }
}

/// After a cut no shard has an open segment, and there are not enough free ones for all of them.
#[test]
fn a_full_drive_that_lost_its_power_can_delete_everything() {
    for seed in 0..3 {
        let mut lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), SMALL);
        let keys = lives.live(|core| async move { fill(&core, 16_000).await }).unwrap();
        lives.cut_at_random();
        let emptied = lives.live(move |core| async move {
            for (number, key) in keys.iter().enumerate() {
                let deleted = core.kv.delete(NSID, *key).await;
                deleted.unwrap_or_else(|status| panic!("seed {seed}, delete {number}: {status}"));
            }
            core.shared.segments.cleaned_count()
        });
        assert!(emptied.unwrap() > 0, "seed {seed}: nothing had to be cleaned");
    }
}
