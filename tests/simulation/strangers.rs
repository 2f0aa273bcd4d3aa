//! Hosts that know names but no secret, and make a drive compute: their cost is bounded, and a host
//! that knows its secret is served in between. In simulated time, in which a modular power takes
//! its modelled time.

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_drive::transport::accept;
use csd_drive::{Access, Resources, drive};
use csd_initiator::{Address, Block, Controller, Options, Secrets};
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Volatile, VolatileConfig};
use csd_nvme::auth::{Hash, Secret};
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{Class, Listener, Stream, now, sleep, spawn};
use csd_tests::wire::{Command, connect_command};

use crate::stalled::capsule;
use crate::{DRIVE_BYTES, LIMIT};

const NQN: &str = "nqn.2026-11.io.csdstore:guarded";
/// NQN of the stock client's host.
const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:stock-client";
const DRIVE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const STRANGERS: usize = 40;
/// Number of times that the host connects; [`QUEUES`] is the number of its queues without the admin
/// queue.
const ROUNDS: u64 = 2;
const QUEUES: u16 = 4;
/// Identifier and bytes of the longest group.
const FFDHE8192: u8 = 5;
const FFDHE3072: u8 = 2;
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };

fn auth(fctype: u8, length: usize) -> Command {
    let command = Command::new(0x7F, 0).byte(4, fctype).dword(11, u32::try_from(length).unwrap());
    command.byte(41, 1).byte(42, 1).byte(43, 0xE9)
}

async fn send(stream: &Stream, message: &[u8]) -> Option<()> {
    let length = u32::try_from(message.len()).unwrap();
    let sent = capsule(auth(0x05, message.len()), length, message);
    stream.send_all(&sent).await.ok()?;
    let mut answer = [0; 24];
    stream.recv_exact(&mut answer).await.ok()
}

async fn receive(stream: &Stream) -> Option<()> {
    stream.send_all(&capsule(auth(0x06, 4096), 4096, &[])).await.ok()?;
    // The message of 4,096 bytes, and the response.
    let mut answer = vec![0; 24 + 4096 + 24];
    stream.recv_exact(&mut answer).await.ok()
}

/// Connects under the host's name and goes as far as possible: the drive computes both powers.
async fn intrude(address: SocketAddr, group: u8, bytes: usize) -> Option<()> {
    let stream = Stream::connect(address).await.ok()?;
    let mut request = [0u8; 128];
    (request[2], request[4]) = (128, 128);
    stream.send_all(&request).await.ok()?;
    let (command, data) = connect_command(NQN, 0, 0xFFFF, 32, true);
    stream.send_all(&capsule(command, 1024, &data)).await.ok()?;
    stream.recv_exact(&mut [0; 128 + 24]).await.ok()?;
    let mut negotiate = [0; 72];
    (negotiate[7], negotiate[8], negotiate[10], negotiate[11]) = (1, 1, 1, 1);
    (negotiate[12], negotiate[42]) = (1, group);
    send(&stream, &negotiate).await?;
    receive(&stream).await?;
    let mut reply = vec![7; 16 + 2 * 32 + bytes];
    reply[..16].copy_from_slice(&[1, 2, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    reply[10..12].copy_from_slice(&u16::try_from(bytes).unwrap().to_le_bytes());
    send(&stream, &reply).await?;
    receive(&stream).await
}

/// Results of a host with the secret.
struct Met {
    /// Longest time to connect a controller with its queues.
    longest: Duration,
    /// Powers that the drive computed for strangers, and the time that this took.
    powers: u64,
    within: Duration,
}

fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}

impl Met {
    /// Asserts that strangers got a quarter of the core's time, in powers of so many bytes.
    fn assert_bounded(&self, bytes: usize) {
        let cost_ns = 20 * (bytes * bytes) as u64;
        let (spent_ns, within_ns) = (self.powers * cost_ns, whole_ns(self.within));
        println!("{} powers in {:?}, longest {:?}", self.powers, self.within, self.longest);
        assert!(spent_ns <= within_ns / 4 + 2 * cost_ns, "{} of {within_ns} ns", spent_ns);
        assert!(spent_ns >= within_ns / 8, "they hardly asked: {spent_ns} of {within_ns} ns");
    }
}

/// Starts a guarded drive; returns the state shared by its cores, once hosts can connect.
fn start(world: &World, secrets: &Secrets) -> Arc<drive::Shared> {
    let machine = world.machine("drive", DRIVE, 1);
    let ready: Rc<RefCell<Option<Arc<drive::Shared>>>> = Rc::default();
    let disk = Arc::new(Volatile::new(DRIVE_BYTES, VolatileConfig::default()));
    let (known, told) = (secrets.clone(), Rc::clone(&ready));
    world.start(machine, move |_| {
        let (media, told) = (Media::Volatile(Arc::clone(&disk)), Rc::clone(&told));
        let access = Access { secrets: known.clone(), ..Access::default() };
        async move {
            let opened = drive::open(media, true, NQN, &SPLIT, &Resources::default()).await;
            let mut shared = opened.expect("opens");
            Arc::get_mut(&mut shared).expect("nobody else has it").access = access;
            csd_drive::life::start_all(&shared).await.expect("recovers");
            let listener = Listener::bind(SocketAddr::from((DRIVE, 4420))).unwrap();
            *told.borrow_mut() = Some(Arc::clone(&shared));
            accept::accept(listener, shared).await;
        }
    });
    let waited = world.run_until(|_| ready.borrow().is_some(), LIMIT);
    waited.unwrap_or_else(|stuck| panic!("the drive: {stuck}"));
    ready.take().expect("just seen")
}

/// Connects again and again as the host with the secret; returns the longest time.
async fn connects(address: SocketAddr, secrets: Secrets) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..ROUNDS {
        let options = Options {
            host_nqn: HOST_NQN.to_owned(),
            secrets: secrets.clone(),
            io_queues: QUEUES,
            connect_timeout: Duration::from_secs(60),
            ..Options::default()
        };
        let begun = now();
        let drive = Address::new(address, NQN);
        let controller = Controller::connect(&drive, &options).await.expect("a host");
        longest = longest.max(begun.elapsed());
        let block = Block::open(&controller, 1).expect("a block namespace");
        block.read(0, 4096).await.expect("it is served");
    }
    longest
}

/// Connects a host while strangers do, from their address or from one of its own.
fn beside_strangers(group: u8, bytes: usize, same_address: bool) -> Met {
    let world = World::new(u64::from(group), WorldConfig::default());
    let mut secrets = Secrets::default();
    secrets.set_host(HOST_NQN, Secret::new(Some(Hash::Sha256), &[9; 32]).unwrap());
    let shared = start(&world, &secrets);
    let address = SocketAddr::from((DRIVE, 4420));
    let (longest, go): (Rc<Cell<Option<Duration>>>, Rc<Cell<bool>>) = Default::default();
    let strangers = world.machine("strangers", Ipv4Addr::new(10, 0, 0, 2), 1);
    let (found, begin, known) = (Rc::clone(&longest), Rc::clone(&go), secrets.clone());
    world.start(strangers, move |_| {
        let (found, begin, known) = (Rc::clone(&found), Rc::clone(&begin), known.clone());
        async move {
            for _ in 0..STRANGERS {
                drop(spawn(Class::Foreground, async move {
                    loop {
                        let _ended = intrude(address, group, bytes).await;
                        sleep(Duration::from_millis(1)).await;
                    }
                }));
            }
            while !begin.get() {
                sleep(Duration::from_millis(1)).await;
            }
            if same_address {
                found.set(Some(connects(address, known).await));
            }
            std::future::pending().await
        }
    });
    // They have used up the time saved for a host's queues.
    world.run_for(Duration::from_secs(3));
    let computed = || shared.counters[0].powers.load(Relaxed);
    let (before, begun) = (computed(), world.now());
    go.set(true);
    if !same_address {
        let own = world.machine("host", Ipv4Addr::new(10, 0, 0, 3), 1);
        let found = Rc::clone(&longest);
        world.start(own, move |_| {
            let (found, known) = (Rc::clone(&found), secrets.clone());
            async move { found.set(Some(connects(address, known).await)) }
        });
    }
    let ended = world.run_until(|_| longest.get().is_some(), LIMIT);
    ended.unwrap_or_else(|stuck| panic!("the host: {stuck}"));
    let own = ROUNDS * 2 * (u64::from(QUEUES) + 1);
    let (powers, within) = (computed() - before - own, world.now().since(begun));
    Met { longest: longest.get().expect("just seen"), powers, within }
}

#[test]
fn strangers_who_ask_for_much_are_bounded_and_hold_nobody_up() {
    for same_address in [false, true] {
        let met = beside_strangers(FFDHE8192, 1024, same_address);
        met.assert_bounded(1024);
        assert!(met.longest < Duration::from_secs(2), "{:?}", met.longest);
    }
}

/// They share the host's address and its group, so the host waits in line with them.
#[test]
fn strangers_who_ask_for_what_a_host_asks_for_hold_it_up_for_seconds_at_most() {
    let met = beside_strangers(FFDHE3072, 384, true);
    met.assert_bounded(384);
    assert!(met.longest < Duration::from_secs(10), "{:?}", met.longest);
}
