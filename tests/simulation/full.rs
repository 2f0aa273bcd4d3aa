//! A full drive: every key can still be deleted, and then there is room again.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Provision;
use csd_drive::drive::{self, Core};
use csd_drive::format::Split;
use csd_drive::media::{Media, Volatile, VolatileConfig};
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{Buffer, kept};

const NSID: u16 = 2;

/// Stores values until the drive is full; the keys.
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

async fn live(core: &Core) {
    for (round, bytes) in [1 << 20, 300 << 10, 1 << 20].into_iter().enumerate() {
        let keys = fill(core, bytes).await;
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
        let world = World::new(seed, WorldConfig::default());
        let machine = world.machine("drive", Ipv4Addr::new(10, 0, 0, 1), 1);
        let disk = Arc::new(Volatile::new(128 << 20, VolatileConfig::default()));
        let done = Rc::new(Cell::new(false));
        let (media, told) = (Media::Volatile(Arc::clone(&disk)), Rc::clone(&done));
        let split = Split { kv_percent: 50, reserve_percent: 10, block_bytes: 4096 };
        world.start(machine, move |_| {
            let (media, told) = (media.clone(), Rc::clone(&told));
            async move {
                let shared = drive::open(media, true, "", &split, &Provision::default())
                    .await
                    .expect("opens");
                drive::start_all(&shared).await.expect("recovers");
                live(&kept::<Core>().expect("started")).await;
                told.set(true);
            }
        });
        let lived = world.run_until(|_| done.get(), Duration::from_secs(600));
        lived.unwrap_or_else(|stuck| panic!("seed {seed}: {stuck}"));
    }
}
