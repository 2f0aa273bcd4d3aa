//! Hosts that hold memory that others need, and do nothing with it: they are closed, and the others
//! served. In simulated time, because a drive's time limits are long.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_initiator::{Address, Block, Controller, Options};
use csd_nvme::capsule::Sqe;
use csd_reactor::{Buffer, Class, JoinHandle, Stream, now, sleep, spawn, timeout};
use csd_tests::wire::{Command, connect_command, data_pdu};

use crate::{METRICS, NQN, Simulation};

const TRANSFER_BYTES: u32 = 16 << 20;
const BLOCK_BYTES: u32 = 4096;
/// Data that each greedy host asks to write, MiB: together all that a core grants, 7/16 of 192 MiB.
const GREEDY_MIB: [u32; 6] = [16, 16, 16, 16, 16, 4];
/// Two periods of the drive's check for stalled hosts, and a moment.
const LINE_MOVES: Duration = Duration::from_secs(11);

pub fn capsule(mut command: Command, length: u32, inside: &[u8]) -> Vec<u8> {
    command.sgl(length as usize, if inside.is_empty() { 0x5A } else { 0x01 });
    capsule_of(&Sqe::from_bytes(command.0), inside)
}

/// Returns the capsule of a command whose data descriptor is set, with its data.
pub fn capsule_of(sqe: &Sqe, inside: &[u8]) -> Vec<u8> {
    let plen = 72 + u32::try_from(inside.len()).unwrap();
    let mut pdu = vec![0x04, 0, 72, if inside.is_empty() { 0 } else { 72 }];
    pdu.extend_from_slice(&plen.to_le_bytes());
    pdu.extend_from_slice(sqe.as_bytes());
    pdu.extend_from_slice(inside);
    pdu
}

/// Connects a queue of a controller without keep-alive; returns the answer's controller identifier.
pub async fn queue(address: &Address, qid: u16, cntlid: u16, entries: u16) -> (Stream, u16) {
    let stream = Stream::connect(&address.socket).await.expect("the drive listens");
    let mut request = [0u8; 128];
    (request[2], request[4]) = (128, 128);
    stream.send_all(&request).await.unwrap();
    let (mut command, data) = connect_command(NQN, qid, cntlid, entries, true);
    command.0[48..52].fill(0);
    stream.send_all(&capsule(command, 1024, &data)).await.unwrap();
    let mut answer = [0; 128 + 24];
    stream.recv_exact(&mut answer).await.unwrap();
    assert_eq!(answer[128 + 22..], [0, 0], "connected");
    let answered = u16::from_le_bytes(answer[128 + 8..128 + 10].try_into().unwrap());
    (stream, answered)
}

/// Connects and enables a controller without keep-alive; returns its admin queue and identifier.
pub async fn enabled(address: &Address) -> (Stream, u16) {
    let (admin, cntlid) = queue(address, 0, 0xFFFF, 32).await;
    let enable = Command::new(0x7F, 0).dword(11, 0x14).dword(12, 4 << 20 | 6 << 16 | 6 << 4 | 1);
    admin.send_all(&capsule(enable, 0, &[])).await.unwrap();
    admin.recv_exact(&mut [0; 24]).await.unwrap();
    (admin, cntlid)
}

/// Connects a controller without keep-alive, and its queues, each with a write of [`GREEDY_MIB`]
/// that has begun.
async fn greedy_hosts(address: &Address) -> Vec<Stream> {
    let (admin, cntlid) = enabled(address).await;
    let mut streams = vec![admin];
    for (qid, mib) in (1..).zip(GREEDY_MIB) {
        let (io, _) = queue(address, qid, cntlid, 32).await;
        let write = Command::new(0x01, 1).dword(12, (mib << 20) / BLOCK_BYTES - 1);
        io.send_all(&capsule(write, mib << 20, &[])).await.unwrap();
        streams.push(io);
    }
    // A host that requests much data and reads nothing.
    let (io, _) = queue(address, 7, cntlid, 32).await;
    let read = Command::new(0x02, 1).dword(12, TRANSFER_BYTES / BLOCK_BYTES - 1);
    io.send_all(&capsule(read, TRANSFER_BYTES, &[])).await.unwrap();
    streams.push(io);
    streams
}

/// Sends 8 KiB a second of what it was granted, until the drive closes.
async fn trickle(stream: Stream) {
    let mut r2t = [0; 24];
    if stream.recv_exact(&mut r2t).await.is_ok() {
        let half = |at: usize| u16::from_le_bytes([r2t[at], r2t[at + 1]]);
        for offset in (0..TRANSFER_BYTES).step_by(8 << 10) {
            let pdu = data_pdu(half(8), half(10), offset, &[7; 8 << 10], false);
            if stream.send_all(&pdu).await.is_err() || is_closed(&stream).await {
                break;
            }
        }
    }
}

/// Returns true if the drive has closed this connection, whatever it sent before.
async fn is_closed(stream: &Stream) -> bool {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match stream.try_recv(&mut bytes) {
            Ok(Some(0)) | Err(_) => return true,
            Ok(Some(_)) => {}
            Ok(None) => {
                if timeout(Duration::from_secs(1), stream.readable()).await.is_err() {
                    return false;
                }
            }
        }
    }
}

#[test]
fn hosts_that_move_nothing_are_closed_and_the_others_served() {
    let mut simulation = Simulation::new(0);
    let ready = simulation.start_drive();
    simulation.wait("the drive", || ready.get());
    simulation.formatted = true;
    let done = simulation.on_host(|address, _| async move {
        let greedy = greedy_hosts(&address).await;
        sleep(Duration::from_millis(100)).await;
        let patient = Duration::from_secs(100);
        let options = Options { command_timeout: patient, ..Options::default() };
        let controller = Controller::connect(&address, &options).await.expect("another host");
        let block = Block::open(&controller, 1).expect("a block namespace");
        let data = vec![Buffer::zeroed(1 << 20)];
        let start = now();
        block.write(0, data, false).await.expect("it is served at last");
        let waited = start.elapsed();
        sleep(patient).await;
        for (at, stream) in greedy.iter().enumerate() {
            // The admin queue broke no rule.
            assert_eq!(is_closed(stream).await, at > 0, "connection {at}");
        }
        drop(greedy);
        waited
    });
    let limit = Duration::from_secs(400);
    let ended = simulation.world.run_until(|_| done.borrow().is_some(), limit);
    ended.unwrap_or_else(|stuck| panic!("the host: {stuck}"));
    let waited = done.borrow().expect("just seen");
    assert!(waited > Duration::from_secs(2), "nobody was greedy: waited {waited:?}");
    assert!(waited <= LINE_MOVES, "who moves nothing while others wait is closed: {waited:?}");
    simulation.wait("the host", || !simulation.world.is_running(simulation.host));
    let shared = Rc::clone(&simulation.shared);
    let open = move || -> usize {
        let shared = shared.borrow();
        let counts = &shared.as_ref().expect("the drive runs").connections;
        counts.iter().map(|count| count.load(Relaxed)).sum()
    };
    simulation.wait("the last connection to leave", || open() == 0);
}

/// Result of a host that wrote while others trickled: the times of its longest short write, and of
/// a long one.
struct Beside {
    short: Duration,
    long: Duration,
}

async fn write_beside_tricklers(address: Address) -> Beside {
    let mut greedy = greedy_hosts(&address).await;
    let (admin, reader) = (greedy.remove(0), greedy.pop());
    let tricklers: Vec<_> =
        greedy.into_iter().map(|io| spawn(Class::Foreground, trickle(io))).collect();
    sleep(Duration::from_secs(1)).await;
    let options = Options { command_timeout: Duration::from_secs(100), ..Options::default() };
    let controller = Controller::connect(&address, &options).await.expect("another host");
    let block = Rc::new(Block::open(&controller, 1).expect("a block namespace"));
    let write = |bytes: usize, at: u64| {
        let block = Rc::clone(&block);
        spawn(Class::Foreground, async move {
            let start = now();
            block.write(at, vec![Buffer::zeroed(bytes)], false).await.expect("written");
            start.elapsed()
        })
    };
    // The pool is used up, but no host waits for it: hosts that make progress are left alone.
    let mut short = Duration::ZERO;
    for _ in 0..40 {
        short = short.max(write(64 << 10, 0).await);
        sleep(Duration::from_secs(1)).await;
    }
    // Eight at a time, and one that is longer than what every connection has for itself.
    assert!(!tricklers.iter().any(JoinHandle::is_finished), "nobody waited for what they hold");
    let long = write(1 << 20, 16 << 20);
    let deep: Vec<_> = (0..8).map(|at| write(64 << 10, at << 16)).collect();
    for one in deep {
        short = short.max(one.await);
    }
    let long = long.await;
    assert!(tricklers.iter().any(JoinHandle::is_finished), "one of them made way");
    assert!(!tricklers.iter().all(JoinHandle::is_finished), "the others are left alone");
    tricklers.iter().for_each(JoinHandle::abort);
    drop((admin, reader));
    controller.disconnect().await;
    Beside { short, long }
}

/// Six hosts that send 8 KiB a second of their grants hold the whole pool.
#[test]
fn hosts_that_trickle_do_not_delay_short_writes_and_long_ones_only_briefly() {
    let mut simulation = Simulation::new(0);
    let ready = simulation.start_drive();
    simulation.wait("the drive", || ready.get());
    simulation.formatted = true;
    let done = simulation.on_host(|address, _| write_beside_tricklers(address));
    let ended = simulation.world.run_until(|_| done.borrow().is_some(), Duration::from_secs(600));
    ended.unwrap_or_else(|stuck| panic!("the host: {stuck}"));
    let Beside { short, long } = done.borrow_mut().take().expect("just seen");
    println!("64 KiB beside six tricklers: at most {short:?}; 1 MiB: {long:?}");
    assert!(short <= Duration::from_secs(1), "a write of 64 KiB took {short:?}");
    assert!(long > Duration::from_secs(2), "the pool was not all lent: {long:?}");
    assert!(long <= LINE_MOVES, "a write of 1 MiB took {long:?}");
}

/// More clients of the metrics page than the drive serves at a time, which send no request.
#[test]
fn silent_scrapers_keep_no_other_one_waiting() {
    let mut simulation = Simulation::new(0);
    let ready = simulation.start_drive();
    simulation.wait("the drive", || ready.get());
    simulation.formatted = true;
    let done = simulation.on_host(|_, _| async move {
        let metrics = SocketAddr::from((crate::DRIVE, METRICS));
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(Stream::connect(metrics).await.expect("the drive listens"));
        }
        let start = now();
        let scraper = Stream::connect(metrics).await.expect("the drive listens");
        scraper.send_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
        let mut head = [0; 15];
        scraper.recv_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        start.elapsed()
    });
    simulation.wait("the page", || done.borrow().is_some());
    let waited = done.borrow().expect("just seen");
    assert!(waited <= Duration::from_secs(1), "a scrape took {waited:?}");
}
