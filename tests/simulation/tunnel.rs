//! The tunnel: packets between a host and the drive's inside, in order and never twice, whatever
//! connections are cut. [`crate::tunnel_waits`] has what waits, [`crate::tunnel_refused`] what is
//! refused.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::tunnel::Options as TunnelOptions;
use csd_initiator::{Address, Controller, Error, Options};
use csd_nvme::capsule::Sqe;
use csd_nvme::log::{LogId, get_log_page};
use csd_nvme::opcode::Csi;
use csd_nvme::vendor::NSID_COMPUTE;
use csd_nvme::vendor::tunnel::{
    DATA_BYTES_MAX, Frame, LogEntry, LogHeader, VirtioNet, parse, parse_log, receive, send,
};
use csd_reactor::{Buffer, Class, random_u64, sleep, spawn};

use crate::inside::{Doors, inside, memory, outside};

pub const HOST: &str = "nqn.2026-11.io.csdstore:tunnel-host";
pub const GUEST: &str = "nqn.2026-11.io.csdstore:tunnel-guest";
/// Worlds of each test.
const SEEDS: u64 = 200;
/// Packets of each direction.
const PACKETS: u32 = 60;
/// Sends and Receives of an end that are under way.
const SENDS: usize = 3;
const RECEIVES: usize = 5;

pub fn doors(seed: u64) -> Doors {
    let mut doors = Doors::new(seed);
    doors.resources = Resources { tunnel: Some(options()), ..Resources::default() };
    doors
}

pub fn options() -> TunnelOptions {
    let networks = [([10, 77, 0, 1].into(), 24), ([10, 77, 0, 2].into(), 24)];
    TunnelOptions { hosts: vec![HOST.to_owned()], networks, mtu: 9000 }
}

async fn connect(address: &Address, host: &str) -> Result<Controller, Error> {
    let options = Options { host_nqn: host.to_owned(), ..Options::default() };
    Controller::connect(address, &options).await
}

/// Connects as soon as the drive serves.
pub async fn connected(address: &Address, host: &str) -> Controller {
    loop {
        match connect(address, host).await {
            Ok(controller) => return controller,
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Returns an IPv4 packet with this number and length.
pub fn packet(number: u32, length: usize) -> Vec<u8> {
    let mut packet = vec![0x5A; length.max(24)];
    packet[0] = 0x45;
    packet[20..24].copy_from_slice(&number.to_le_bytes());
    packet
}

pub fn frames<'a>(packets: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let mut list = Vec::new();
    for packet in packets {
        Frame { header: VirtioNet::zeroed(), packet }.encode(&mut list);
    }
    list
}

pub fn numbers(list: &[u8]) -> Vec<u32> {
    let number = |frame: &Frame<'_>| {
        assert!(frame.packet[24..].iter().all(|byte| *byte == 0x5A), "a packet was changed");
        u32::from_le_bytes(frame.packet[20..24].try_into().unwrap())
    };
    if list.is_empty() { Vec::new() } else { parse(list).unwrap().iter().map(number).collect() }
}

pub type Reply = Result<Vec<u8>, Error>;
type Running = Pin<Box<dyn Future<Output = Reply>>>;

/// Commands that began in order, whose replies are taken in the same order.
#[derive(Default)]
pub struct Line(VecDeque<(Option<Reply>, Running)>);

impl Line {
    /// Begins a command.
    pub async fn begin(&mut self, controller: &Controller, sqe: Sqe, data: Vec<u8>, room: u32) {
        let controller = controller.clone();
        let mut running: Running = Box::pin(async move {
            let data = if data.is_empty() { vec![] } else { vec![Buffer::from_slice(&data)] };
            let reply = controller.submit(sqe, data, room).await?;
            assert_eq!(reply.result, reply.data.len() as u64, "the result is the bytes");
            Ok(reply.data.to_vec())
        });
        let begun = poll_fn(|cx| match running.as_mut().poll(cx) {
            Poll::Ready(reply) => Poll::Ready(Some(reply)),
            Poll::Pending => Poll::Ready(None),
        });
        let done = begun.await;
        self.0.push_back((done, running));
    }

    pub async fn send(&mut self, controller: &Controller, list: Vec<u8>) {
        let bytes = u32::try_from(list.len()).unwrap();
        self.begin(controller, send(NSID_COMPUTE, bytes), list, 0).await;
    }

    pub async fn receive(&mut self, controller: &Controller) {
        let sqe = receive(NSID_COMPUTE, DATA_BYTES_MAX);
        self.begin(controller, sqe, Vec::new(), DATA_BYTES_MAX).await;
    }

    /// Returns the reply to the oldest command.
    pub async fn next(&mut self) -> Reply {
        let (done, running) = self.0.pop_front().expect("a command is under way");
        match done {
            Some(reply) => reply,
            None => running.await,
        }
    }
}

/// Sends numbered packets, in lists of one to four, of random lengths; and short ones from then on,
/// until both ends have received all that they will.
async fn send_all(
    controller: &Controller,
    next: &Cell<u32>,
    finished: &Cell<u32>,
) -> Result<(), Error> {
    let mut line = Line::default();
    while finished.get() < 2 {
        let is_over = next.get() >= PACKETS;
        let count = if is_over { 1 } else { 1 + u32::try_from(random_u64() % 4).unwrap() };
        let packets: Vec<_> = (next.get()..next.get() + count)
            .map(|number| {
                let length = match random_u64() % 16 {
                    _ if is_over => 40,
                    0 => 65_535,
                    _ => random_u64() % 9000,
                };
                packet(number, usize::try_from(length).unwrap())
            })
            .collect();
        // A list whose fate is unknown is not sent again.
        next.set(next.get() + count);
        line.send(controller, frames(&packets)).await;
        if line.0.len() >= SENDS {
            line.next().await?;
        }
        let pause_us = if is_over { 100_000 } else { random_u64() % 3 / 2 * (random_u64() % 2000) };
        sleep(Duration::from_micros(pause_us)).await;
    }
    Ok(())
}

/// Receives until the last packet, or a later one, came; appends the numbers.
async fn receive_all(controller: &Controller, got: &RefCell<Vec<u32>>) -> Result<(), Error> {
    let mut line = Line::default();
    while got.borrow().last().is_none_or(|last| *last < PACKETS - 1) {
        while line.0.len() < RECEIVES {
            line.receive(controller).await;
        }
        let list = line.next().await?;
        got.borrow_mut().extend(numbers(&list));
    }
    Ok(())
}

pub async fn log(controller: &Controller) -> Vec<LogEntry> {
    look(controller).await.expect("the drive answers")
}

async fn look(controller: &Controller) -> Result<Vec<LogEntry>, Error> {
    let bytes = u32::try_from(LogHeader::SIZE + 2 * LogEntry::SIZE).unwrap();
    let sqe = get_log_page(LogId::TUNNEL, NSID_COMPUTE, Csi::CP, 0, bytes);
    let data = controller.admin(sqe, &[], bytes).await?.data;
    let (mtu, entries) = parse_log(&data).unwrap();
    assert_eq!((mtu, entries[0].network()), (9000, Some(([10, 77, 0, 1].into(), 24))));
    Ok(entries)
}

/// Waits until both ends are held, so that the first packet is not dropped.
async fn until_both_are_there(controller: &Controller) -> Result<(), Error> {
    while look(controller).await?.iter().any(|end| end.present() == 0) {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Runs one end until both have received everything; reconnects when its connection is cut.
/// Returns the numbers of the packets that it received.
async fn end(address: Address, host: &'static str, finished: Rc<Cell<u32>>) -> Vec<u32> {
    let (next, got) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
    loop {
        let controller = connected(&address, host).await;
        let receiving = {
            let (controller, got) = (controller.clone(), Rc::clone(&got));
            let finished = Rc::clone(&finished);
            spawn(Class::Foreground, async move {
                let is_done = |got: &[u32]| got.last().is_some_and(|last| *last >= PACKETS - 1);
                let was_done = is_done(&got.borrow());
                // It takes the end, also when nothing is left to be received.
                let received = receive_all(&controller, &got).await;
                if received.is_ok() && !was_done {
                    finished.set(finished.get() + 1);
                }
            })
        };
        let sent = async {
            if next.get() == 0 {
                until_both_are_there(&controller).await?;
            }
            send_all(&controller, &next, &finished).await
        };
        let sent = sent.await;
        receiving.abort();
        if sent.is_ok() {
            let mut got = got.borrow().clone();
            got.retain(|number| *number < PACKETS);
            return got;
        }
    }
}

/// Runs both ends over the seeds; returns what each received.
fn both_ends(seed: u64, cut: impl Fn(&Doors)) -> [Vec<u32>; 2] {
    let doors = doors(seed);
    let got: Rc<[RefCell<Option<Vec<u32>>>; 2]> = Rc::default();
    let finished = Rc::new(Cell::new(0));
    let (slot, count) = (Rc::clone(&got), Rc::clone(&finished));
    doors.serve((&memory(), true), None, move |_| {
        let (slot, finished) = (Rc::clone(&slot), Rc::clone(&count));
        async move {
            let received = end(inside(), GUEST, finished).await;
            *slot[1].borrow_mut() = Some(received);
        }
    });
    let (slot, count) = (Rc::clone(&got), Rc::clone(&finished));
    doors.world.start(doors.host, move |_| {
        let (slot, finished) = (Rc::clone(&slot), Rc::clone(&count));
        async move {
            let received = end(outside(), HOST, finished).await;
            *slot[0].borrow_mut() = Some(received);
            std::future::pending().await
        }
    });
    cut(&doors);
    let is_done = || got.iter().all(|slot| slot.borrow().is_some());
    let ended = doors.world.run_until(|_| is_done(), Duration::from_secs(300));
    ended.unwrap_or_else(|stuck| panic!("seed {seed}: {stuck}; {got:?}"));
    [0, 1].map(|side| got[side].borrow_mut().take().unwrap())
}

#[test]
fn every_packet_arrives_once_and_in_order_over_200_seeds() {
    let all: Vec<u32> = (0..PACKETS).collect();
    for seed in 0..SEEDS {
        let [host, guest] = both_ends(seed, |_| ());
        assert_eq!((&host, &guest), (&all, &all), "seed {seed}");
    }
}

#[test]
fn cut_connections_lose_packets_at_most_and_the_same_host_takes_over() {
    let (mut lost, mut arrived) = (0, 0);
    for seed in 0..SEEDS {
        let [host, guest] = both_ends(seed, |doors| {
            for _ in 0..4 {
                let pause = doors.world.random_u64() % 20_000;
                doors.world.run_for(Duration::from_micros(pause));
                doors.world.disconnect(doors.host, doors.drive);
            }
        });
        for got in [host, guest] {
            assert!(got.is_sorted_by(|one, next| one < next), "seed {seed}: {got:?}");
            arrived += got.len();
            lost += PACKETS as usize - got.len();
        }
    }
    assert!(lost > 0, "no cut met a packet");
    assert!(arrived as u64 > SEEDS * u64::from(PACKETS), "hardly any packet arrived: {arrived}");
}

/// Waits until the inside has an end.
pub async fn until_inside(host: &Controller) {
    while log(host).await[1].present() == 0 {
        sleep(Duration::from_millis(1)).await;
    }
}
