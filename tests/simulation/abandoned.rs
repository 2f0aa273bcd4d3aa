//! Hosts that reset, shut down or vanish with writes in progress on a slow disk. Once CSTS reports
//! the end, or the host's next queue is connected, no old write is in progress, so none can
//! overwrite a later one. A fused pair does not run at the same time as an abandoned write.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::HostLimits;
use csd_initiator::{Address, Block, Controller, Kv, Memory, Options};
use csd_kvlog::format::{self, PAGE_BYTES, Superblock};
use csd_kvlog::media::{FaultConfig, Faulty, Media, Memory as MemoryMedia};
use csd_nvme::capsule::{Sgl, Sqe};
use csd_nvme::memory::{self, Range};
use csd_nvme::nvm::{self, Extent};
use csd_nvme::{fabrics, kv, property};
use csd_reactor::{Buffer, Stream, join, random_u64, sleep};

use crate::blocks::{fused_pair, submit};
use crate::served::Served;
use crate::stalled::{capsule_of, queue};
use crate::workload::key;
use crate::{DRIVE_BYTES, seeds};

const ROUNDS: usize = 6;
/// Longest time of a disk access.
const SLOW_US: u64 = 30_000;
/// Number of blocks, keys and pieces of memory that are written.
const PLACES: u64 = 4;
const BYTES: usize = 4096;
/// Block of zeros, the source of copies.
const SOURCE: u64 = 100;
/// `nsid` of the memory namespace.
const MEMORY: u32 = 4;
/// CC that enables with all command sets, in the usual sizes.
const ENABLED: u32 = 4 << 20 | 6 << 16 | 6 << 4 | 1;

/// End of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Reset,
    Shutdown,
    Vanish,
}

/// Host in raw bytes that sends writes without waiting for them.
struct Raw {
    admin: Stream,
    io: Stream,
    cid: u16,
}

impl Raw {
    async fn connect(address: &Address) -> Self {
        let (admin, cntlid) = queue(address, 0, 0xFFFF, 32).await;
        let mut raw = Self { admin, io: Stream::connect(&address.socket).await.unwrap(), cid: 100 };
        raw.admin(fabrics::property_set(property::CC, ENABLED)).await;
        raw.io = queue(address, 1, cntlid, 32).await.0;
        raw
    }

    /// Sends an admin command without data; returns dword 0 of its answer.
    async fn admin(&mut self, mut sqe: Sqe) -> u32 {
        self.cid += 1;
        sqe.set_cid(self.cid).set_sgl(Sgl::transport(0));
        self.admin.send_all(&capsule_of(&sqe, &[])).await.unwrap();
        let mut answer = [0; 24];
        self.admin.recv_exact(&mut answer).await.unwrap();
        assert_eq!(answer[22..], [0, 0], "an admin command");
        u32::from_le_bytes(answer[8..12].try_into().unwrap())
    }

    /// Sends a command with its data in the capsule.
    async fn post(&mut self, mut sqe: Sqe, data: &[u8]) {
        self.cid += 1;
        let length = u32::try_from(data.len()).unwrap();
        sqe.set_cid(self.cid);
        match length {
            0 => sqe.set_sgl(Sgl::transport(0)),
            _ => sqe.set_sgl(Sgl::in_capsule(length)),
        };
        self.io.send_all(&capsule_of(&sqe, data)).await.unwrap();
    }

    /// Changes one of the places, of any kind.
    async fn change(&mut self) {
        let (place, old) = (random_u64() % PLACES, [0xAA; BYTES]);
        let extent = Extent { slba: place, blocks: 1 };
        let range = Range { start: place * BYTES as u64, length: BYTES as u64 };
        match random_u64() % 10 {
            0..3 => self.post(nvm::write(1, extent, random_u64().is_multiple_of(2)), &old).await,
            3 => self.post(nvm::write_zeroes(1, extent, random_u64().is_multiple_of(2)), &[]).await,
            4 => {
                let (sqe, list) = nvm::deallocate(1, &[extent]);
                self.post(sqe, &list).await;
            }
            5 => {
                // A Copy becomes a writer only after it has read, so it may rightly write after a
                // write that began later. The target is therefore not a block of pairs.
                let source = [Extent { slba: SOURCE, blocks: 1 }];
                let (sqe, list) = nvm::copy(1, &source, place.max(1));
                self.post(sqe, &list).await;
            }
            6 | 7 => self.post(kv::store(2, &key(place), 4096, 0), &old).await,
            8 => self.post(kv::delete(2, &key(place)), &[]).await,
            _ => self.post(memory::write(MEMORY, range), &old).await,
        }
    }

    /// Ends the controller, and waits until the drive reports the end.
    async fn end(mut self, end: End) {
        let (value, mask, done) = match end {
            End::Reset => (ENABLED & !1, 1, 0),
            End::Shutdown => (ENABLED | 1 << 14, 0b1100, 0b1000),
            End::Vanish => return,
        };
        self.admin(fabrics::property_set(property::CC, value)).await;
        while self.admin(fabrics::property_get(property::CSTS, false)).await & mask != done {
            sleep(Duration::from_micros(300)).await;
        }
    }
}

/// A host's view of the places.
struct Host {
    block: Block,
    kv: Kv,
    memory: Memory,
}

impl Host {
    async fn connect(address: &Address, nqn: &str) -> Self {
        let options = Options { host_nqn: nqn.to_owned(), ..Options::default() };
        let controller = Controller::connect(address, &options).await.expect("connects");
        Self {
            block: Block::open(&controller, 1).expect("a block namespace"),
            kv: Kv::open(&controller, 2).expect("a kv namespace"),
            memory: Memory::open(&controller, MEMORY).expect("a memory namespace"),
        }
    }

    async fn write_all(&self, byte: u8) {
        for place in 0..PLACES {
            let data = || vec![Buffer::from_slice(&[byte; BYTES])];
            let at = place * BYTES as u64;
            self.block.write(at, data(), place % 2 == 0).await.expect("writes");
            self.kv.store(&key(place), data(), 0).await.expect("stores");
            self.memory.write(at, data()).await.expect("remembers");
        }
    }

    async fn check_all(&self, byte: u8, when: &str) {
        for place in 0..PLACES {
            let at = place * BYTES as u64;
            let block = self.block.read(at, BYTES).await.expect("reads");
            let value = self.kv.retrieve(&key(place), 8192).await.expect("retrieves");
            let memory = self.memory.read(at, BYTES).await.expect("remembers");
            let right = |bytes: &[u8]| bytes.len() == BYTES && bytes.iter().all(|it| *it == byte);
            assert!(right(&block), "block {place} {when}");
            assert!(value.is_some_and(|value| right(&value)), "key {place} {when}");
            assert!(right(&memory), "memory {place} {when}");
        }
    }

    /// Counts in block 0 by a fused pair; returns true if the compare succeeded.
    async fn pair(&self, new: u8) -> bool {
        let extent = Extent { slba: 0, blocks: 1 };
        let old = self.block.read(0, BYTES).await.expect("reads").to_vec();
        let (first, second) = fused_pair(1, extent);
        let new = [new; BYTES];
        let ended = join(submit(&self.block, first, &old), submit(&self.block, second, &new)).await;
        ended.0.is_ok() && ended.1.is_ok()
    }
}

/// Counts over a seed.
#[derive(Default)]
struct Seen {
    under_way: [u64; 3],
    pairs: u64,
}

/// Returns the number of writes that run, except the drive's own notes on its log, which it makes
/// when all commands are answered.
fn writes(disk: &Faulty, log: &Superblock) -> usize {
    let is_hint = |at: &u64| (at - log.kv_offset()) % log.segment_bytes() == PAGE_BYTES;
    let in_log = |at: &u64| (log.kv_offset()..log.block_offset()).contains(at);
    disk.writes_under_way().iter().filter(|at| !(in_log(at) && is_hint(at))).count()
}

async fn live(address: Address, disk: Arc<Faulty>) -> Seen {
    let mut seen = Seen::default();
    let log = format::open(disk.inner()).await.expect("a drive");
    // Another host, connected all the time.
    let stranger = Host::connect(&address, "nqn.2026-11.io.csdstore:stranger").await;
    for round in 0..ROUNDS {
        let end = [End::Reset, End::Shutdown, End::Vanish][round % 3];
        let mut raw = Raw::connect(&address).await;
        for _ in 0..1 + random_u64() % 12 {
            raw.change().await;
        }
        sleep(Duration::from_micros(random_u64() % SLOW_US)).await;
        let under_way = disk.writing_bytes.load(Relaxed) > 0;
        seen.under_way[round % 3] += u64::from(under_way);
        let new = u8::try_from(round + 1).unwrap();
        raw.end(end).await;
        if end != End::Vanish {
            assert_eq!(writes(&disk, &log), 0, "{end:?}: a write is under way");
        }
        let host = if end == End::Vanish {
            if random_u64().is_multiple_of(2) && stranger.pair(new).await {
                seen.pairs += 1;
                sleep(Duration::from_micros(4 * SLOW_US)).await;
                let block = stranger.block.read(0, BYTES).await.expect("reads");
                assert!(block.iter().all(|byte| *byte == new), "a pair was overtaken");
            }
            // The raw host's name: its next queue.
            Host::connect(&address, "nqn.2014-08.org.nvmexpress:uuid:stock-client").await
        } else {
            Host::connect(&address, "nqn.2026-11.io.csdstore:another").await
        };
        assert_eq!(writes(&disk, &log), 0, "a write is under way");
        host.write_all(new).await;
        host.check_all(new, "at once").await;
        sleep(Duration::from_micros(4 * SLOW_US)).await;
        host.check_all(new, "later").await;
    }
    seen
}

fn run(seed: u64) -> Seen {
    let served = Served::new(seed, 1 + usize::try_from(seed % 3).unwrap());
    let memory = Media::Memory(Arc::new(MemoryMedia::new(DRIVE_BYTES)));
    let disk = Arc::new(Faulty::new(memory, seed));
    served.start(&Media::Faulty(Arc::clone(&disk)), true, HostLimits::default());
    disk.set(FaultConfig { latency_us: 0..SLOW_US, ..FaultConfig::default() });
    served.host(move |address| live(address, Arc::clone(&disk)))
}

#[test]
fn nothing_that_a_host_left_behind_lands_later() {
    let (mut under_way, mut pairs) = ([0; 3], 0);
    for seen in seeds::each(seeds(), run) {
        under_way.iter_mut().zip(seen.under_way).for_each(|(all, more)| *all += more);
        pairs += seen.pairs;
    }
    let count = seeds().count() as u64;
    let [reset, shutdown, vanish] = under_way;
    println!(
        "abandoned: {count} seeds; with writes under way: {reset} resets, {shutdown} shutdowns, \
         {vanish} lost hosts; {pairs} pairs held"
    );
    assert!(under_way.iter().all(|one| *one >= count / 2), "hardly anything was under way");
    assert!(pairs > 0 || count < 50, "no pair held");
}
