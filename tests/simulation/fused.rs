//! Hosts that count in one block by fused Compare and Write lose no step. The disk is so slow that
//! a command between a compare and its write would show.

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive;
use csd_drive::transport::accept;
use csd_initiator::{Address, Block, Controller, Options};
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Volatile, VolatileConfig};
use csd_nvme::nvm::Extent;
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{Class, CoreId, Listener, join, sleep, spawn};

use crate::blocks::{fused_pair, submit};

const NQN: &str = "nqn.2026-11.io.csdstore:counted";
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 512 };
const HOSTS: u64 = 3;
const STEPS: u64 = 20;

/// Adds one `STEPS` times, each time to the number just read.
async fn count(address: Address) {
    let controller = Controller::connect(&address, &Options::default()).await.expect("connects");
    let block = Block::open(&controller, 1).expect("a block namespace");
    let extent = Extent { slba: 0, blocks: 1 };
    let mut done = 0;
    while done < STEPS {
        let old = block.read(0, 512).await.expect("read").to_vec();
        let number = u64::from_le_bytes(old[..8].try_into().unwrap());
        let mut new = old.clone();
        new[..8].copy_from_slice(&(number + 1).to_le_bytes());
        let (first, second) = fused_pair(1, extent);
        let ended = join(submit(&block, first, &old), submit(&block, second, &new)).await;
        done += u64::from(ended.0.is_ok() && ended.1.is_ok());
    }
}

#[test]
fn no_step_is_lost_between_hosts_on_several_cores() {
    for seed in 0..4 {
        let world = World::new(seed, WorldConfig::default());
        let machine = world.machine("drive", Ipv4Addr::new(10, 0, 0, 1), 3);
        let host = world.machine("host", Ipv4Addr::new(10, 0, 0, 2), 1);
        let socket = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 4420));
        let disk = Arc::new(Volatile::new(128 << 20, VolatileConfig::default()));
        let ready = Rc::new(Cell::new(false));
        let told = Rc::clone(&ready);
        world.start(machine, move |core| {
            let (media, told) = (Media::Volatile(Arc::clone(&disk)), Rc::clone(&told));
            async move {
                if core == CoreId(0) {
                    let shared = drive::open(media, true, NQN, &SPLIT, &Resources::default())
                        .await
                        .expect("opens");
                    csd_drive::life::start_all(&shared).await.expect("starts");
                    let listener = Listener::bind(socket).unwrap();
                    told.set(true);
                    accept::accept(listener, shared).await;
                }
                std::future::pending().await
            }
        });
        world.run_until(|_| ready.get(), Duration::from_secs(60)).expect("the drive starts");
        let counted = Rc::new(Cell::new(None));
        let slot = Rc::clone(&counted);
        world.start(host, move |_| {
            let slot = Rc::clone(&slot);
            async move {
                let address = Address::new(socket, NQN);
                let begin = |_| spawn(Class::Foreground, count(address.clone()));
                let hosts: Vec<_> = (0..HOSTS).map(begin).collect();
                for host in hosts {
                    host.await;
                }
                let options = Options::default();
                let controller = Controller::connect(&address, &options).await.expect("connects");
                let block = Block::open(&controller, 1).expect("a block namespace");
                let last = block.read(0, 512).await.expect("read").to_vec();
                slot.set(Some(u64::from_le_bytes(last[..8].try_into().unwrap())));
                sleep(Duration::from_millis(1)).await;
            }
        });
        let done = world.run_until(|_| counted.get().is_some(), Duration::from_secs(60));
        done.expect("the hosts count to the end");
        assert_eq!(counted.get(), Some(HOSTS * STEPS), "seed {seed}");
    }
}
