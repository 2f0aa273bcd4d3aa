//! Deleted keys stay deleted, though their old records lie in an older segment than their
//! tombstones and the tombstones' segments are cleaned again and again.

use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Provision;
use csd_drive::drive::{self, Core};
use csd_drive::format::Split;
use csd_drive::media::{Media, Volatile, VolatileConfig};
use csd_drive::namespace::kv::shard_of;
use csd_nvme::kv::Key;
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{Buffer, kept};

const NSID: u16 = 3;
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };

/// Doomed keys, and the shard's three others: two anchors that keep the doomed keys' segment
/// alive, and one to churn with.
const DOOMED: usize = 100;

/// Keys of one shard.
fn keys() -> Vec<Key> {
    let all = (0u32..).map(|number| Key::new(&number.to_be_bytes()).unwrap());
    all.filter(|key| shard_of(&(NSID, *key)) == 3).take(DOOMED + 3).collect()
}

async fn store(core: &Core, key: Key, bytes: usize) {
    core.kv.store(NSID, key, vec![Buffer::zeroed(bytes)], 0).await.expect("stored");
}

/// First life: doomed keys and anchors in the oldest segment; then one of them deleted beside
/// every churned value, so that no segment is worth cleaning more than one with a tombstone.
async fn bury(core: &Core) {
    let keys = keys();
    let (doomed, others) = keys.split_at(DOOMED);
    for key in doomed {
        store(core, *key, 300).await;
    }
    store(core, others[0], 900 << 10).await;
    store(core, others[1], 500 << 10).await;
    for key in doomed {
        core.kv.delete(NSID, *key).await.expect("deleted");
        store(core, others[2], 1 << 20).await;
    }
    assert!(core.shared.segments.cleaned_count() > 40, "segments with tombstones were cleaned");
}

#[test]
fn tombstones_outlive_older_segments() {
    let world = World::new(11, WorldConfig::default());
    let machine = world.machine("drive", Ipv4Addr::new(10, 0, 0, 1), 1);
    let disk = Arc::new(Volatile::new(128 << 20, VolatileConfig::default()));
    let done = Rc::new(Cell::new(false));
    for life in 0..3 {
        let (media, told) = (Media::Volatile(Arc::clone(&disk)), Rc::clone(&done));
        let found: Rc<RefCell<Vec<bool>>> = Rc::default();
        let seen = Rc::clone(&found);
        world.start(machine, move |_| {
            let (media, told, seen) = (media.clone(), Rc::clone(&told), Rc::clone(&seen));
            async move {
                let shared = drive::open(media, life == 0, "", &SPLIT, &Provision::default())
                    .await
                    .expect("opens");
                drive::start_all(&shared).await.expect("recovers");
                let core = kept::<Core>().expect("started");
                for key in keys().into_iter().filter(|_| life > 0) {
                    let exists = core.kv.exist(NSID, key).await.expect("found");
                    seen.borrow_mut().push(exists);
                }
                match life {
                    0 => bury(&core).await,
                    _ => store(&core, keys()[DOOMED + 2], 1 << 20).await,
                }
                told.set(true);
                std::future::pending().await
            }
        });
        world.run_until(|_| done.get(), Duration::from_secs(600)).expect("the life is lived");
        done.set(false);
        world.crash(machine);
        disk.power_cut(|| world.random_u64());
        disk.power_on();
        if life > 0 {
            let found = found.borrow();
            let (doomed, others) = found.split_at(DOOMED);
            assert!(doomed.iter().all(|exists| !exists), "life {life}: a deleted key came back");
            assert!(others.iter().all(|exists| *exists), "life {life}: a key was lost");
        }
    }
}
