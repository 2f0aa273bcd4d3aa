//! A host that sends the longest and worst of everything that a drive takes, legal or not: page
//! lists, executions, programs, ranges, values. No core works longer between two yields than
//! [`WORK_MAX`], counted and not timed, so other hosts' commands get their turn.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::compute::Admission;
use csd_drive::drive::{self, Shared};
use csd_drive::transport::accept;
use csd_drive::{Resources, compute};
use csd_initiator::{
    Address, Block, Compute, Controller, Error, Kv, Memory as LocalMemory, Options, ProgramSlot,
};
use csd_kernels::Scalar;
use csd_kernels::count::Parameters;
use csd_kernels::program::{Compiled, Engine, Failure, Limits, Program};
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Memory};
use csd_nvme::kv::{Key, STORE_IF_NEWER};
use csd_nvme::memory::Range;
use csd_nvme::nvm::{self, Extent};
use csd_nvme::program::MemoryRange;
use csd_nvme::vendor::combine::{Piece, Target, Task};
use csd_nvme::vendor::execute::{Execution, Output, SourceData};
use csd_nvme::vendor::location::{Location, LocationKind};
use csd_nvme::vendor::pages::{self, List, list_key};
use csd_nvme::vendor::{NSID_BLOCK, NSID_COMPUTE, NSID_KV, NSID_MEMORY, NSID_OBJECTS};
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{Buffer, Class, CoreId, Listener, sleep, spawn};

use crate::blocks::submit;
use crate::{DRIVE, HOST, LIMIT, NQN};

/// Most units of work between two yields: about a megabyte copied once, or 0.1 ms.
pub(crate) const WORK_MAX: u64 = 5 << 18;
pub(crate) const MEDIUM_BYTES: u64 = 3 << 30;
const SPLIT: Split = Split { kv_percent: 97, reserve_percent: 5, block_bytes: 4096 };
/// Longest step of the host, in virtual time.
const COMMAND: Duration = Duration::from_secs(300);
const PAGE_BYTES: u32 = 8 << 20;
/// Index of the built-in programs.
const COUNT: u16 = 0;
const COMBINE: u16 = 8;
const PAGES: u16 = 10;
const PTYPE: u8 = 0xC7;

/// Engine that compiles anything, of which nothing starts.
#[derive(Debug)]
struct Any;

impl Engine for Any {
    fn ptype(&self) -> u8 {
        PTYPE
    }

    fn name(&self) -> &'static str {
        "any"
    }

    fn compile(&self, _: &[u8]) -> Result<Arc<dyn Compiled>, String> {
        Ok(Arc::new(Self))
    }
}

impl Compiled for Any {
    fn start(&self, _: &[u8], _: &Limits) -> Result<Box<dyn Program>, Failure> {
        Err(Failure::parameters("it never starts"))
    }

    fn bytes(&self) -> u64 {
        1
    }
}

type Served = Rc<RefCell<Option<Arc<Shared>>>>;

/// A drive that scrubs, and the machine of its hosts.
pub(crate) struct Lane {
    pub(crate) world: World,
    drive: MachineId,
    host: MachineId,
    shared: Served,
}

impl Lane {
    pub(crate) fn new(scrub_bytes_per_s: u64) -> Self {
        let world = World::new(3, WorldConfig::default());
        let (drive, host) = (world.machine("drive", DRIVE, 1), world.machine("host", HOST, 1));
        let shared = Served::default();
        let slot = Rc::clone(&shared);
        world.start(drive, move |core| {
            let slot = Rc::clone(&slot);
            async move {
                assert_eq!(core, CoreId(0));
                let media = Media::Memory(Arc::new(Memory::new(MEDIUM_BYTES)));
                let resources = Resources {
                    engines: vec![Arc::new(Any)],
                    admission: Admission::Any,
                    ..Resources::default()
                };
                let shared = drive::open(media, true, NQN, &SPLIT, &resources).await.unwrap();
                shared.services.begin_scrub(scrub_bytes_per_s);
                csd_drive::life::start_all(&shared).await.unwrap();
                let listener = Listener::bind(SocketAddr::from((DRIVE, 4420))).unwrap();
                *slot.borrow_mut() = Some(Arc::clone(&shared));
                accept::accept(listener, shared).await;
            }
        });
        let lane = Self { world, drive, host, shared };
        lane.world.run_until(|_| lane.shared.borrow().is_some(), LIMIT).expect("it serves");
        // Formatting and starting serve no host yet.
        let _started = lane.world.longest_poll(lane.drive);
        lane
    }

    /// Runs a step of the host, and some passes of the scrub behind it.
    pub(crate) fn step<F: Future<Output = ()> + 'static>(
        &self,
        name: &str,
        main: impl Fn(Controller) -> F + 'static,
    ) {
        let main = Rc::new(main);
        self.world.start(self.host, move |_| {
            let main = Rc::clone(&main);
            async move {
                let address = Address::new(SocketAddr::from((DRIVE, 4420)), NQN);
                let options = Options { command_timeout: COMMAND, ..Options::default() };
                main(Controller::connect(&address, &options).await.unwrap()).await;
                sleep(Duration::from_secs(3)).await;
            }
        });
        let longest = Cell::new(0);
        let is_over = |world: &World| {
            longest.set(world.longest_poll(self.drive).max(longest.get()));
            longest.get() > WORK_MAX || !world.is_running(self.host)
        };
        let ended = self.world.run_until(is_over, 2 * COMMAND);
        ended.unwrap_or_else(|stuck| panic!("{name}: {stuck}"));
        let work = longest.get();
        println!("longest poll, {name}: {work} units");
        assert!(work <= WORK_MAX, "{name}: {work} units of work between two yields");
    }

    /// Returns the bytes that scrubs have read, and the damage that they have met.
    pub(crate) fn scrub(&self) -> (u64, u64) {
        let shared = self.shared.borrow();
        let shared = shared.as_ref().expect("it serves");
        let bytes = shared.services.scrub.bytes.load(Relaxed);
        (bytes, shared.segments.scrub_damage.load(Relaxed))
    }
}

/// Does what a drive may refuse.
fn any<T>(done: Result<T, Error>) {
    if let Err(error) = done {
        assert!(error.status().is_some(), "{error}");
    }
}

fn value(seed: u64, bytes: u32) -> Vec<u8> {
    let word = |at: u64| (seed << 40 | at).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
    (1..).flat_map(word).take(bytes as usize).collect()
}

fn key(number: u8) -> [u8; 16] {
    [number; 16]
}

pub(crate) async fn store(kv: &Kv, key: &[u8], bytes: &[u8], options: u8) {
    let pieces = bytes.chunks(1 << 17).map(Buffer::from_slice).collect();
    any(kv.store(&Key::new(key).unwrap(), pieces, options).await);
}

/// Returns a list as long as a value may be, of pieces of zeros that `piece` gives.
fn list(value_bytes: u32, piece: impl Fn(u64) -> pages::Piece) -> Vec<u8> {
    let piece_bytes = piece(0).bytes;
    let of_piece = piece_bytes.div_ceil(PAGE_BYTES);
    let page = vec![0; piece_bytes.min(PAGE_BYTES) as usize];
    let count = (value_bytes - 64) / (16 + 4 * of_piece);
    let list = List {
        kind: LocationKind::BLOCKS,
        nsid: NSID_BLOCK,
        page_bytes: PAGE_BYTES,
        object: [7; 12],
        pieces: (0..count.into()).map(piece).collect(),
        sums: vec![crc32c::crc32c(&page); (count * of_piece) as usize],
    };
    list.encode()
}

async fn values(controller: Controller) {
    let kv = Kv::open(&controller, NSID_KV).unwrap();
    let most = kv.value_bytes_max();
    for number in 0..4 {
        store(&kv, &key(number), &value(number.into(), most), 0).await;
    }
    let found = kv.retrieve(&Key::new(&key(1)).unwrap(), most).await.unwrap();
    assert!(found.expect("it is stored")[..] == value(1, most));
    // The same bytes, and others of one version.
    for seed in [1, 2] {
        let mut bytes = value(seed, most);
        bytes[8..16].copy_from_slice(&value(1, 16)[8..]);
        store(&kv, &key(1), &bytes, STORE_IF_NEWER).await;
    }
    // Values that are dead, among which the scrub looks for current ones.
    for number in 0..2_000_u32 {
        store(&kv, &(number % 100).to_be_bytes(), b"", 0).await;
    }
    any(kv.list(None, 1 << 20).await);
}

async fn lists(controller: Controller) {
    let kv = Kv::open(&controller, NSID_OBJECTS).unwrap();
    let most = kv.value_bytes_max();
    let beyond = list(most, |_| pages::Piece { start: 1 << 60, bytes: 1 });
    let over = list(most, |_| pages::Piece { start: 32 << 20, bytes: 16 << 20 });
    let one = list(most, |number| pages::Piece { start: number, bytes: 1 });
    let mut damaged = one.clone();
    damaged[100] ^= 1;
    let mut endless = one.clone();
    endless[16..20].fill(0xFF);
    for (number, list) in (0..).zip([beyond, over, damaged, endless]) {
        store(&kv, list_key(&[7; 12], number).as_bytes(), &list, 0).await;
    }
}

async fn compare_pages(controller: Controller) {
    let compute = Compute::open(&controller, NSID_COMPUTE).unwrap();
    for number in 0..5 {
        for piece in [0, 1_000, 100_000, u32::MAX] {
            let (nsid, object) = (NSID_OBJECTS, [7; 12]);
            let task = pages::Task { nsid, object, number, piece, from: 0 };
            any(compute.execute(PAGES, &task.execution()).await);
        }
    }
}

/// As many sums, copies and sources as a task has, all as long as a value.
async fn combine(controller: Controller) {
    let most = Kv::open(&controller, NSID_KV).unwrap().value_bytes_max();
    let piece = |number: u8| {
        let location = Location::Value { nsid: NSID_KV, key: key(number) };
        Piece { peer: 0, location, bytes: most, crc32c: None }
    };
    let target = |number: u8| {
        let factors = if number < 12 { vec![number + 2; 4] } else { vec![1, 0, 0, 0] };
        Target { piece: piece(100 + number), factors }
    };
    let targets = (0..16).map(target).collect();
    let sources = [0, 1, 2, 3].map(piece).to_vec();
    let task = Task { sources, targets, guards: Vec::new(), peers: Vec::new() };
    let compute = Compute::open(&controller, NSID_COMPUTE).unwrap();
    compute.execute(COMBINE, &task.execution(Output::Completion)).await.expect("it is legal");
}

/// Executions of a megabyte, inline and as parameters, and garbage.
async fn executions(controller: Controller) {
    let compute = Compute::open(&controller, NSID_COMPUTE).unwrap();
    let bytes = value(9, (1 << 20) - 1_000);
    let execution = |inline: &[u8], parameters: &[u8]| Execution {
        program: 1,
        output: Output::Completion,
        sources: vec![SourceData::Inline { bytes: inline.len().try_into().unwrap() }.into()],
        inline: inline.to_vec(),
        digests: None,
        parameters: parameters.to_vec(),
        serial: false,
        cores: 1,
    };
    let parameters = Parameters { value: Scalar::I32(7) }.encode();
    let whole = &bytes[..bytes.len() / 4 * 4];
    compute.execute(COUNT, &execution(whole, &parameters)).await.expect("it is legal");
    for program in [COUNT, COMBINE, PAGES] {
        any(compute.execute(program, &execution(b"x", &bytes)).await);
        any(compute.execute(program, &execution(&bytes, b"")).await);
    }
    let chunks =
        SourceData::KvChunks { nsid: NSID_KV, prefix: [0; 12], first: 0, count: 256, stride: 1 };
    any(compute
        .execute(COUNT, &Execution { sources: vec![chunks.into()], ..execution(b"", b"") })
        .await);
}

async fn programs(controller: Controller) {
    let compute = Compute::open(&controller, NSID_COMPUTE).unwrap();
    let slot = ProgramSlot { index: 16, ptype: PTYPE, pid: 1 << 40 };
    let bytes = value(5, 4 << 20);
    assert_ne!(compute::digest(&bytes), [0; 32]);
    compute.load(slot, &bytes).await.expect("it is legal");
    let range = |number: u64| {
        let range = Range { start: number * 8, length: 8 };
        MemoryRange { nsid: NSID_MEMORY, range }
    };
    for count in [1, 7, 8] {
        any(compute.create_range_set(&(0..count).map(range).collect::<Vec<_>>()).await);
    }
}

async fn memory(controller: Controller) {
    let memory = LocalMemory::open(&controller, NSID_MEMORY).unwrap();
    memory.write(0, vec![Buffer::from_slice(&value(6, 4 << 20))]).await.unwrap();
    assert!(memory.read(0, 4 << 20).await.unwrap()[..] == value(6, 4 << 20));
    memory.fill(0, memory.bytes()).await.unwrap();
}

async fn ranges(controller: Controller) {
    let block = Block::open(&controller, NSID_BLOCK).unwrap();
    let blocks = 2_048;
    let extent = Extent { slba: 0, blocks };
    let data = value(8, blocks * 4096);
    let whole = data.chunks(1 << 17).map(Buffer::from_slice).collect();
    block.write(0, whole, false).await.unwrap();
    any(submit(&block, nvm::compare(block.nsid(), extent), &data).await);
    let many: Vec<Extent> = (0..128).map(|slba| Extent { slba, blocks: 16 }).collect();
    let (sqe, payload) = nvm::copy(block.nsid(), &many, 4_096);
    any(submit(&block, sqe, &payload).await);
    let many: Vec<Extent> = (0..256).map(|slba| Extent { slba, blocks: 1_000 }).collect();
    let (sqe, payload) = nvm::deallocate(block.nsid(), &many);
    any(submit(&block, sqe, &payload).await);
    any(submit(&block, nvm::write_zeroes(block.nsid(), extent, false), &[]).await);
}

/// A full queue of the longest reads that are answered where they are parsed, again and again.
async fn reads(controller: Controller) {
    let block = Rc::new(Block::open(&controller, NSID_BLOCK).unwrap());
    for _ in 0..4 {
        let reads: Vec<_> = (0..100)
            .map(|_| {
                let block = Rc::clone(&block);
                spawn(Class::Foreground, async move { block.read(0, 1 << 17).await.map(drop) })
            })
            .collect();
        for read in reads {
            read.await.unwrap();
        }
    }
}

#[test]
fn no_poll_is_long_whatever_a_host_sends() {
    let lane = Lane::new(1 << 30);
    lane.step("values", values);
    lane.step("page lists", lists);
    lane.step("the program pages", compare_pages);
    lane.step("executions", executions);
    lane.step("programs and range sets", programs);
    lane.step("memory", memory);
    lane.step("ranges of blocks", ranges);
    lane.step("reads at depth", reads);
    lane.step("combine", combine);
    assert_eq!(lane.scrub().1, 0, "what no medium can have is no damage");
}

/// A list of the same blocks over and over says that a pass of the scrub is terabytes.
#[test]
fn a_page_list_makes_no_pass_longer_than_the_blocks() {
    let lane = Lane::new(1 << 30);
    lane.step("a list", |controller| async move {
        let kv = Kv::open(&controller, NSID_OBJECTS).unwrap();
        let over = list(kv.value_bytes_max(), |_| pages::Piece { start: 0, bytes: 16 << 20 });
        store(&kv, list_key(&[7; 12], 0).as_bytes(), &over, 0).await;
    });
    let (before, _) = lane.scrub();
    let span = Duration::from_secs(20);
    lane.world.run_for(span);
    let (after, damage) = lane.scrub();
    // There is a second between two passes.
    let most = (span.as_secs() + 1) * (MEDIUM_BYTES / 100 * 3 + (17 << 20));
    assert!(after - before <= most, "{} bytes in {span:?}", after - before);
    assert!(after - before > 16 << 20, "the piece that is kept was read");
    assert_eq!(damage, 0);
}

/// Pieces that a medium may have, so that all of them are read.
#[test]
fn a_piece_of_a_page_list_takes_no_longer_than_the_one_before() {
    let lane = Lane::new(1 << 30);
    lane.step("many pieces", |controller| async move {
        let kv = Kv::open(&controller, NSID_OBJECTS).unwrap();
        let many = list(kv.value_bytes_max(), |number| pages::Piece { start: number, bytes: 1 });
        store(&kv, list_key(&[7; 12], 0).as_bytes(), &many, 0).await;
    });
    assert_eq!(lane.scrub().1, 0);
}
