//! Several hosts with several connections race on the same few keys of one drive, while connections
//! are lost, the power is cut, the log is cleaned, and the disk fails: each key is linearisable.
//!
//! An acknowledged change survives every fault. A command without an answer takes place at most
//! until the drive has dropped it: until the power is cut, or until its host is connected again,
//! because the drive lets a host in only when nothing of its lost queues goes on.

mod failing;
mod history;
mod linear;

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_initiator::{Address, Controller, Error, Kv, Options};
use csd_kvlog::media::Media;
use csd_nvme::kv::{Key, STORE_IF_ABSENT, STORE_IF_EXISTS, STORE_IF_NEWER};
use csd_nvme::status::Status;
use csd_reactor::sim::MachineId;
use csd_reactor::{Buffer, Class, random_u64, sleep, spawn};

use crate::lives::keys_in;
use crate::words::words;
use crate::{DRIVE, NQN, Simulation, seeds};
use failing::Failing;
use history::{Met, Shared};
use linear::{Ask, Content, EMPTY, Told, When, has_version};

const HOSTS: usize = 3;
const CONNECTIONS: usize = 2;
/// Commands in flight of a connection.
const WORKERS: usize = 2;
/// Keys, half of them in each kv namespace.
const KEYS: usize = 4;
const NAMESPACES: [u32; 2] = [2, 3];
/// Faults of a run, before the last power cut.
const FAULTS: u64 = 7;
/// Pause of a host before it tries again to connect.
const PAUSE: Duration = Duration::from_millis(2);

/// Returns a key; each two of them, one of each namespace, share a shard.
fn key(number: usize) -> Key {
    let nsid = u16::try_from(NAMESPACES[number % 2]).unwrap();
    keys_in(nsid, number / 2).nth(number % 2).unwrap()
}

/// Returns the bytes of a content: its first word identifies it, the second is its version.
fn bytes_of(content: Content, is_heavy: bool) -> Vec<u8> {
    let drawn = content.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let bytes = match content % 8 {
        _ if content == EMPTY => 0,
        0 => 8,
        _ if is_heavy => 16 + drawn % (200 << 10),
        1..6 => 16 + drawn % 300,
        _ => 16 + drawn % 20_000,
    };
    words(content << 20, usize::try_from(bytes).unwrap())
}

/// Returns the content of a value that was read.
fn recognise(found: &[u8], known: &Shared) -> Content {
    let content = found.first_chunk().map_or(EMPTY, |word| u64::from_le_bytes(*word) >> 20);
    let mut known = known.borrow_mut();
    if found != bytes_of(content, known.is_heavy) {
        known.failure.get_or_insert(format!("{} wrong bytes of value {content}", found.len()));
    }
    content
}

/// Returns what a host asks next.
fn draw(known: &Shared) -> Ask {
    let drawn = random_u64();
    let mut known = known.borrow_mut();
    match drawn % 16 {
        0..3 => Ask::Store(When::Always, known.new_content()),
        3 => Ask::Store(When::Always, EMPTY),
        4 | 5 => Ask::Store(When::Absent, known.new_content()),
        6 => Ask::Store(When::Exists, known.new_content()),
        7 | 8 => {
            // Now and then one that was held up: an earlier value, which may be there already.
            let back = if drawn >> 8 & 3 == 0 { drawn >> 10 & 15 } else { 0 };
            let content = known.new_content().saturating_sub(back).max(1);
            Ask::Store(When::Newer, content + u64::from(!has_version(content)))
        }
        9..12 => Ask::Delete,
        12..15 => Ask::Retrieve,
        _ => Ask::Exist,
    }
}

/// Sends a command; returns the answer.
async fn send(kv: &Kv, key: &Key, ask: Ask, known: &Shared) -> Result<Told, Error> {
    match ask {
        Ask::Store(when, content) => {
            let options = match when {
                When::Always => 0,
                When::Absent => STORE_IF_ABSENT,
                When::Exists => STORE_IF_EXISTS,
                When::Newer => STORE_IF_NEWER,
            };
            let value = Buffer::from_slice(&bytes_of(content, known.borrow().is_heavy));
            kv.store(key, vec![value], options).await.map(|()| Told::Done)
        }
        Ask::Delete => kv.delete(key).await.map(|_| Told::Done),
        Ask::Retrieve => {
            let found = kv.retrieve(key, 1 << 20).await?;
            Ok(found.map_or(Told::Missing, |found| Told::Value(recognise(&found, known))))
        }
        Ask::Exist => {
            kv.exist(key).await.map(|exists| if exists { Told::Exists } else { Told::Missing })
        }
    }
}

/// Returns what an answer says, nothing if the disk failed; an error if there is none.
fn told(answer: Result<Told, Error>, known: &Shared) -> Result<Option<Told>, ()> {
    let error = match answer {
        Ok(told) => return Ok(Some(told)),
        Err(error) => error,
    };
    match error.status() {
        Some(Status::KEY_EXISTS) => return Ok(Some(Told::Exists)),
        Some(Status::KEY_DOES_NOT_EXIST) => return Ok(Some(Told::Missing)),
        Some(Status::NOT_NEWER) => return Ok(Some(Told::NotNewer)),
        Some(
            Status::WRITE_FAULT | Status::NAMESPACE_WRITE_PROTECTED | Status::UNRECOVERED_ERROR,
        ) if known.borrow().failing.is_some() => return Ok(None),
        None if matches!(error, Error::Lost { .. } | Error::Closed { .. }) => {}
        _ => drop(known.borrow_mut().failure.get_or_insert(error.to_string())),
    }
    Err(())
}

/// Executes one command on one key.
async fn ask_one(
    stores: &[Kv; 2],
    connection: usize,
    key_number: usize,
    ask: Ask,
    known: &Shared,
) -> Result<(), ()> {
    let number = known.borrow_mut().begin(connection, key_number, ask);
    let answer = send(&stores[key_number % 2], &key(key_number), ask, known).await;
    match told(answer, known)? {
        Some(told) => known.borrow_mut().answered(number, told),
        None => known.borrow_mut().failed(number),
    }
    Ok(())
}

/// Lists a namespace, which says of each of its keys whether it exists.
async fn list(stores: &[Kv; 2], connection: usize, nsid: usize, known: &Shared) -> Result<(), ()> {
    let keys = (0..KEYS).filter(|number| number % 2 == nsid);
    let asked: Vec<(usize, Key)> = keys
        .map(|number| (known.borrow_mut().begin(connection, number, Ask::Exist), key(number)))
        .collect();
    let (mut listed, mut answer) = (Vec::new(), Ok(Told::Done));
    match stores[nsid].list(None, 4096).await {
        Ok(keys) => listed = keys,
        Err(error) => answer = Err(error),
    }
    let is_told = told(answer, known)?.is_some();
    let mut known = known.borrow_mut();
    if !is_told {
        asked.iter().for_each(|(number, _)| known.failed(*number));
        return Ok(());
    }
    for (number, key) in asked {
        let before = listed.len();
        listed.retain(|other| *other != key);
        match before - listed.len() {
            0 => known.answered(number, Told::Missing),
            1 => known.answered(number, Told::Exists),
            _ => drop(known.failure.get_or_insert(format!("{key:?} is listed twice"))),
        }
    }
    if let Some(other) = listed.first() {
        known.failure.get_or_insert(format!("{other:?} is listed and was never stored"));
    }
    Ok(())
}

/// Races until the connection is lost or the run is over.
async fn race(stores: [Kv; 2], connection: usize, known: Shared) {
    while !known.borrow().is_over {
        let drawn = random_u64();
        let number = usize::try_from(drawn % 64).unwrap() % KEYS;
        let done = match drawn >> 8 & 15 {
            0 => list(&stores, connection, number % 2, &known).await,
            _ => ask_one(&stores, connection, number, draw(&known), &known).await,
        };
        if done.is_err() {
            return;
        }
        if drawn >> 16 & 3 == 0 {
            sleep(Duration::from_micros(drawn >> 20 & 0x7FF)).await;
        }
    }
}

/// Connects as a host, and again whenever the connection is lost, until the run is over.
async fn stay_connected(connection: usize, known: Shared) {
    let address = Address::new(SocketAddr::from((DRIVE, 4420)), NQN);
    let host_nqn = format!("nqn.2026-11.io.csdstore:host-{}", connection / CONNECTIONS);
    let options = Options { host_nqn, ..Options::default() };
    while !known.borrow().is_over {
        let Ok(controller) = Controller::connect(&address, &options).await else {
            sleep(PAUSE).await;
            continue;
        };
        known.borrow_mut().dropped(Some(connection));
        let worker = || {
            let stores = NAMESPACES.map(|nsid| Kv::open(&controller, nsid).expect("kv namespaces"));
            spawn(Class::Foreground, race(stores, connection, Rc::clone(&known)))
        };
        for worker in (0..WORKERS).map(|_| worker()).collect::<Vec<_>>() {
            worker.await;
        }
    }
}

/// Reads each key once.
async fn read_all(address: Address, known: Shared) -> Result<(), ()> {
    let controller = Controller::connect(&address, &Options::default()).await.map_err(drop)?;
    let stores = NAMESPACES.map(|nsid| Kv::open(&controller, nsid).expect("kv namespaces"));
    for number in 0..KEYS {
        ask_one(&stores, HOSTS * CONNECTIONS, number, Ask::Retrieve, &known).await?;
    }
    for nsid in 0..NAMESPACES.len() {
        list(&stores, HOSTS * CONNECTIONS, nsid, &known).await?;
    }
    Ok(())
}

impl Simulation {
    /// Lets hosts race through faults; returns what they met.
    fn share_keys(mut self, seed: u64, failing: Option<Failing>) -> Result<Met, String> {
        // The shortest log, so that it is cleaned soon.
        self.split.kv_percent = 15;
        let known = Shared::default();
        known.borrow_mut().is_heavy = seed % 5 == 4;
        known.borrow_mut().failing = failing;
        let hosts: Vec<MachineId> =
            (0..HOSTS).map(|number| self.racing_host(number, &known)).collect();
        self.power_on(&known);
        for number in 0..FAULTS {
            let most_us = if known.borrow().is_heavy { 250_000 } else { 20_000 };
            self.world.run_for(Duration::from_micros(self.draw(500..most_us)));
            // At least two power cuts among the connections that are lost.
            if number % 3 == 2 {
                self.power_cut(&known);
                self.power_on(&known);
            } else {
                let host = usize::try_from(self.draw(0..HOSTS as u64)).unwrap();
                self.world.disconnect(self.drive, hosts[host]);
                known.borrow_mut().met.lost_connections += 1;
            }
        }
        self.world.run_for(Duration::from_millis(10));
        known.borrow_mut().is_over = true;
        for host in hosts {
            self.wait("a host", || !self.world.is_running(host));
        }
        self.power_cut(&known);
        // Then the disk is sound.
        known.borrow_mut().failing = None;
        self.power_on(&known);
        let of_host = Rc::clone(&known);
        let read = self.on_host(move |address, _| read_all(address, Rc::clone(&of_host)));
        self.wait("the last reads", || read.borrow().is_some());
        let is_read = read.take() == Some(Ok(()));
        let mut known = known.borrow_mut();
        (known.met.lived, known.met.losses) = (self.lived, self.disk.losses());
        known.check()?;
        if is_read { Ok(known.met) } else { Err("the last reads had no answer".into()) }
    }

    /// Starts a host with its connections.
    fn racing_host(&self, number: usize, known: &Shared) -> MachineId {
        let ip = Ipv4Addr::new(10, 0, 0, 10 + u8::try_from(number).unwrap());
        let machine = self.world.machine(&format!("host {number}"), ip, 1);
        let known = Rc::clone(known);
        self.world.start(machine, move |_| {
            let known = Rc::clone(&known);
            async move {
                let first = number * CONNECTIONS;
                let connect = |index| {
                    spawn(Class::Foreground, stay_connected(first + index, Rc::clone(&known)))
                };
                for connection in (0..CONNECTIONS).map(connect).collect::<Vec<_>>() {
                    connection.await;
                }
            }
        });
        machine
    }

    /// Starts the drive; sometimes the power goes again during recovery.
    fn power_on(&mut self, known: &Shared) {
        let start = |simulation: &Self| {
            let mut media = Media::Volatile(Arc::clone(&simulation.disk));
            if let Some(failing) = &mut known.borrow_mut().failing {
                media = failing.disk(media, simulation.world.random_u64());
            }
            simulation.start_drive_on(media)
        };
        let mut ready = start(self);
        while self.formatted && self.draw(0..3) == 0 {
            self.world.run_for(Duration::from_micros(self.draw(0..10_000)));
            known.borrow_mut().met.cuts_in_recovery += u64::from(!ready.get());
            self.power_cut(known);
            ready = start(self);
        }
        self.wait("recovery", || ready.get());
        self.formatted = true;
        known.borrow().failing.iter().for_each(Failing::begin);
    }

    fn power_cut(&mut self, known: &Shared) {
        self.cut();
        let mut known = known.borrow_mut();
        let injections = known.failing.as_mut().map(Failing::ended).unwrap_or_default();
        known.met.injections.add(injections);
        known.met.cuts += 1;
        known.dropped(None);
    }
}

/// Runs all seeds, each with the faults of its disk; returns their number and what they met.
fn share_keys_of_all_seeds(failing: fn(u64) -> Option<Failing>) -> (u64, Met) {
    let runs = seeds::each(seeds::seeds(), |seed| {
        let met = Simulation::new(seed).share_keys(seed, failing(seed));
        met.unwrap_or_else(|why| panic!("{why}"))
    });
    let mut met = Met::default();
    runs.iter().for_each(|run| met.add(run));
    (runs.len() as u64, met)
}

#[test]
fn keys_of_several_hosts_are_linearisable() {
    let (count, met) = share_keys_of_all_seeds(|_| None);
    println!("shared keys: {count} seeds, {met:?}");
    assert!(met.operations > 200 * count, "hosts hardly raced: {met:?}");
    let is_met = [
        met.racing_changes > 50 * count,
        met.racing_reads > 50 * count,
        met.refused.iter().all(|refused| *refused > count),
        met.lost_answers > 4 * count,
        met.lost_and_read > count / 4,
        met.cuts_in_recovery > 0 && met.lived.ends_in_cleaning > 0,
        met.lived.cleaned > count && met.lived.checkpoints > count,
        met.losses.torn_writes > 0 && met.losses.lost_sectors > 0,
    ];
    assert!(is_met.iter().all(|is_met| *is_met) || count < 50, "{is_met:?}: {met:?}");
}

#[test]
fn keys_of_several_hosts_are_linearisable_on_a_disk_that_fails() {
    let (count, met) = share_keys_of_all_seeds(|seed| Some(Failing::new(seed)));
    println!("shared keys on a failing disk: {count} seeds, {met:?}");
    assert!(met.operations > 100 * count, "hosts hardly raced: {met:?}");
    let injected = met.injections;
    let is_met = [
        met.racing_changes > 20 * count,
        met.racing_reads > 20 * count,
        met.failed_changes > count && met.failed_reads > count,
        injected.failed_reads > 0 && injected.flipped_reads > 0 && injected.delays > 0,
        injected.failed_writes > 0 && injected.torn_writes > 0,
        injected.failed_syncs > 0 && injected.failed_writebacks > 0,
        met.lived.cleaned > 0 && met.lived.checkpoints > count / 2,
        met.losses.torn_writes > 0 && met.losses.lost_sectors > 0,
    ];
    assert!(is_met.iter().all(|is_met| *is_met) || count < 50, "{is_met:?}: {met:?}");
}
