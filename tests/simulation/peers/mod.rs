//! Drives that work with each other by the program `combine`.
//!
//! The fleet: three drives that have each other in their files of peers, one more that no file
//! names, and a host. `tasks` has them execute one task after the other, `guarded` tasks whose
//! targets depend on values of their drive; `faulty` is a lane with power cuts and partitions
//! between drives. `classes` looks at the time that a drive spends on commands of a peer.

mod classes;
mod faulty;
mod guarded;
mod silent;
mod tasks;

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive;
use csd_drive::peers::{Directory, PeerList};
use csd_drive::transport::accept;
use csd_initiator::{Address, Block, Compute, Controller, Error, Kv, Options, Secret};
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Volatile, VolatileConfig};
use csd_nvme::auth::{Hash, Offer};
use csd_nvme::status::Status;
use csd_nvme::vendor::combine::{Answers, Piece, Target, Task};
use csd_nvme::vendor::execute::{Output, chunk_key};
use csd_nvme::vendor::location::Location;
use csd_nvme::vendor::{NSID_BLOCK, NSID_COMPUTE, NSID_OBJECTS};
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{Buffer, Class, CoreId, Listener, spawn};

use crate::{DRIVE_BYTES, LIMIT};

/// Number of drives; the last one is a stranger to the others.
const DRIVES: usize = 4;
const STRANGER: usize = 3;
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };
/// Index of the program.
const COMBINE: u16 = 8;
const PREFIX: [u8; 12] = [0xAB; 12];

fn ip(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(index + 1).unwrap())
}

fn nqn(index: usize) -> String {
    format!("nqn.2026-11.io.csdstore:d{index}")
}

fn address(index: usize) -> Address {
    Address::new(SocketAddr::from((ip(index), 4420)), &nqn(index))
}

/// Returns the list of a drive, with a secret of this byte for each drive.
fn list(secrets: [Option<u8>; 3]) -> PeerList {
    let line = |(index, byte): (usize, Option<u8>)| {
        let secret = byte.map(|byte| Secret::new(Some(Hash::Sha256), &[byte; 32]).unwrap());
        let secret = secret.map_or_else(String::new, |secret| secret.to_text().to_string());
        format!("peer {} {secret}\n", address(index))
    };
    PeerList::parse(&secrets.into_iter().enumerate().map(line).collect::<String>()).unwrap()
}

struct Drive {
    machine: MachineId,
    disk: Arc<Volatile>,
    list: PeerList,
    is_formatted: Rc<Cell<bool>>,
    /// True once hosts can connect.
    is_up: Rc<Cell<bool>>,
}

struct Fleet {
    world: World,
    /// Groups of powers and hashes that drives offer for authentication.
    offer: Offer,
    /// True if the drives have a volatile cache.
    volatile_cache: bool,
    drives: Vec<Drive>,
    host: MachineId,
}

impl Fleet {
    /// Starts the drives, each with its list.
    fn new(seed: u64, lists: impl Fn(usize) -> PeerList) -> Self {
        Self::with(seed, lists, Offer::default(), false)
    }

    fn with(
        seed: u64,
        lists: impl Fn(usize) -> PeerList,
        offer: Offer,
        volatile_cache: bool,
    ) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let drive = |index: usize| Drive {
            machine: world.machine(&nqn(index), ip(index), 1 + index % 2),
            disk: Arc::new(Volatile::new(DRIVE_BYTES, VolatileConfig::default())),
            list: lists(index),
            is_formatted: Rc::default(),
            is_up: Rc::default(),
        };
        let drives: Vec<Drive> = (0..DRIVES).map(drive).collect();
        let host = world.machine("host", ip(20), 1);
        let this = Self { world, offer, volatile_cache, drives, host };
        (0..DRIVES).for_each(|index| this.start(index));
        this.wait_for_drives();
        this
    }

    fn wait_for_drives(&self) {
        let all_up = |_: &World| self.drives.iter().all(|drive| drive.is_up.get());
        self.world.run_until(all_up, LIMIT).expect("the drives serve");
    }

    fn start(&self, index: usize) {
        let Drive { machine, disk, list, is_formatted, is_up } = &self.drives[index];
        is_up.set(false);
        let media = Media::Volatile(Arc::clone(disk));
        let (is_formatted, is_up) = (Rc::clone(is_formatted), Rc::clone(is_up));
        let (peers, offer) = (Some(Directory::fixed(list.clone())), self.offer.clone());
        let volatile_cache = self.volatile_cache;
        self.world.start(*machine, move |core| {
            let (is_formatted, is_up) = (Rc::clone(&is_formatted), Rc::clone(&is_up));
            let (media, offer) = (media.clone(), offer.clone());
            let resources =
                Resources { peers: peers.clone(), volatile_cache, ..Resources::default() };
            async move {
                if core == CoreId(0) {
                    let (is_new, name) = (!is_formatted.get(), nqn(index));
                    let shared = drive::open(media, is_new, &name, &SPLIT, &resources);
                    let mut shared = shared.await.expect("opens");
                    Arc::get_mut(&mut shared).expect("nobody else has it").access.offer = offer;
                    csd_drive::life::start_all(&shared).await.expect("recovers");
                    let listener = Listener::bind(SocketAddr::from((ip(index), 4420))).unwrap();
                    is_formatted.set(true);
                    is_up.set(true);
                    accept::accept(listener, shared).await;
                }
                std::future::pending().await
            }
        });
    }

    /// Runs a host's main to its end, and returns its answer.
    fn on_host<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        main: impl Fn() -> F + 'static,
    ) -> T {
        let answer: Rc<RefCell<Option<T>>> = Rc::default();
        let (slot, main) = (Rc::clone(&answer), Rc::new(main));
        self.world.start(self.host, move |_| {
            let (slot, main) = (Rc::clone(&slot), Rc::clone(&main));
            async move { *slot.borrow_mut() = Some(main().await) }
        });
        let ended = self.world.run_until(|world| !world.is_running(self.host), LIMIT);
        ended.expect("the host ends");
        answer.take().expect("it has answered")
    }
}

fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let word = |at: u64| (seed << 32 | at).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    (1..).flat_map(word).take(count).collect()
}

fn key(number: u32) -> [u8; 16] {
    *chunk_key(&PREFIX, number).padded()
}

/// A value of the objects' namespace on the drive that is number `peer` of a task.
fn value(peer: u8, number: u32, bytes: usize) -> Piece {
    let location = Location::Value { nsid: NSID_OBJECTS, key: key(number) };
    Piece { peer, location, bytes: u32::try_from(bytes).unwrap(), crc32c: None }
}

fn blocks(peer: u8, slba: u64, bytes: usize) -> Piece {
    Piece { location: Location::Blocks { nsid: NSID_BLOCK, slba }, ..value(peer, 0, bytes) }
}

fn options() -> Options {
    Options { command_timeout: Duration::from_secs(30), ..Options::default() }
}

async fn connect(index: usize) -> Controller {
    Controller::connect(&address(index), &options()).await.unwrap()
}

async fn store(index: usize, number: u32, bytes: &[u8]) {
    let kv = Kv::open(&connect(index).await, NSID_OBJECTS).unwrap();
    kv.store(&chunk_key(&PREFIX, number), vec![Buffer::from_slice(bytes)], 0).await.unwrap();
}

async fn retrieve(index: usize, number: u32) -> Option<Vec<u8>> {
    retrieve_from(NSID_OBJECTS, index, number).await
}

async fn retrieve_from(nsid: u32, index: usize, number: u32) -> Option<Vec<u8>> {
    let kv = Kv::open(&connect(index).await, nsid).unwrap();
    let found = kv.retrieve(&chunk_key(&PREFIX, number), 1 << 20).await.unwrap();
    found.map(|value| value.to_vec())
}

async fn write(index: usize, slba: u64, bytes: &[u8]) {
    let block = Block::open(&connect(index).await, NSID_BLOCK).unwrap();
    let mut whole = bytes.to_vec();
    whole.resize(bytes.len().next_multiple_of(4096), 0xEE);
    block.write(slba * 4096, vec![Buffer::from_slice(&whole)], true).await.unwrap();
}

async fn execute(index: usize, task: &Task, output: Output) -> Result<u64, Error> {
    let compute = Compute::open(&connect(index).await, NSID_COMPUTE).unwrap();
    compute.execute(COMBINE, &task.execution(output)).await
}

/// Executes a task and returns its answers, which it leaves as a value.
async fn answers(index: usize, task: &Task) -> Result<Answers, Error> {
    let values = Output::KvChunks {
        nsid: NSID_OBJECTS,
        prefix: PREFIX,
        first: 0xFFFF_FF00,
        stride: 1,
        chunk_bytes: 4096,
    };
    let result = execute(index, task, values).await?;
    let found = retrieve(index, 0xFFFF_FF00).await.expect("the answers");
    let answers = Answers::parse(&found, task.sources.len(), task.targets.len()).unwrap();
    assert_eq!(answers.result(), result);
    Ok(answers)
}

fn status<T: std::fmt::Debug>(answer: Result<T, Error>) -> Status {
    answer.unwrap_err().status().expect("a status")
}

/// A sum with the digest that its target must have.
fn expecting(piece: Piece, bytes: &[u8]) -> Piece {
    Piece { crc32c: Some(crc32c::crc32c(bytes)), ..piece }
}
