//! Hosts that hold what others need and do nothing with it: they are closed, the others served.
//! In simulated time, because a drive is patient.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use csd_initiator::{Address, Block, Controller, Options};
use csd_reactor::{Buffer, Stream, now, sleep, timeout};

use crate::wire::{Command, connect_command};
use crate::{NQN, Simulation};

const TRANSFER_BYTES: u32 = 16 << 20;
const BLOCK_BYTES: u32 = 4096;
/// More than a drive lends to all connections of a core.
const GREEDY: u16 = 6;

pub(super) fn capsule(mut command: Command, length: u32, inside: &[u8]) -> Vec<u8> {
    command.sgl(length as usize, if inside.is_empty() { 0x5A } else { 0x01 });
    let plen = 72 + u32::try_from(inside.len()).unwrap();
    let mut pdu = vec![0x04, 0, 72, if inside.is_empty() { 0 } else { 72 }];
    pdu.extend_from_slice(&plen.to_le_bytes());
    pdu.extend_from_slice(&command.0);
    pdu.extend_from_slice(inside);
    pdu
}

/// Connects a queue of a controller without keep-alive; the answer's controller id.
async fn queue(address: &Address, qid: u16, cntlid: u16) -> (Stream, u16) {
    let stream = Stream::connect(address.socket).await.expect("the drive listens");
    let mut request = [0u8; 128];
    (request[2], request[4]) = (128, 128);
    stream.send_all(&request).await.unwrap();
    let (mut command, data) = connect_command(NQN, qid, cntlid, 32, true);
    command.0[48..52].fill(0);
    stream.send_all(&capsule(command, 1024, &data)).await.unwrap();
    let mut answer = [0; 128 + 24];
    stream.recv_exact(&mut answer).await.unwrap();
    assert_eq!(answer[128 + 22..], [0, 0], "connected");
    let answered = u16::from_le_bytes(answer[128 + 8..128 + 10].try_into().unwrap());
    (stream, answered)
}

async fn greedy_hosts(address: &Address) -> Vec<Stream> {
    let (admin, cntlid) = queue(address, 0, 0xFFFF).await;
    let enable = Command::new(0x7F, 0).dword(11, 0x14).dword(12, 4 << 20 | 6 << 16 | 6 << 4 | 1);
    admin.send_all(&capsule(enable, 0, &[])).await.unwrap();
    admin.recv_exact(&mut [0; 24]).await.unwrap();
    let mut streams = vec![admin];
    let blocks = TRANSFER_BYTES / BLOCK_BYTES - 1;
    for qid in 1..=GREEDY {
        let (io, _) = queue(address, qid, cntlid).await;
        let write = Command::new(0x01, 1).dword(12, blocks);
        io.send_all(&capsule(write, TRANSFER_BYTES, &[])).await.unwrap();
        streams.push(io);
    }
    // One who asks for much and takes nothing.
    let (io, _) = queue(address, GREEDY + 1, cntlid).await;
    let read = Command::new(0x02, 1).dword(12, blocks);
    io.send_all(&capsule(read, TRANSFER_BYTES, &[])).await.unwrap();
    streams.push(io);
    streams
}

/// True when the drive has closed this connection, whatever it sent before.
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
            // The admin queue did nothing wrong.
            assert_eq!(is_closed(stream).await, at > 0, "connection {at}");
        }
        drop(greedy);
        waited
    });
    let limit = Duration::from_secs(400);
    let ended = simulation.world.run_until(|_| done.borrow().is_some(), limit);
    ended.unwrap_or_else(|stuck| panic!("the host: {stuck}"));
    let waited = done.borrow().expect("just seen");
    assert!(waited > Duration::from_secs(20), "nobody was greedy: waited {waited:?}");
    simulation.wait("the host", || !simulation.world.is_running(simulation.host));
    let shared = Rc::clone(&simulation.shared);
    let open = move || -> usize {
        let shared = shared.borrow();
        let counts = &shared.as_ref().expect("the drive runs").connections;
        counts.iter().map(|count| count.load(Relaxed)).sum()
    };
    simulation.wait("the last connection to leave", || open() == 0);
}
