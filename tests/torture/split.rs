//! Every PDU split at every byte.

use std::io::Write;

use csd_tests::wire::{Command, Wire, connect_command, data_pdu};

use crate::harness::{BLOCK_BYTES, Host, each_backend, status_of, u16_at};

/// Sends in two parts; the pause of a system call between them is enough to split a PDU.
fn send_split(wire: &mut Wire, bytes: &[u8], at: usize) {
    wire.stream.write_all(&bytes[..at]).unwrap();
    std::thread::yield_now();
    wire.stream.write_all(&bytes[at..]).unwrap();
}

fn capsule(command: &Command, data: &[u8]) -> Vec<u8> {
    let mut pdu = vec![0x04, 0, 72, if data.is_empty() { 0 } else { 72 }];
    pdu.extend_from_slice(&((72 + data.len()) as u32).to_le_bytes());
    pdu.extend_from_slice(&command.0);
    pdu.extend_from_slice(data);
    pdu
}

#[test]
fn initialisation_and_connect_may_come_in_any_two_parts() {
    each_backend(|address| {
        let mut request = [0u8; 128];
        (request[2], request[4]) = (128, 128);
        let (mut command, data) = connect_command(crate::harness::NQN, 0, 0xFFFF, 32, true);
        command.sgl(data.len(), 0x01);
        let connect = capsule(&command, &data);
        for at in 1..connect.len() {
            let mut wire = Wire::open(address);
            send_split(&mut wire, &request, 1 + at % 127);
            assert_eq!(wire.receive().header[0], 0x01);
            send_split(&mut wire, &connect, at);
            assert_eq!(status_of(&wire.receive()), 0, "split at {at}");
        }
    });
}

#[test]
fn capsules_and_data_may_come_in_any_two_parts() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 32, true);
        let block: Vec<u8> = (0..BLOCK_BYTES).map(|at| (at % 251) as u8).collect();
        let step = |at: usize| if (160..=BLOCK_BYTES - 8).contains(&at) { 61 } else { 1 };
        let mut at = 1;
        while at < 72 + BLOCK_BYTES {
            // In the capsule, then by transfer; both must read back whole.
            let mut command = Command::new(0x01, 1).dword(10, 0);
            io.stamp(&mut command);
            command.sgl(BLOCK_BYTES, 0x01);
            send_split(&mut io, &capsule(&command, &block), at);
            assert_eq!(status_of(&io.receive()), 0, "split at {at}");
            let mut command = Command::new(0x01, 1).dword(10, 1);
            let cid = io.stamp(&mut command);
            command.sgl(BLOCK_BYTES, 0x5A);
            send_split(&mut io, &capsule(&command, &[]), 1 + at % 71);
            let ttag = u16_at(&io.receive().header, 10);
            let pdu = data_pdu(cid, ttag, 0, &block, true);
            send_split(&mut io, &pdu, at.min(pdu.len() - 1));
            assert_eq!(status_of(&io.receive()), 0, "split at {at}");
            at += step(at);
        }
        let read = Command::new(0x02, 1).dword(10, 0).dword(12, 1);
        assert!(io.command(read, &[], 2 * BLOCK_BYTES).data == [&block[..], &block].concat());
    });
}

#[test]
fn a_stream_may_come_byte_by_byte() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 32, true);
        let mut command = Command::new(0x01, 1).dword(10, 3);
        let cid = io.stamp(&mut command);
        command.sgl(BLOCK_BYTES, 0x5A);
        for byte in capsule(&command, &[]) {
            io.stream.write_all(&[byte]).unwrap();
        }
        let ttag = u16_at(&io.receive().header, 10);
        for byte in data_pdu(cid, ttag, 0, &[0xA7; BLOCK_BYTES], true) {
            io.stream.write_all(&[byte]).unwrap();
        }
        assert_eq!(status_of(&io.receive()), 0);
    });
}
