//! The drive's second door: its own operating system reads and writes over a Unix socket next to
//! hosts. Both see the same blocks, each is paced and counted by itself, and a volume lives through
//! the drive's absence.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_client::{Retry, Volume, VolumeError};
use csd_drive::drive;
use csd_drive::throttle::{Bandwidths, Model};
use csd_drive::transport::accept;
use csd_drive::{Resources, Side, metrics};
use csd_initiator::{Address, Options};
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Memory};
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{Class, CoreId, Listener, Stream, now, sleep, spawn};

use crate::{DRIVE, HOST, NQN};

const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };
const SOCKET: &str = "/run/d0.sock";
const LIMIT: Duration = Duration::from_secs(600);
const MB: u64 = 1_000_000;

/// Drive with both doors, and the machine of a host.
pub struct Doors {
    pub world: World,
    pub drive: MachineId,
    pub host: MachineId,
    pub resources: Resources,
}

impl Doors {
    pub fn new(seed: u64) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let (drive, host) = (world.machine("drive", DRIVE, 2), world.machine("host", HOST, 1));
        Self { world, drive, host, resources: Resources::default() }
    }

    /// Starts the drive, and `guest` on its machine.
    pub fn serve<F: Future<Output = ()> + 'static>(
        &self,
        (media, is_new): (&Media, bool),
        model: Option<Model>,
        guest: impl Fn(Arc<drive::Shared>) -> F + 'static,
    ) {
        let (media, guest) = (media.clone(), Rc::new(guest));
        let resources = self.resources.clone();
        self.world.start(self.drive, move |core| {
            let (media, guest, model) = (media.clone(), Rc::clone(&guest), model.clone());
            let resources = resources.clone();
            async move {
                if core == CoreId(0) {
                    let opened = drive::open(media, is_new, NQN, &SPLIT, &resources);
                    let mut shared = opened.await.expect("opens");
                    let alone = Arc::get_mut(&mut shared).expect("made just now");
                    model.into_iter().for_each(|model| alone.throttle.set(model));
                    csd_drive::life::start_all(&shared).await.expect("starts");
                    shared.serve_inside();
                    let outside = Listener::bind(SocketAddr::from((DRIVE, 4420))).unwrap();
                    let inside = Listener::bind(Path::new(SOCKET)).unwrap();
                    drop(spawn(Class::System, accept::accept(outside, Arc::clone(&shared))));
                    let accepting = accept::accept_on(Side::Inside, inside, Arc::clone(&shared));
                    drop(spawn(Class::System, accepting));
                    guest(shared).await;
                }
                std::future::pending().await
            }
        });
    }

    /// Runs a host's main to its end.
    pub fn host<F: Future<Output = ()> + 'static>(&self, main: impl Fn() -> F + 'static) {
        self.world.start(self.host, move |_| main());
        let ended = self.world.run_until(|world| !world.is_running(self.host), LIMIT);
        ended.unwrap_or_else(|stuck| panic!("the host: {stuck}"));
    }
}

pub fn memory() -> Media {
    Media::Memory(Arc::new(Memory::new(128 << 20)))
}

pub fn outside() -> Address {
    Address::new(SocketAddr::from((DRIVE, 4420)), NQN)
}

pub fn inside() -> Address {
    Address::new(Path::new(SOCKET), NQN)
}

async fn volume(address: &Address, retry: Retry) -> Volume {
    Volume::connect(address, &Options::default(), retry).await.expect("the drive is there")
}

/// Returns the value of a line of the metrics page.
fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).trim().parse().unwrap()
}

#[test]
fn both_doors_show_the_same_blocks_each_at_its_own_pace() {
    let doors = Doors::new(1);
    // The page of the metrics, when the inside has read what the host wrote.
    let page = Rc::new(RefCell::new(String::new()));
    let model = Model {
        outside: Bandwidths { read_bytes_per_s: Some(MB), write_bytes_per_s: Some(2 * MB) },
        inside: Bandwidths { read_bytes_per_s: Some(100 * MB), write_bytes_per_s: None },
        programs: Vec::new(),
    };
    let slot = Rc::clone(&page);
    doors.serve((&memory(), true), Some(model), move |shared| {
        let slot = Rc::clone(&slot);
        async move {
            let volume = volume(&inside(), Retry::default()).await;
            while volume.read(0, 4096).await.unwrap()[..] != [7; 4096] {
                sleep(Duration::from_millis(10)).await;
            }
            let begun = now();
            assert!(volume.read(0, 512 << 10).await.unwrap()[..] == [7; 512 << 10]);
            let took = begun.elapsed();
            assert!(took >= Duration::from_millis(5), "512 KiB at 100 MB/s took {took:?}");
            assert!(took < Duration::from_millis(250), "the host's link is slower: {took:?}");
            volume.write(1 << 20, &[9; 4096]).await.unwrap();
            *slot.borrow_mut() = metrics::render(&shared).await;
        }
    });
    let done = Rc::clone(&page);
    doors.host(move || {
        let done = Rc::clone(&done);
        async move {
            sleep(Duration::from_millis(100)).await;
            let volume = volume(&outside(), Retry::default()).await;
            let begun = now();
            volume.write(0, &vec![7; 512 << 10]).await.unwrap();
            assert!(begun.elapsed() >= Duration::from_millis(262), "512 KiB at 2 MB/s");
            while done.borrow().is_empty() {
                sleep(Duration::from_millis(10)).await;
            }
            assert!(volume.read(1 << 20, 4096).await.unwrap()[..] == [9; 4096]);
        }
    });
    let page = page.take();
    let bytes = |op: &str, side: &str| {
        value(&page, &format!("csd_bytes_total{{namespace=\"block\",op=\"{op}\",side=\"{side}\"}}"))
    };
    assert!((bytes("write", "outside") - 524_288.0).abs() < 0.5);
    assert!((bytes("write", "inside") - 4096.0).abs() < 0.5);
    assert!(bytes("read", "inside") >= 528_384.0 && bytes("read", "outside") < 0.5);
}

#[test]
fn only_its_own_machine_reaches_the_inside() {
    let doors = Doors::new(2);
    doors.serve((&memory(), true), None, |_| async {
        // The name is taken as long as the drive listens.
        let twice = Listener::bind(Path::new(SOCKET)).err().map(|error| error.kind());
        assert_eq!(twice, Some(std::io::ErrorKind::AddrInUse));
        let stream = Stream::connect(Path::new(SOCKET)).await.unwrap();
        assert!(stream.peer_addr().is_err() && stream.local_addr().is_err());
    });
    doors.host(|| async {
        sleep(Duration::from_millis(100)).await;
        let error = Volume::connect(&inside(), &Options::default(), Retry::default()).await;
        let error = error.expect_err("no such socket on this machine").to_string();
        assert!(error.contains("nvme+unix:///run/d0.sock/nqn."), "{error}");
        volume(&outside(), Retry::default()).await.disconnect().await;
    });
}

/// Runs a host that writes once a second while the drive is away for `away`, from one second on.
/// Returns each write's outcome, and the number of reconnections.
fn over_an_absence(seed: u64, away: Duration, same: bool) -> (Vec<Result<(), VolumeError>>, u64) {
    let (doors, first) = (Doors::new(seed), memory());
    let second = if same { first.clone() } else { memory() };
    doors.serve((&first, true), None, |_| async {});
    let outcomes = Rc::new(RefCell::new((Vec::new(), 0)));
    let slot = Rc::clone(&outcomes);
    doors.world.run_for(Duration::from_millis(100));
    doors.world.start(doors.host, move |_| {
        let slot = Rc::clone(&slot);
        async move {
            let retry = Retry { patience: Duration::from_secs(10), ..Retry::default() };
            let volume = volume(&outside(), retry).await;
            let mut outcomes = Vec::new();
            for index in 0..40_u8 {
                let written = volume.write(u64::from(index) * 4096, &[index + 1; 4096]).await;
                outcomes.push(written);
                sleep(Duration::from_secs(1)).await;
            }
            for (index, outcome) in (0..40_u8).zip(&outcomes) {
                if outcome.is_ok() && same {
                    let bytes = volume.read(u64::from(index) * 4096, 4096).await.unwrap();
                    assert_eq!(bytes[..], [index + 1; 4096], "block {index}");
                }
            }
            *slot.borrow_mut() = (outcomes, volume.reconnections());
        }
    });
    doors.world.run_for(Duration::from_millis(1500));
    doors.world.crash(doors.drive);
    doors.world.run_for(away);
    doors.serve((&second, !same), None, |_| async {});
    let ended = doors.world.run_until(|world| !world.is_running(doors.host), LIMIT);
    ended.unwrap_or_else(|stuck| panic!("seed {seed}: {stuck}"));
    outcomes.take()
}

#[test]
fn a_volume_waits_for_its_drive_then_fails_and_goes_on_when_it_is_back() {
    for seed in 0..20 {
        let (outcomes, reconnections) = over_an_absence(seed, Duration::from_secs(5), true);
        assert!(outcomes.iter().all(Result::is_ok), "seed {seed}: {outcomes:?}");
        assert_eq!(reconnections, 1, "seed {seed}");

        let (outcomes, reconnections) = over_an_absence(seed, Duration::from_secs(20), true);
        let failed = outcomes.iter().filter(|one| matches!(one, Err(VolumeError::Away(_)))).count();
        assert!((2..20).contains(&failed), "seed {seed}: {failed} writes failed");
        assert!(outcomes[39].is_ok() && reconnections == 1, "seed {seed}: {outcomes:?}");
    }
}

#[test]
fn a_volume_takes_no_other_namespace_for_its_own() {
    let (outcomes, _) = over_an_absence(1, Duration::from_secs(2), false);
    assert!(outcomes[..2].iter().all(Result::is_ok));
    assert!(matches!(outcomes[39], Err(VolumeError::Replaced { .. })), "{:?}", outcomes[39]);
}

#[test]
fn bytes_of_a_volume_need_not_be_blocks() {
    let doors = Doors::new(3);
    doors.serve((&memory(), true), None, |_| async {});
    doors.host(|| async {
        sleep(Duration::from_millis(100)).await;
        let volume = volume(&outside(), Retry::default()).await;
        let mut expected = vec![0x55; 64 << 10];
        volume.write(0, &expected).await.unwrap();
        // Writers of parts of one block, at the same time.
        let writes: Vec<_> = (0..64_usize)
            .map(|index| {
                let volume = volume.clone();
                let write = async move { volume.write(index as u64 * 100 + 1, &[3; 99]).await };
                spawn(Class::Foreground, write)
            })
            .collect();
        for (index, write) in writes.into_iter().enumerate() {
            write.await.unwrap();
            expected[index * 100 + 1..index * 100 + 100].fill(3);
        }
        assert!(volume.read(0, expected.len()).await.unwrap()[..] == expected);
        assert_eq!(volume.read(99, 5).await.unwrap()[..], expected[99..104]);
        volume.zero(5000, 20_000, true).await.unwrap();
        volume.zero(40_001, 7, false).await.unwrap();
        expected[5000..25_000].fill(0);
        expected[40_001..40_008].fill(0);
        assert!(volume.read(0, expected.len()).await.unwrap()[..] == expected);
        let end = volume.bytes();
        assert_eq!(volume.read(end - 10, 100).await.unwrap().len(), 10);
        assert_eq!(volume.read(end, 100).await.unwrap().len(), 0);
        assert_eq!(volume.read(u64::MAX, 100).await.unwrap().len(), 0);
        for (offset, length) in [(end - 10, 11_usize), (end, 1), (u64::MAX, 1)] {
            let beyond = volume.write(offset, &vec![1; length]).await;
            assert!(matches!(beyond, Err(VolumeError::Beyond { .. })), "{beyond:?}");
            let beyond = volume.zero(offset, length as u64, true).await;
            assert!(matches!(beyond, Err(VolumeError::Beyond { .. })), "{beyond:?}");
        }
        volume.flush().await.unwrap();
    });
}
