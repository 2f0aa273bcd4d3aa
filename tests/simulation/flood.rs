//! One simulated hour of strangers who cause every logged event: the log stays within its hourly
//! limit, every event is counted, and the drive's own events are logged.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive;
use csd_drive::log::{BYTES_MAX, Level, Log, Record};
use csd_drive::transport::accept;
use csd_initiator::{Address, Block, Controller, Options};
use csd_kvlog::format::Split;
use csd_kvlog::media::{FaultConfig, Faulty, Media, Memory};
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{Buffer, CoreId, Listener, Stream, now, sleep};

const NQN: &str = "nqn.2026-11.io.csdstore:flooded";
const DRIVE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };
const HOUR: Duration = Duration::from_secs(3600);
/// Pause between two strangers of a kind.
const PAUSE: Duration = Duration::from_millis(400);

/// Contents of a log: bytes of all lines, and for each event the numbers of lines logged and held
/// back.
#[derive(Default)]
struct Said {
    bytes: u64,
    events: Vec<(String, u64, u64)>,
}

impl Said {
    fn note(&mut self, record: &Record<'_>) {
        self.bytes += record.bytes_max();
        let field = |name| record.fields.iter().find(|(known, _)| *known == name);
        let more = field("more").map_or(0, |(_, more)| more.parse().unwrap());
        let (event, lines) = field("of").map_or((record.event, 1), |(_, of)| (of.as_str(), 0));
        match self.events.iter_mut().find(|(known, ..)| known == event) {
            Some((_, all, held_back)) => (*all, *held_back) = (*all + lines, *held_back + more),
            None => self.events.push((event.to_owned(), lines, more)),
        }
    }

    fn of(&self, event: &str) -> (u64, u64) {
        let found = self.events.iter().find(|(known, ..)| known == event);
        found.map_or((0, 0), |(_, lines, held_back)| (*lines, *held_back))
    }
}

/// Breaks the transport's rules.
async fn babble(address: &Address) {
    let stream = Stream::connect(&address.socket).await.unwrap();
    stream.send_all(&[0xFF; 128]).await.unwrap();
    // The drive reports the broken rule, and closes.
    while stream.recv_exact(&mut [0]).await.is_ok() {}
}

/// Connects strangers for an hour; returns how many of each kind.
async fn flood(address: &Address) -> u64 {
    let elsewhere = Address::new(&address.socket, "nqn.2026-11.io.csdstore:none");
    let until = now().ns() + u64::try_from(HOUR.as_nanos()).unwrap();
    let mut count = 0;
    while now().ns() < until {
        babble(address).await;
        assert!(Controller::connect(&elsewhere, &Options::default()).await.is_err());
        let controller = Controller::connect(address, &Options::default()).await.unwrap();
        controller.disconnect().await;
        count += 1;
        sleep(PAUSE).await;
    }
    count
}

/// Makes a sync of the medium fail.
async fn lose_the_medium(address: &Address, faulty: &Faulty) {
    let controller = Controller::connect(address, &Options::default()).await.unwrap();
    let block = Block::open(&controller, 1).unwrap();
    faulty.set(FaultConfig { failed_syncs_ppm: 1_000_000, ..FaultConfig::default() });
    block.write(0, vec![Buffer::from_slice(&[7; 4096])], false).await.unwrap();
    assert!(block.flush().await.is_err());
    // The log reports the lines it held back as soon as its limit allows.
    sleep(Duration::from_secs(300)).await;
}

/// Fills `log` with an hour's flood and a lost medium; returns the number of strangers of each
/// kind.
fn run(log: &Log) -> u64 {
    let world = World::new(2, WorldConfig::default());
    let (drive, host) = (world.machine("drive", DRIVE, 2), world.machine("host", HOST, 1));
    let memory = Media::Memory(Arc::new(Memory::new(128 << 20)));
    let faulty = Arc::new(Faulty::new(memory, 2));
    let (media, ready, log) = (Media::Faulty(Arc::clone(&faulty)), Rc::default(), log.clone());
    let told: Rc<RefCell<bool>> = Rc::clone(&ready);
    world.start(drive, move |core| {
        let (media, told, log) = (media.clone(), Rc::clone(&told), log.clone());
        async move {
            if core == CoreId(0) {
                let resources = Resources::default();
                let mut shared = drive::open(media, true, NQN, &SPLIT, &resources).await.unwrap();
                Arc::get_mut(&mut shared).unwrap().log = log;
                csd_drive::life::start_all(&shared).await.unwrap();
                let listener = Listener::bind(SocketAddr::from((DRIVE, 4420))).unwrap();
                *told.borrow_mut() = true;
                accept::accept(listener, shared).await;
            }
            std::future::pending().await
        }
    });
    world.run_until(|_| *ready.borrow(), HOUR).expect("the drive starts");
    let count = Rc::new(RefCell::new(0));
    let slot = Rc::clone(&count);
    world.start(host, move |_| {
        let (slot, faulty) = (Rc::clone(&slot), Arc::clone(&faulty));
        async move {
            let address = Address::new(SocketAddr::from((DRIVE, 4420)), NQN);
            *slot.borrow_mut() = flood(&address).await;
            lose_the_medium(&address, &faulty).await;
        }
    });
    world.run_until(|world| !world.is_running(host), 2 * HOUR).expect("the host ends");
    count.take()
}

#[test]
fn an_hour_of_strangers_fills_no_log_and_hides_nothing() {
    let said = Arc::<Mutex<Said>>::default();
    let sink = Arc::clone(&said);
    let count = run(&Log::new(Level::Info, move |record| sink.lock().unwrap().note(record)));
    let said = said.lock().unwrap();
    println!("{count} strangers of each kind in an hour: {} bytes of log", said.bytes);
    println!("{:?}", said.events);
    assert!(count > 5_000, "{count}");
    assert!(said.bytes <= BYTES_MAX, "{} bytes", said.bytes);
    for event in ["connect refused", "a host broke the transport's rules"] {
        let (lines, held_back) = said.of(event);
        assert!(lines > 50 && held_back > 0, "{event}: {lines} lines");
        assert_eq!(lines + held_back, count, "{event}: every one is told of");
    }
    for event in ["queue connected", "queue closed"] {
        let (lines, held_back) = said.of(event);
        assert!(lines > 50 && held_back > 0, "{event}: {lines} lines");
        // An admin queue and another of each, and those of the host at the end.
        assert!((2 * count..=2 * count + 2).contains(&(lines + held_back)), "{event}");
    }
    assert_eq!(said.of("media error"), (1, 0));
    assert_eq!(said.of("the medium has become read-only"), (1, 0));
}
