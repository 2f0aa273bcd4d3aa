//! Hosts that share a drive's memory see their own changes and none of the others'. Each has a
//! stripe whose ends share a page with its neighbours'. Writes, fills, copies, and copies to blocks
//! and back are compared with a plain vector.

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive;
use csd_drive::transport::accept;
use csd_initiator::{Address, Block, Controller, Memory, Options};
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Volatile, VolatileConfig};
use csd_nvme::memory::{Range, Source};
use csd_nvme::status::Status;
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{Buffer, Class, CoreId, Listener, random_u64, spawn};

const NQN: &str = "nqn.2026-11.io.csdstore:remembered";
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 512 };
const NSID: u32 = 4;
const HOSTS: u64 = 3;
const STEPS: usize = 60;
/// Not a multiple of a page, so that neighbours share one.
const STRIPE_BYTES: u64 = 150_000;
/// Number of blocks of each host.
const BLOCKS: u64 = 300;

fn drawn(below: u64) -> u64 {
    random_u64() % below
}

/// Returns a range of dwords within a stripe, from its beginning.
fn range(most: u64) -> Range {
    let start = drawn(STRIPE_BYTES / 4) * 4;
    let length = (drawn(most / 4) * 4 + 4).min(STRIPE_BYTES - start);
    Range { start, length }
}

fn bounds(range: Range) -> std::ops::Range<usize> {
    let start = usize::try_from(range.start).unwrap();
    start..start + usize::try_from(range.length).unwrap()
}

struct Host {
    memory: Memory,
    block: Block,
    /// Start of its stripe and of its blocks.
    base: u64,
    lba: u64,
    model: Vec<u8>,
}

impl Host {
    async fn step(&mut self, number: usize) {
        match drawn(6) {
            0 | 1 => {
                let range = range(100_000);
                let byte = u8::try_from(drawn(255)).unwrap();
                let data: Vec<u8> =
                    (0..range.length).map(|at| at.to_le_bytes()[0] ^ byte).collect();
                self.model[bounds(range)].copy_from_slice(&data);
                let pieces = vec![Buffer::from_slice(&data)];
                self.memory.write(self.base + range.start, pieces).await.expect("writes");
            }
            2 => {
                let range = range(STRIPE_BYTES);
                self.model[bounds(range)].fill(0);
                self.memory.fill(self.base + range.start, range.length).await.expect("fills");
            }
            3 => self.copy().await,
            4 => self.blocks().await,
            _ => {
                let range = range(STRIPE_BYTES);
                let length = usize::try_from(range.length).unwrap();
                let found = self.memory.read(self.base + range.start, length).await.expect("reads");
                assert!(found[..] == self.model[bounds(range)], "step {number}");
            }
        }
    }

    async fn copy(&mut self) {
        let from = range(60_000);
        let to = Range { start: range(4).start, length: from.length };
        if to.start + to.length > STRIPE_BYTES {
            return;
        }
        let source = Range { start: self.base + from.start, length: from.length };
        let sources = [Source::Memory { nsid: NSID, range: source }];
        let copied = self.memory.copy(&sources, self.base + to.start, None).await;
        if from.overlaps(to) {
            let status = copied.expect_err("overlaps").status();
            assert_eq!(status, Some(Status::OVERLAPPING_RANGE));
            return;
        }
        copied.expect("copies");
        self.model.copy_within(bounds(from), bounds(to).start);
    }

    /// Copies some of the stripe to blocks, and back to another place.
    async fn blocks(&mut self) {
        let length = 512 * (1 + drawn(BLOCKS / 2));
        let most = (STRIPE_BYTES - length) / 4;
        let (from, to) = (drawn(most) * 4, drawn(most) * 4);
        let offset = (self.lba + drawn(BLOCKS / 2)) * 512;
        let source = Range { start: self.base + from, length };
        self.memory.store(&[source], &self.block, offset).await.expect("stores");
        self.memory.load(&self.block, offset, length, self.base + to).await.expect("loads");
        let from = Range { start: from, length };
        self.model.copy_within(bounds(from), usize::try_from(to).unwrap());
    }
}

async fn host(address: Address, number: u64) {
    let controller = Controller::connect(&address, &Options::default()).await.expect("connects");
    let mut host = Host {
        memory: Memory::open(&controller, NSID).expect("a memory namespace"),
        block: Block::open(&controller, 1).expect("a block namespace"),
        base: number * STRIPE_BYTES,
        lba: number * BLOCKS,
        model: vec![0; usize::try_from(STRIPE_BYTES).unwrap()],
    };
    for step in 0..STEPS {
        host.step(step).await;
    }
    let all = host.memory.read(host.base, host.model.len()).await.expect("reads");
    assert!(all[..] == host.model[..], "host {number}");
}

#[test]
fn hosts_on_several_cores_keep_their_stripes() {
    for seed in 0..4 {
        let world = World::new(seed, WorldConfig::default());
        let machine = world.machine("drive", Ipv4Addr::new(10, 0, 0, 1), 3);
        let hosts = world.machine("hosts", Ipv4Addr::new(10, 0, 0, 2), 1);
        let socket = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 4420));
        let disk = Arc::new(Volatile::new(128 << 20, VolatileConfig::default()));
        let ready = Rc::new(Cell::new(false));
        let told = Rc::clone(&ready);
        world.start(machine, move |core| {
            let (media, told) = (Media::Volatile(Arc::clone(&disk)), Rc::clone(&told));
            async move {
                if core == CoreId(0) {
                    let resources = Resources::default();
                    let shared = drive::open(media, true, NQN, &SPLIT, &resources).await;
                    let shared = shared.expect("opens");
                    csd_drive::life::start_all(&shared).await.expect("starts");
                    let listener = Listener::bind(socket).unwrap();
                    told.set(true);
                    accept::accept(listener, shared).await;
                }
                std::future::pending().await
            }
        });
        world.run_until(|_| ready.get(), Duration::from_secs(60)).expect("the drive starts");
        let done = Rc::new(Cell::new(false));
        let told = Rc::clone(&done);
        world.start(hosts, move |_| {
            let told = Rc::clone(&told);
            async move {
                let begin = |number| {
                    let address = Address::new(socket, NQN);
                    spawn(Class::Foreground, host(address, number))
                };
                let all: Vec<_> = (0..HOSTS).map(begin).collect();
                for one in all {
                    one.await;
                }
                told.set(true);
            }
        });
        let ended = world.run_until(|_| done.get(), Duration::from_secs(600));
        ended.unwrap_or_else(|stuck| panic!("seed {seed}: {stuck}"));
    }
}
