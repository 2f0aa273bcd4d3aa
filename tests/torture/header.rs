//! Headers with wrong contents: kinds, lengths, offsets, flags, order.

use std::net::SocketAddr;

use csd_tests::wire::{Command, Wire, connect_command};

use crate::harness::{Host, assert_closed, assert_terminated, each_backend, send, status_of};

const INVALID_HEADER_FIELD: u16 = 0x01;
const SEQUENCE_ERROR: u16 = 0x02;
const LIMIT_EXCEEDED: u16 = 0x05;
const UNSUPPORTED_PARAMETER: u16 = 0x06;

fn ic_req(change: impl Fn(&mut [u8; 128])) -> Vec<u8> {
    let mut request = [0u8; 128];
    (request[2], request[4]) = (128, 128);
    change(&mut request);
    request.to_vec()
}

/// Returns a capsule for Flush, changed.
fn capsule(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut pdu = vec![0x04, 0, 72, 0, 72, 0, 0, 0];
    pdu.extend_from_slice(&Command::new(0x00, 1).0);
    change(&mut pdu);
    pdu
}

fn refused_at_once(address: SocketAddr, bytes: &[u8], status: u16) {
    let mut wire = Wire::open(address);
    // Further bytes must not make the drive lose its last message.
    send(&mut wire, &[bytes, &[0xEE; 3000]].concat());
    assert_terminated(&mut wire, status);
}

fn refused_later(address: SocketAddr, bytes: &[u8], status: u16) {
    let mut wire = Wire::open(address);
    wire.initialise();
    send(&mut wire, &[bytes, &[0xEE; 3000]].concat());
    assert_terminated(&mut wire, status);
}

#[test]
fn an_initialisation_with_wrong_fields_is_refused_by_name() {
    each_backend(|address| {
        refused_at_once(address, &ic_req(|pdu| pdu[8] = 1), UNSUPPORTED_PARAMETER);
        refused_at_once(address, &ic_req(|pdu| pdu[10] = 32), INVALID_HEADER_FIELD);
        for (offset, value) in [(0, 0x0B), (0, 0x01), (2, 127), (4, 129)] {
            let changed = ic_req(|pdu| pdu[offset] = value);
            refused_at_once(address, &changed, INVALID_HEADER_FIELD);
        }
        refused_at_once(address, &capsule(|_| {}), SEQUENCE_ERROR);
        refused_later(address, &ic_req(|_| {}), SEQUENCE_ERROR);
        // Nonzero reserved bytes are accepted.
        let mut wire = Wire::open(address);
        send(
            &mut wire,
            &ic_req(|pdu| {
                (pdu[1], pdu[3]) = (0xFF, 0xFF);
                pdu[16..].fill(0xFF);
            }),
        );
        assert_eq!(wire.receive().header[0], 0x01);
    });
}

#[test]
fn wrong_kinds_lengths_and_flags_are_refused_by_name() {
    each_backend(|address| {
        for kind in [0x01, 0x03, 0x05, 0x07, 0x08, 0x09, 0x0A, 0x7F, 0xFF] {
            refused_later(address, &capsule(|pdu| pdu[0] = kind), INVALID_HEADER_FIELD);
        }
        for (offset, value) in [(1, 0x01), (1, 0x02), (2, 0), (2, 71), (2, 255), (4, 71), (4, 8)] {
            refused_later(address, &capsule(|pdu| pdu[offset] = value), INVALID_HEADER_FIELD);
        }
        // Data before the header's end, or behind the PDU's.
        for offset in [1, 71, 200] {
            let wrong = capsule(|pdu| (pdu[3], pdu[4]) = (offset, 76));
            refused_later(address, &wrong, INVALID_HEADER_FIELD);
        }
        let huge = capsule(|pdu| {
            pdu[3] = 72;
            pdu[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        });
        refused_later(address, &huge, LIMIT_EXCEEDED);
        let over = capsule(|pdu| {
            pdu[3] = 72;
            pdu[4..8].copy_from_slice(&(72u32 + 8192 + 1).to_le_bytes());
        });
        refused_later(address, &over, LIMIT_EXCEEDED);
    });
}

#[test]
fn a_host_that_terminates_is_left_alone() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 32, true);
        // PDO is reserved here: SPDK's host sets it to 0.
        let mut pdu = vec![0x02, 0, 24, 0, 24 + 8, 0, 0, 0, 0x01, 0];
        pdu.resize(32, 0);
        send(&mut io, &pdu);
        assert_closed(&mut io);
        // The queue is free again; its controller lives.
        while host_queue_is_taken(&mut host) {}
        assert_eq!(host.admin.property(0x1C, false) & 1, 1);
    });
}

fn host_queue_is_taken(host: &mut Host) -> bool {
    let mut queue = Wire::open(host.address);
    queue.initialise();
    queue.connect(crate::harness::NQN, 1, host.cntlid, true).status != 0
}

#[test]
fn data_descriptors_that_lie_fail_the_command_alone() {
    each_backend(|address| {
        let mut io = Host::new(address).queue_kept();
        let write = |kind: u8, length: u32, offset: u8, data: &[u8], io: &mut Wire| {
            let mut command = Command::new(0x01, 1);
            io.stamp(&mut command);
            command.sgl(length as usize, kind);
            command.0[24] = offset;
            io.send_capsule(&command, data);
            status_of(&io.receive())
        };
        let block = [7u8; 4096];
        assert_eq!(write(0x01, 4096, 0, &block, &mut io.1), 0);
        assert_ne!(write(0x01, 4096, 0, &block[..4092], &mut io.1), 0, "less came");
        assert_ne!(write(0x01, 4092, 0, &block[..4092], &mut io.1), 0, "not a block");
        assert_ne!(write(0x01, 4096, 4, &block, &mut io.1), 0, "an offset");
        assert_ne!(write(0x5A, 4096, 0, &block, &mut io.1), 0, "in the capsule, said by transfer");
        assert_ne!(write(0x01, 4096, 0, &[], &mut io.1), 0, "nothing came");
        for kind in [0x00, 0x02, 0x10, 0x40, 0x50, 0x5B, 0xFF] {
            assert_ne!(write(kind, 4096, 0, &[], &mut io.1), 0, "descriptor type {kind:#x}");
        }
        assert_ne!(write(0x5A, u32::MAX, 0, &[], &mut io.1), 0, "4 GiB");
        // An execution larger than the limit must not wait for memory that never becomes free.
        for length in [(1u32 << 20) + 1, u32::MAX] {
            let mut execute = Command::new(0x01, 5).dword(4, length);
            io.1.stamp(&mut execute);
            execute.sgl(length as usize, 0x5A);
            io.1.send_capsule(&execute, &[]);
            assert_ne!(status_of(&io.1.receive()), 0);
        }
    });
}

#[test]
fn every_opcode_and_reserved_field_gets_an_answer() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 32, true);
        for nsid in [0, 1, 2, 3, 4, 5, 6, 0xFFFF_FFFE, u32::MAX] {
            for opcode in 0..=255u8 {
                let mut command = Command::new(opcode, nsid);
                command.0[40..64].fill(0xFF);
                io.stamp(&mut command);
                command.sgl(4, 0x11);
                io.send_capsule(&command, &[]);
                let _ = status_of(&io.receive());
            }
        }
        for opcode in (0..=255u8).filter(|opcode| !matches!(opcode, 0x0C)) {
            let mut command = Command::new(opcode, 0xFFFF_FFFF);
            command.0[40..64].fill(0xFF);
            host.admin.stamp(&mut command);
            command.sgl(0, 0x5A);
            host.admin.send_capsule(&command, &[]);
            let _ = status_of(&host.admin.receive());
        }
    });
}

#[test]
fn connect_with_wrong_fields_is_refused() {
    each_backend(|address| {
        let host = Host::new(address);
        let nqn = crate::harness::NQN;
        let attempt = |qid: u16, cntlid: u16, change: &dyn Fn(&mut Command, &mut [u8; 1024])| {
            let mut wire = Wire::open(address);
            wire.initialise();
            let (mut command, mut data) = connect_command(nqn, qid, cntlid, 32, true);
            change(&mut command, &mut data);
            wire.command_in_capsule(command, &data).status
        };
        assert_ne!(attempt(1, host.cntlid + 100, &|_, _| {}), 0, "no such controller");
        assert_ne!(attempt(0, 5, &|_, _| {}), 0, "the static model");
        assert_ne!(attempt(200, host.cntlid, &|_, _| {}), 0, "queue id");
        assert_ne!(attempt(1, host.cntlid, &|_, data| data[0] ^= 1), 0, "another host id");
        assert_ne!(attempt(1, host.cntlid, &|_, data| data[520] ^= 1), 0, "another host");
        assert_ne!(attempt(1, host.cntlid, &|_, data| data[256] ^= 1), 0, "another subsystem");
        assert_ne!(attempt(1, host.cntlid, &|command, _| command.0[44..46].fill(0)), 0, "size 1");
        assert_ne!(attempt(1, host.cntlid, &|command, _| command.0[44..46].fill(0xFF)), 0, "size");
        assert_ne!(attempt(1, host.cntlid, &|command, _| command.0[40] = 1), 0, "record format");
        assert_ne!(attempt(1, host.cntlid, &|_, data| data[256..].fill(0xFF)), 0, "no text");
        assert_eq!(attempt(1, host.cntlid, &|_, _| {}), 0);
    });
}

impl Host {
    /// Adds an I/O queue, which lives as long as its controller.
    fn queue_kept(mut self) -> (Self, Wire) {
        let io = self.queue(1, 32, true);
        (self, io)
    }
}
