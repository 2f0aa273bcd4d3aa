//! Long objects: while one host replaces an object, is cut off or crashes, and the drive loses its
//! power, another host reads. It gets all bytes of one version, never an older one than was done.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use csd_client::{Address, Error, Key, Session, Settings, is_piece};
use csd_kvlog::media::Losses;
use csd_reactor::sleep;

use crate::{DRIVE, NQN, Simulation, seeds};

const WRITER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
/// Number of seeds in the short form; the long form runs all that are asked for.
const SEEDS_SHORT: usize = 12;
const ROUNDS: u64 = 6;
/// Pause of a host before it tries again.
const PAUSE: Duration = Duration::from_millis(20);
const PIECE_BYTES: u32 = 4096;

/// Events of the writer and the reader.
#[derive(Default)]
struct Log {
    /// Last version that a put has begun to store.
    begun: u32,
    /// Last version whose put has ended without an error.
    done: u32,
    reads: u32,
    /// Reads that found the object being replaced to their end.
    replaced: u32,
    renewals: u64,
    failure: Option<String>,
    faults: Faults,
}

/// Faults of a run by kind.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lost_connections: u64,
    host_crashes: u64,
    /// Power cuts and what they did.
    losses: Losses,
}

impl Log {
    /// Adds what another run has met.
    fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.reads += other.reads;
        self.replaced += other.replaced;
        self.renewals += other.renewals;
        self.faults.lost_connections += other.faults.lost_connections;
        self.faults.host_crashes += other.faults.host_crashes;
        self.faults.losses.add(other.faults.losses);
    }

    /// Records a read that began after version `done`.
    fn note(&mut self, read: Result<Option<Vec<u8>>, Error>, done: u32) {
        match read {
            Ok(found) => {
                self.reads += 1;
                if let Err(why) = check(found.as_deref(), done, self.begun) {
                    self.failure.get_or_insert(why);
                }
            }
            Err(Error::Replaced(_)) => self.replaced += 1,
            Err(error @ Error::Damaged { .. }) => {
                self.failure.get_or_insert(error.to_string());
            }
            // The drive is off.
            Err(_) => {}
        }
    }
}

type Shared = Rc<RefCell<Log>>;

fn address() -> Address {
    Address::new(SocketAddr::from((DRIVE, 4420)), NQN)
}

fn settings() -> Settings {
    Settings { piece_bytes_max: PIECE_BYTES, pause: PAUSE, ..Settings::default() }
}

fn key() -> Key {
    Key::new(b"object").unwrap()
}

/// Returns the bytes of a version: some fit into one value, most do not.
fn bytes_of(version: u32) -> Vec<u8> {
    bytes_in(version, 2 + version.wrapping_mul(2_654_435_761) % 7000)
}

fn bytes_in(version: u32, words: u32) -> Vec<u8> {
    (0..words).flat_map(|word| [version, word]).flat_map(u32::to_le_bytes).collect()
}

async fn connected() -> Session {
    loop {
        match Session::connect(&address(), &settings()).await {
            Ok(session) => return session,
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Replaces the object for ever.
async fn write(log: Shared) {
    let (session, mut noted) = (connected().await, 0);
    loop {
        let version = log.borrow().begun + 1;
        log.borrow_mut().begun = version;
        let bytes = bytes_of(version);
        if session.put_object(&key(), &mut &bytes[..], 0, &|_| {}).await.is_ok() {
            log.borrow_mut().done = version;
        }
        log.borrow_mut().renewals += session.renewals() - noted;
        noted = session.renewals();
        sleep(Duration::from_micros(500)).await;
    }
}

/// Reads the object for ever, and checks each answer.
async fn read(log: Shared) {
    let session = connected().await;
    loop {
        let done = log.borrow().done;
        let read = session.get_object(&key()).await;
        log.borrow_mut().note(read, done);
        sleep(PAUSE / 40).await;
    }
}

fn check(found: Option<&[u8]>, done: u32, begun: u32) -> Result<(), String> {
    let Some(found) = found else {
        return if done == 0 { Ok(()) } else { Err(format!("nothing, after version {done}")) };
    };
    let version = u32::from_le_bytes(found[..4].try_into().unwrap());
    if !(done..=begun).contains(&version) {
        return Err(format!("version {version}, not {done} to {begun}"));
    }
    if found == bytes_of(version) { Ok(()) } else { Err(format!("half of version {version}")) }
}

impl Simulation {
    /// Runs a reader and a writer through faults; returns what they met.
    fn replace(&mut self) -> Log {
        let log = Shared::default();
        let writer = self.world.machine("writer", WRITER, 1);
        let start = |log: &Shared| {
            let log = Rc::clone(log);
            self.world.start(writer, move |_| write(Rc::clone(&log)));
        };
        let mut ready = self.start_drive();
        self.wait("the drive", || ready.get());
        self.formatted = true;
        start(&log);
        let of_reader = Rc::clone(&log);
        self.world.start(self.host, move |_| read(Rc::clone(&of_reader)));
        for round in 0..ROUNDS {
            self.world.run_for(Duration::from_micros(self.draw(2_000..120_000)));
            match round % 3 {
                0 => {
                    self.world.disconnect(self.drive, writer);
                    log.borrow_mut().faults.lost_connections += 1;
                }
                1 => {
                    self.world.crash(writer);
                    log.borrow_mut().faults.host_crashes += 1;
                    let log = Rc::clone(&log);
                    self.world.start(writer, move |_| write(Rc::clone(&log)));
                }
                _ => {
                    self.cut();
                    ready = self.start_drive();
                    self.wait("recovery", || ready.get());
                }
            }
        }
        let reads = log.borrow().reads;
        self.wait("reads after all faults", || log.borrow().reads > reads + 20);
        self.world.crash(writer);
        self.world.crash(self.host);
        log.borrow_mut().faults.losses = self.disk.losses();
        log.take()
    }
}

/// Runs the seeds, and prints what they met; returns it with the number of seeds.
fn run(lane: &str, run: impl Fn(u64) -> Log + Sync) -> (Log, u32) {
    let asked = std::env::var_os("CSD_SIM_SEEDS").is_some();
    let most = if asked { usize::MAX } else { SEEDS_SHORT };
    let (mut all, mut count) = (Log::default(), 0);
    let checked = |seed| {
        let log = run(seed);
        assert_eq!(log.failure, None, "seed {seed}");
        log
    };
    for log in seeds::each(seeds::seeds().take(most), checked) {
        all.add(&log);
        count += 1;
    }
    let Log { reads, done, replaced, renewals, faults, .. } = &all;
    println!(
        "long objects, {lane}: {count} seeds, {done} versions, {reads} reads, {replaced} \
         overtaken, {renewals} reconnections, {faults:?}"
    );
    (all, count)
}

#[test]
fn a_reader_gets_one_version_of_a_long_object_whole() {
    let (Log { done, renewals, faults, .. }, count) =
        run("one writer", |seed| Simulation::new(seed).replace());
    assert!(done > 20 * count || count < 12, "{done} versions");
    assert!(renewals > 0 || count < 12, "no connection was lost and made again");
    assert!(faults.losses.lost_sectors > 0 || count < 12, "no cut lost anything: {faults:?}");
}

/// Replaces the object for ever with versions that no other writer has.
async fn race(writer: u32, log: Shared) {
    let (session, mut noted) = (connected().await, 0);
    for number in 1.. {
        let bytes = bytes_in(2 * number + writer, RACED_WORDS);
        if session.put_object(&key(), &mut &bytes[..], 0, &|_| {}).await.is_ok() {
            log.borrow_mut().done += 1;
        }
        log.borrow_mut().renewals += session.renewals() - noted;
        noted = session.renewals();
    }
}

/// Reads the object for ever; any version is right, as long as it is whole.
async fn read_any(log: Shared) {
    let session = connected().await;
    loop {
        let read = session.get_object(&key()).await;
        let failure = match read {
            Ok(Some(found)) => {
                log.borrow_mut().reads += 1;
                let version = u32::from_le_bytes(found[..4].try_into().unwrap());
                let is_whole = found == bytes_in(version, RACED_WORDS);
                (!is_whole).then(|| format!("half of version {version}"))
            }
            Err(error @ Error::Damaged { .. }) => Some(error.to_string()),
            Ok(None) | Err(_) => None,
        };
        if let Some(failure) = failure {
            log.borrow_mut().failure.get_or_insert(failure);
        }
        sleep(Duration::from_millis(2)).await;
    }
}

/// Words of the objects of writers that race: two pieces.
const RACED_WORDS: u32 = PIECE_BYTES / 8 + 1;
const LOSSES: usize = 60;

/// A writer that loses its connection while it publishes must not bring back a version whose pieces
/// the other one has deleted.
#[test]
fn writers_that_race_and_lose_connections_leave_a_whole_object() {
    let (Log { renewals, .. }, count) = run("racing writers", |seed| {
        let simulation = Simulation::new(seed);
        let ready = simulation.start_drive();
        simulation.wait("the drive", || ready.get());
        let log = Shared::default();
        let writers = [3, 4].map(|host| {
            let address = Ipv4Addr::new(10, 0, 0, host);
            let machine = simulation.world.machine("writer", address, 1);
            let log = Rc::clone(&log);
            simulation.world.start(machine, move |_| race((host % 2).into(), Rc::clone(&log)));
            machine
        });
        let of_reader = Rc::clone(&log);
        simulation.world.start(simulation.host, move |_| read_any(Rc::clone(&of_reader)));
        for loss in 0..LOSSES {
            simulation.world.run_for(Duration::from_micros(simulation.draw(500..60_000)));
            simulation.world.disconnect(simulation.drive, writers[loss % 2]);
            log.borrow_mut().faults.lost_connections += 1;
        }
        let before = log.borrow().reads;
        simulation.wait("reads after all losses", || log.borrow().reads > before + 20);
        log.take()
    });
    assert!(renewals > 8 * u64::from(count) || count < 12, "connections were not lost");
}

/// Without faults nothing of an older version stays behind.
#[test]
fn replaced_and_deleted_objects_leave_no_pieces() {
    let simulation = Simulation::new(1);
    let ready = simulation.start_drive();
    simulation.wait("the drive", || ready.get());
    let outcome = simulation.on_host(|_, _| async {
        let session = connected().await;
        let mut counts = Vec::new();
        for version in 1..20 {
            let bytes = bytes_of(version);
            let put = session.put_object(&key(), &mut &bytes[..], 0, &|_| {}).await.unwrap();
            let pieces = bytes.len().div_ceil(PIECE_BYTES as usize);
            assert_eq!(
                (put.pieces as usize, put.left_behind),
                (if pieces > 1 { pieces } else { 0 }, 0)
            );
            let listed = session.list(None, 1 << 16).await.unwrap();
            counts.push((listed.iter().filter(|key| is_piece(key)).count(), put.pieces as usize));
        }
        assert!(session.delete_object(&key()).await.unwrap());
        assert!(!session.delete_object(&key()).await.unwrap());
        assert_eq!(session.list(None, 1 << 16).await.unwrap(), []);
        counts
    });
    simulation.wait("the host", || outcome.borrow().is_some());
    for (listed, pieces) in outcome.take().unwrap() {
        assert_eq!(listed, pieces);
    }
}
