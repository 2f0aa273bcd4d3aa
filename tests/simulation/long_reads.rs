//! Reads that are longer than the pieces in which a drive reads: next to short reads, on a disk
//! that fails amid them, and of hosts that take no answer and end the connection.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_initiator::{Address, Block, Controller, Options};
use csd_kvlog::media::{FaultConfig, Faulty, Media};
use csd_reactor::{Class, Stream, now, sleep, spawn, timeout};
use csd_tests::wire::Command;

use crate::Simulation;
use crate::seeds;
use crate::stalled::{capsule, enabled, queue};

const BLOCK_BYTES: u32 = 4096;
/// Depth of the queue of the long reads.
const DEPTH: u16 = 32;
/// Most bytes that a host of long reads gets while another waits for 4 KiB: what a connection sends
/// before another has its turn, once or twice, and what the simulated network has on its way.
const BYTES_BETWEEN_MAX: u64 = (256 << 10) + (128 << 10);

/// Returns the capsule of a read of `bytes` bytes from block 0 on.
fn read(cid: u16, bytes: u32) -> Vec<u8> {
    let mut command = Command::new(0x02, 1).dword(12, bytes / BLOCK_BYTES - 1);
    command.0[2..4].copy_from_slice(&cid.to_le_bytes());
    capsule(command, bytes, &[])
}

/// A PDU of the drive: its header, and its data if it is no longer than `most`.
async fn pdu(stream: &Stream) -> Option<([u8; 24], Vec<u8>)> {
    let mut header = [0; 24];
    stream.recv_exact(&mut header).await.ok()?;
    let length = u32::from_le_bytes(header[4..8].try_into().unwrap());
    let mut data = vec![0; length as usize - 24];
    stream.recv_exact(&mut data).await.ok()?;
    Some((header, data))
}

fn half(header: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([header[at], header[at + 1]])
}

/// Reads `bytes` bytes at depth [`DEPTH`] until `done`; counts the bytes that come.
async fn read_on(io: Stream, bytes: u32, got: Rc<Cell<u64>>, done: Rc<Cell<bool>>) {
    for cid in 0..DEPTH {
        io.send_all(&read(cid, bytes)).await.unwrap();
    }
    let mut scratch = vec![0; 64 << 10];
    let (mut left, mut header, mut have) = (0, [0; 24], 0);
    while !done.get() {
        let into = if left > 0 { &mut scratch[..left.min(64 << 10)] } else { &mut header[have..] };
        let Some(count) = io.try_recv(into).unwrap() else {
            io.readable().await.unwrap();
            continue;
        };
        got.set(got.get() + count as u64);
        if left > 0 {
            left -= count;
        } else {
            have += count;
        }
        if have == 24 {
            have = 0;
            left = u32::from_le_bytes(header[4..8].try_into().unwrap()) as usize - 24;
            if header[0] == 0x05 {
                io.send_all(&read(half(&header, 20), bytes)).await.unwrap();
            }
        }
    }
}

#[test]
fn a_reader_of_short_blocks_gets_its_turn_next_to_long_reads() {
    for (seed, bytes) in [(0, 128 << 10), (1, 1 << 20), (2, 4 << 20)] {
        let mut simulation = Simulation::new(seed * 2);
        let ready = simulation.start_drive();
        simulation.wait("the drive", || ready.get());
        simulation.formatted = true;
        let answer = simulation.on_host(move |address, _| async move {
            let (got, done) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
            let (admin, cntlid) = enabled(&address).await;
            let (io, _) = queue(&address, 1, cntlid, DEPTH + 1).await;
            let long = read_on(io, bytes, Rc::clone(&got), Rc::clone(&done));
            let long = spawn(Class::Foreground, long);
            let controller = Controller::connect(&address, &Options::default()).await.unwrap();
            let block = Block::open(&controller, 1).unwrap();
            let (mut most, mut all) = (0, 0);
            for _ in 0..200 {
                let before: u64 = got.get();
                block.read(0, BLOCK_BYTES as usize).await.unwrap();
                most = most.max(got.get() - before);
                all = got.get();
            }
            done.set(true);
            drop((long, admin));
            (most, all)
        });
        simulation.wait("200 short reads", || answer.borrow().is_some());
        let (most, all) = answer.borrow().unwrap();
        println!(
            "reads of {bytes} bytes: {all} in all, at most {most} while 4 KiB were waited for"
        );
        assert!(all > 200 * 4096, "the long reads hardly ran: {all}");
        assert!(most <= BYTES_BETWEEN_MAX, "{most} bytes of another host came first");
    }
}

/// Reads until the disk has failed amid some; returns the numbers of reads that succeeded, that
/// failed before their data, and that failed amid it.
async fn read_on_failing_disk(address: Address) -> [u32; 3] {
    const BYTES: u32 = 2 << 20;
    let (_admin, cntlid) = enabled(&address).await;
    let (io, _) = queue(&address, 1, cntlid, DEPTH + 1).await;
    let mut counts = [0; 3];
    for _ in 0..20 {
        for cid in 0..DEPTH {
            io.send_all(&read(cid, BYTES)).await.unwrap();
        }
        let mut has_data = [false; DEPTH as usize];
        let mut left = DEPTH;
        while left > 0 {
            let (header, data) = pdu(&io).await.expect("the connection lives");
            if header[0] == 0x07 {
                assert_eq!(
                    (data.len(), header[1] & 0x0C),
                    (BYTES as usize, 0x04),
                    "whole, no SUCCESS"
                );
                let known = &mut has_data[usize::from(half(&header, 8))];
                assert!(!std::mem::replace(known, true), "one PDU of data");
                continue;
            }
            assert_eq!(header[0], 0x05);
            left -= 1;
            let failed = half(&header, 22) >> 1 != 0;
            let has_data = has_data[usize::from(half(&header, 20))];
            assert!(failed || has_data, "a success has data");
            counts[usize::from(failed) + usize::from(failed && has_data)] += 1;
        }
    }
    counts
}

#[test]
fn a_disk_that_fails_amid_a_read_fails_that_read_alone() {
    let mut sum = [0; 3];
    // Even seeds have blocks of 4 KiB.
    for seed in seeds().take(6).map(|seed| seed * 2) {
        let mut simulation = Simulation::new(seed);
        let media = Media::Volatile(Arc::clone(&simulation.disk));
        let faulty = Arc::new(Faulty::new(media, seed));
        let ready = simulation.start_drive_on(Media::Faulty(Arc::clone(&faulty)));
        simulation.wait("the drive", || ready.get());
        simulation.formatted = true;
        faulty.set(FaultConfig {
            failed_reads_ppm: 30_000,
            latency_us: 0..500,
            ..FaultConfig::default()
        });
        let answer = simulation.on_host(|address, _| read_on_failing_disk(address));
        simulation.wait("the reads", || answer.borrow().is_some());
        let counts = answer.borrow().unwrap();
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    println!("reads that succeeded, failed before their data, failed amid it: {sum:?}");
    assert!(sum.iter().all(|count| *count > 0), "{sum:?}");
}

/// Has answers wait that no host takes, then ends the connection; returns the time until the drive
/// has ended it, too.
async fn terminate(address: Address, bytes: u32) -> Duration {
    let (admin, cntlid) = enabled(&address).await;
    let (io, _) = queue(&address, 1, cntlid, 128).await;
    for cid in 0..127 {
        io.send_all(&read(cid, bytes)).await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    let mut reason = [vec![2, 0, 24, 0, 48, 0, 0, 0, 1, 0, 8], vec![0; 37]].concat();
    reason[24] = 7;
    io.send_all(&reason).await.unwrap();
    let start = now();
    // The queue's identifier is free again when the connection is over.
    while !is_free(&address, cntlid).await {
        sleep(Duration::from_millis(10)).await;
    }
    drop(admin);
    start.elapsed()
}

/// Returns true if queue 1 of a controller can be connected.
async fn is_free(address: &Address, cntlid: u16) -> bool {
    let stream = Stream::connect(&address.socket).await.expect("the drive listens");
    let mut request = [0u8; 128];
    (request[2], request[4]) = (128, 128);
    stream.send_all(&request).await.unwrap();
    let (mut command, data) = csd_tests::wire::connect_command(crate::NQN, 1, cntlid, 128, true);
    command.0[48..52].fill(0);
    stream.send_all(&capsule(command, 1024, &data)).await.unwrap();
    let mut answer = [0; 128 + 24];
    let answered = timeout(Duration::from_secs(60), stream.recv_exact(&mut answer)).await;
    answered.expect("an answer").unwrap();
    half(&answer, 128 + 22) >> 1 == 0
}

#[test]
fn a_host_that_ends_the_connection_is_heard_while_answers_wait() {
    for (seed, bytes) in [(0, 128 << 10), (1, 4 << 10), (2, 1 << 20), (3, 16 << 20)] {
        let mut simulation = Simulation::new(seed * 2);
        let ready = simulation.start_drive();
        simulation.wait("the drive", || ready.get());
        simulation.formatted = true;
        let answer = simulation.on_host(move |address, _| terminate(address, bytes));
        simulation.wait("the end of the connection", || answer.borrow().is_some());
        let waited = answer.borrow().unwrap();
        println!("reads of {bytes} bytes: ended after {waited:?}");
        assert!(waited < Duration::from_secs(1), "{waited:?} for reads of {bytes} bytes");
        let shared = simulation.shared.borrow();
        let causes: Vec<_> = shared.as_ref().unwrap().causes.counts().collect();
        assert!(causes.contains(&("terminated", 1)), "{causes:?}");
    }
}
