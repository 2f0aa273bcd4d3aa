//! The array lane: six drives and two hosts that put, protect, repair, move, get and remove objects
//! of the same names, as values and on blocks.
//!
//! Faults allowed: power cuts of drives; emptied media, and older media put back, one at a time,
//! the next after hosts have seen the drive vote again; partitions of a host from one drive or from
//! all, and of two drives, which encode for the hosts; crashes of hosts at any step; chunks
//! replaced by other bytes; bits that flip at rest, in pieces (`flips_at_work.rs`) and in the
//! catalogue (`rot.rs`) while all this goes on, and at last in all that is stored (`flips.rs`). At
//! most three drives are out of a host's reach or have forgotten something, as six allow.
//!
//! Rules: no host gets the answer that an object is missing, there, or of other bytes than its
//! put's, unless a change that was asked allows it; wrong bytes reach no reader; no drive's epoch
//! of a name falls (`history.rs`, `host.rs`). After a repair that reported success, and the last
//! one of each object with enough pieces, the media hold all of them (`repair.rs`), with right page
//! lists (`listed.rs`). In the end a write quorum of the media holds every acknowledged change;
//! every piece of a protected object with its digest is the scalar code's; an object with enough
//! such pieces was read, and no other one; no piece belongs to no object (`at_rest.rs`). The lane
//! reads the simulated media themselves, by the documented format (`medium.rs`).

mod at_rest;
mod claims;
mod codes;
mod damaged;
mod degraded;
mod faults;
mod flips;
mod flips_at_work;
mod folders;
mod guards;
mod history;
mod host;
mod least_first;
mod listed;
mod medium;
mod moved;
mod own_blocks;
mod pace;
mod pieces;
mod rebalance;
mod removal;
mod repair;
mod replaced;
mod resumed;
mod rot;
mod slow;
mod stalled;
mod steps;
mod writers;

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::peers::{Directory, PeerList};
use csd_drive::transport::accept;
use csd_drive::{Resources, drive};
use csd_initiator::Address;
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Volatile, VolatileConfig};
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{CoreId, Listener};
use csd_store::array::{ArrayFile, GUARDED, Guards, Plan};

use crate::{DRIVE_BYTES, LIMIT, seeds};
use faults::Faults;
use host::{Known, Shared};

/// Number of drives, hosts and names.
pub const DRIVES: usize = 6;
const HOSTS: usize = 2;
pub const NAMES: usize = 8;
/// Faults of a run.
const FAULTS: u64 = 24;
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };

fn ip(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(index + 1).unwrap())
}

fn nqn(index: usize) -> String {
    format!("nqn.2026-11.io.csdstore:d{index}")
}

/// Returns the address of a drive.
pub fn address(index: usize) -> Address {
    Address::new(SocketAddr::from((ip(index), 4420)), &nqn(index))
}

/// Returns the resources of a drive: all drives are peers.
fn resources() -> Resources {
    let lines = (0..DRIVES).map(|index| format!("peer {}\n", address(index)));
    let list = PeerList::parse(&lines.collect::<String>()).unwrap();
    Resources { peers: Some(Directory::fixed(list)), ..Resources::default() }
}

/// Returns the file of an array of the first `drives` drives.
fn file(drives: usize) -> ArrayFile {
    let mut text = format!("schema = 1\nname = \"a\"\nuuid = \"{0}{0}\"\n", "0123456789abcdef");
    for index in 0..drives {
        let url = format!("nvme+tcp://{}:4420/{}", ip(index), nqn(index));
        text += &format!("[[drives]]\nname = \"d{index}\"\nurl = \"{url}\"\n");
    }
    ArrayFile::parse(&text).unwrap()
}

fn plan() -> Plan {
    Plan::new(&file(DRIVES))
}

struct Drive {
    machine: MachineId,
    disk: Arc<Volatile>,
    is_formatted: Rc<Cell<bool>>,
    /// A copy of the disk at an earlier stop, and the number of its medium.
    older: Option<Arc<Volatile>>,
}

struct Lane {
    world: World,
    guards: Guards,
    /// True if most faults isolate a host, in the middle of a change.
    isolating: bool,
    /// True if most faults empty a drive.
    forgetting: bool,
    drives: Vec<Drive>,
    hosts: Vec<MachineId>,
    warden: MachineId,
    known: Known,
    faults: Faults,
}

impl Lane {
    fn new(seed: u64, guards: Guards) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let drive = |index: usize| Drive {
            machine: world.machine(&nqn(index), ip(index), 1),
            disk: Arc::new(Volatile::new(DRIVE_BYTES, VolatileConfig::default())),
            is_formatted: Rc::default(),
            older: None,
        };
        let drives: Vec<Drive> = (0..DRIVES).map(drive).collect();
        let hosts = (0..HOSTS).map(|host| world.machine("host", ip(20 + host), 1)).collect();
        let warden = world.machine("warden", ip(30), 1);
        let repairing = repair::hides_nothing(guards) && !seed.is_multiple_of(3);
        let disks = drives.iter().map(|drive| Arc::clone(&drive.disk)).collect();
        let mending = guards == GUARDED;
        let known = Shared { disks, media: [1; DRIVES], repairing, mending, ..Shared::default() };
        let known = Rc::new(RefCell::new(known));
        let (isolating, forgetting, faults) = (seed % 2 == 1, seed % 4 == 2, Faults::default());
        Self { world, guards, isolating, forgetting, drives, hosts, warden, known, faults }
    }

    fn draw(&self, range: Range<u64>) -> u64 {
        range.start + self.world.random_u64() % (range.end - range.start)
    }

    fn draw_drive(&self) -> usize {
        usize::try_from(self.draw(0..DRIVES as u64)).unwrap()
    }

    /// Starts a drive; hosts can connect a moment later.
    fn start_drive(&self, index: usize) {
        let Drive { machine, disk, is_formatted, .. } = &self.drives[index];
        let (media, is_formatted) = (Media::Volatile(Arc::clone(disk)), Rc::clone(is_formatted));
        self.world.start(*machine, move |core| {
            let (media, is_formatted) = (media.clone(), Rc::clone(&is_formatted));
            async move {
                if core == CoreId(0) {
                    let (name, resources) = (nqn(index), resources());
                    let is_new = !is_formatted.get();
                    let shared = drive::open(media, is_new, &name, &SPLIT, &resources);
                    let shared = shared.await.expect("opens");
                    csd_drive::life::start_all(&shared).await.expect("recovers");
                    is_formatted.set(true);
                    let listener = Listener::bind(SocketAddr::from((ip(index), 4420))).unwrap();
                    accept::accept(listener, shared).await;
                }
                std::future::pending().await
            }
        });
    }

    /// Starts all drives, and waits until they have formatted their media.
    fn start_drives(&self) {
        (0..DRIVES).for_each(|index| self.start_drive(index));
        self.wait("drives", || self.drives.iter().all(|drive| drive.is_formatted.get()));
    }

    fn start_host(&self, host: usize) {
        let (guards, known) = (self.guards, Rc::clone(&self.known));
        self.world
            .start(self.hosts[host], move |_| host::work(host, plan(), guards, known.clone()));
    }

    /// Cuts the power of a drive and returns it after a while, sometimes with another medium.
    fn cut(&mut self, index: usize) {
        let Drive { machine, is_formatted, .. } = &self.drives[index];
        if !is_formatted.get() {
            return;
        }
        self.world.crash(*machine);
        self.drives[index].disk.power_cut(|| self.world.random_u64());
        self.drives[index].disk.power_on();
        self.faults.cuts += 1;
        let forgetful = {
            let known = self.known.borrow();
            known.media != known.voting
        };
        match if self.forgetting { 0 } else { self.draw(0..6) } {
            0 if !forgetful => {
                let disk = Volatile::new(DRIVE_BYTES, VolatileConfig::default());
                self.replace(index, disk, false);
                self.faults.emptied += 1;
            }
            1..4 if !forgetful => match self.drives[index].older.take() {
                Some(older) => {
                    self.replace(index, older.copied(), true);
                    self.faults.older += 1;
                }
                None => self.keep_copy(index),
            },
            _ if self.drives[index].older.is_none() => self.keep_copy(index),
            _ => {}
        }
        self.world.run_for(Duration::from_millis(self.draw(1..1500)));
        self.start_drive(index);
    }

    /// Keeps a copy of a drive's medium, which may come back later.
    fn keep_copy(&mut self, index: usize) {
        self.drives[index].older = Some(Arc::new(self.drives[index].disk.copied()));
    }

    fn replace(&mut self, index: usize, disk: Volatile, is_formatted: bool) {
        let drive = &mut self.drives[index];
        self.faults.losses.add(drive.disk.losses());
        drive.disk = Arc::new(disk);
        drive.is_formatted = Rc::new(Cell::new(is_formatted));
        drive.older = None;
        let mut known = self.known.borrow_mut();
        known.disks[index] = Arc::clone(&drive.disk);
        known.media[index] += 1;
        known.losses += 1;
    }

    fn fault(&mut self) {
        if self.known.borrow().codes && self.draw(0..3) == 0 {
            return self.leave_two();
        }
        let host = usize::try_from(self.draw(0..HOSTS as u64)).unwrap();
        let (index, span) = (self.draw_drive(), Duration::from_millis(self.draw(1..4000)));
        let kind = self.draw(0..6);
        let kind = match (self.isolating, self.forgetting) {
            (true, _) if kind > 0 => 4,
            (_, true) if kind < 5 => 0,
            _ => kind,
        };
        match kind {
            0..3 => self.cut(index),
            3 => {
                self.faults.partitions += 1;
                let end = match self.draw(0..3) {
                    0 => {
                        let further = usize::try_from(self.draw(1..DRIVES as u64)).unwrap();
                        self.drives[(index + further) % DRIVES].machine
                    }
                    _ => self.hosts[host],
                };
                self.world.partition(end, self.drives[index].machine);
                // Another drive may fail meanwhile.
                self.world.run_for(span / 2);
                let other = (index + 1) % DRIVES;
                if self.draw(0..3) == 0 {
                    self.cut(other);
                }
                self.world.run_for(span / 2);
                self.world.heal(end, self.drives[index].machine);
            }
            4 => {
                self.faults.isolations += 1;
                // In the middle of a change, if one comes soon.
                let open = |_: &World| self.known.borrow().history.is_changing(host);
                let _soon = self.world.run_until(open, Duration::from_millis(500));
                self.world.run_for(Duration::from_micros(self.draw(0..20_000)));
                let ends = self.drives.iter().map(|drive| drive.machine);
                ends.clone().for_each(|end| self.world.partition(self.hosts[host], end));
                // Longer than others wait for a writer, and mostly shorter than the drives do.
                self.world.run_for(Duration::from_millis(self.draw(400..2200)));
                ends.for_each(|end| self.world.heal(self.hosts[host], end));
            }
            _ => {
                self.faults.host_crashes += 1;
                self.world.crash(self.hosts[host]);
                self.known.borrow_mut().history.crashed(host, self.world.now().ns());
                self.world.run_for(span / 4);
                self.start_host(host);
            }
        }
    }

    fn wait(&self, what: &str, done: impl Fn() -> bool) {
        let waited = self.world.run_until(|_| done(), LIMIT);
        waited.unwrap_or_else(|stuck| panic!("waiting for {what}: {stuck}"));
    }

    fn run(mut self) -> Outcome {
        self.start_drives();
        (0..HOSTS).for_each(|host| self.start_host(host));
        let known = Rc::clone(&self.known);
        self.world.start(self.warden, move |_| host::watch(known.clone()));
        for _ in 0..FAULTS {
            self.world.run_for(Duration::from_millis(self.draw(1..700)));
            if self.draw(0..3) == 0 {
                self.flip_at_work();
            }
            self.rot_at_work();
            self.fault();
        }
        self.known.borrow_mut().stopping = true;
        self.wait("hosts", || self.hosts.iter().all(|host| !self.world.is_running(*host)));
        self.world.crash(self.warden);
        // Longer than any command of a drive to its peer.
        self.world.run_for(Duration::from_secs(15));
        self.read_with_two();
        self.read_back();
        self.faults.flips = self.flip_and_repair();
        self.faults.degraded = self.read_without_drives();
        self.count();
        let known = self.known.borrow();
        Outcome {
            hash: self.world.trace_hash(),
            answered: known.history.answered(),
            scanned: known.scanned,
            violations: known.history.check(NAMES),
            faults: self.faults,
        }
    }

    /// Counts what the hosts have met, and the losses of the disks, once at the end.
    fn count(&mut self) {
        self.faults.count(&self.known.borrow());
        self.drives.iter().for_each(|drive| self.faults.losses.add(drive.disk.losses()));
    }

    /// Reads every name once all drives vote.
    fn read_back(&self) {
        for _ in 0..20 {
            let (told, known, guards) = (Rc::default(), Rc::clone(&self.known), self.guards);
            let done: Rc<Cell<Option<bool>>> = Rc::clone(&told);
            self.world.start(self.hosts[0], move |_| {
                let (done, known) = (Rc::clone(&done), Rc::clone(&known));
                async move { done.set(Some(host::read_all(0, plan(), guards, known).await)) }
            });
            self.wait("the last look", || !self.world.is_running(self.hosts[0]));
            if told.get() == Some(true) {
                return;
            }
        }
        panic!("a drive does not get its vote back");
    }
}

/// Result of a run.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    hash: u64,
    answered: usize,
    scanned: u64,
    violations: Vec<String>,
    faults: Faults,
}

impl Outcome {
    /// Returns the outcome of a run that kept the rules.
    fn checked(self) -> Self {
        assert!(self.violations.is_empty(), "{:#?}", self.violations);
        self
    }
}

#[test]
fn what_is_sealed_is_read_and_what_is_deleted_does_not_return() {
    let (mut all, mut answered, mut scanned) = (Faults::default(), 0, 0);
    for outcome in seeds::each(seeds(), |seed| Lane::new(seed, GUARDED).run().checked()) {
        (answered, scanned) = (answered + outcome.answered, scanned + outcome.scanned);
        all.add(outcome.faults);
    }
    let count = seeds().count() as u64;
    println!("array: {count} seeds, {answered} answers, {scanned} looks at media, {all:?}");
    assert!(answered as u64 > 20 * count, "the hosts hardly worked: {answered}");
    assert!(count < 50 || all.fewest() > count / 5, "{all:?}");
}

#[test]
fn equal_seeds_of_the_array_lane_have_equal_traces() {
    assert_eq!(Lane::new(1, GUARDED).run(), Lane::new(1, GUARDED).run());
}
