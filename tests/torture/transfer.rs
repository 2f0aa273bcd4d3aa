//! Data that the drive did not request, or that comes twice, out of order, in excess or incomplete.

use std::io::Write;

use csd_tests::wire::{Command, Wire, data_pdu};

use crate::harness::{
    BLOCK_BYTES, Host, assert_closed, assert_terminated, each_backend, send, status_of, u16_at,
};

const INVALID_HEADER_FIELD: u16 = 0x01;
const OUT_OF_RANGE: u16 = 0x04;
const LIMIT_EXCEEDED: u16 = 0x05;
const COMMAND_ID_CONFLICT: u16 = 0x03;
const KEY_DOES_NOT_EXIST: u16 = 0x87;

/// Asks to write so many bytes from block 0 on by transfer; returns command identifier and transfer
/// tag.
fn granted(io: &mut Wire, bytes: usize) -> (u16, u16) {
    let blocks = (bytes / BLOCK_BYTES) as u32;
    let command = Command::new(0x01, 1).dword(10, 0).dword(12, blocks - 1);
    let (cid, capsule) = io.capsule_bytes(command, bytes);
    io.stream.write_all(&capsule).unwrap();
    let r2t = io.receive();
    assert_eq!((r2t.header[0], u16_at(&r2t.header, 8)), (0x09, cid), "R2T");
    (cid, u16_at(&r2t.header, 10))
}

fn block_0(host: &mut Host, qid: u16) -> Vec<u8> {
    host.queue(qid, 32, true).command(Command::new(0x02, 1), &[], BLOCK_BYTES).data
}

#[test]
fn data_outside_its_grant_ends_the_connection_and_writes_nothing() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut qid = 1;
        let mut case = |status: u16, pdus: &dyn Fn(u16, u16) -> Vec<Vec<u8>>| {
            let mut io = host.queue(qid, 32, true);
            let (cid, ttag) = granted(&mut io, 2 * BLOCK_BYTES);
            send(&mut io, &pdus(cid, ttag).concat());
            send(&mut io, &[0xEE; 2000]);
            assert_terminated(&mut io, status);
            assert!(block_0(&mut host, qid + 1).iter().all(|byte| *byte == 0), "half applied");
            qid += 2;
        };
        let (half, whole) = ([1u8; BLOCK_BYTES], [1u8; 2 * BLOCK_BYTES]);
        let first = |cid, ttag| data_pdu(cid, ttag, 0, &half, false);
        case(INVALID_HEADER_FIELD, &|cid, ttag| vec![data_pdu(cid, ttag + 1, 0, &whole, true)]);
        case(INVALID_HEADER_FIELD, &|cid, _| vec![data_pdu(cid, 0xFFFF, 0, &whole, true)]);
        case(INVALID_HEADER_FIELD, &|cid, ttag| vec![data_pdu(cid + 1, ttag, 0, &whole, true)]);
        case(INVALID_HEADER_FIELD, &|cid, ttag| vec![data_pdu(cid, ttag, 0, &half, true)]);
        case(INVALID_HEADER_FIELD, &|cid, ttag| vec![data_pdu(cid, ttag, 0, &whole, false)]);
        case(INVALID_HEADER_FIELD, &|cid, ttag| vec![data_pdu(cid, ttag, 0, &[], true)]);
        case(OUT_OF_RANGE, &|cid, ttag| vec![data_pdu(cid, ttag, 4096, &half, true)]);
        case(OUT_OF_RANGE, &|cid, ttag| vec![first(cid, ttag), first(cid, ttag)]);
        case(OUT_OF_RANGE, &|cid, ttag| {
            vec![first(cid, ttag), data_pdu(cid, ttag, 4092, &half, true)]
        });
        case(OUT_OF_RANGE, &|cid, ttag| {
            vec![first(cid, ttag), data_pdu(cid, ttag, 4096, &whole, true)]
        });
        case(OUT_OF_RANGE, &|cid, ttag| vec![data_pdu(cid, ttag, u32::MAX - 3, &half, true)]);
        case(INVALID_HEADER_FIELD, &|cid, ttag| {
            // DATAL says less than what follows.
            let mut pdu = data_pdu(cid, ttag, 0, &whole, true);
            pdu[16..20].copy_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
            vec![pdu]
        });
    });
}

#[test]
fn a_grant_is_used_once_and_a_pdu_has_a_limit() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 32, true);
        let (cid, ttag) = granted(&mut io, BLOCK_BYTES);
        let pdu = data_pdu(cid, ttag, 0, &[9; BLOCK_BYTES], true);
        io.stream.write_all(&pdu).unwrap();
        assert_eq!(status_of(&io.receive()), 0);
        send(&mut io, &pdu);
        assert_terminated(&mut io, INVALID_HEADER_FIELD);
        let mut io = host.queue(2, 32, true);
        let bytes = 256 << 10;
        let (cid, ttag) = granted(&mut io, bytes);
        send(&mut io, &data_pdu(cid, ttag, 0, &vec![9; bytes], true));
        assert_terminated(&mut io, LIMIT_EXCEEDED);
    });
}

#[test]
fn a_command_id_in_flight_is_refused_and_the_first_command_lives() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 32, true);
        let (cid, ttag) = granted(&mut io, BLOCK_BYTES);
        let mut again = Command::new(0x01, 1).dword(10, 9);
        again.0[2..4].copy_from_slice(&cid.to_le_bytes());
        again.sgl(BLOCK_BYTES, 0x01);
        for data in [&[][..], &[0xBB; BLOCK_BYTES]] {
            io.send_capsule(&again, data);
            let refused = io.receive();
            assert_eq!(
                (status_of(&refused), u16_at(&refused.header, 20)),
                (COMMAND_ID_CONFLICT, cid)
            );
        }
        io.stream.write_all(&data_pdu(cid, ttag, 0, &[3; BLOCK_BYTES], true)).unwrap();
        assert_eq!(status_of(&io.receive()), 0);
        assert!(io.command(Command::new(0x02, 1), &[], BLOCK_BYTES).data == [3; BLOCK_BYTES]);
        let read = Command::new(0x02, 1).dword(10, 9);
        assert!(io.command(read, &[], BLOCK_BYTES).data == [0; BLOCK_BYTES]);
    });
}

#[test]
fn more_commands_than_entries_end_the_connection() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 4, true);
        for _ in 0..5 {
            let (_, capsule) = io.capsule_bytes(Command::new(0x01, 1), BLOCK_BYTES);
            send(&mut io, &capsule);
        }
        let grants = (0..4).take_while(|_| {
            let mut byte = [0; 24];
            std::io::Read::read_exact(&mut io.stream, &mut byte).is_ok()
        });
        let _ = grants.count();
        assert_closed(&mut io);
        assert_eq!(host.admin.property(0x1C, false) & 1, 1, "its controller lives");
    });
}

/// All 1,024 entries wait for data: the drive must still receive it.
#[test]
fn a_queue_full_of_grants_still_receives_their_data() {
    each_backend(|address| {
        let mut host = Host::new(address);
        let mut io = host.queue(1, 1024, true);
        let mut capsules = Vec::new();
        for block in 0..1024 {
            let command = Command::new(0x01, 1).dword(10, block);
            capsules.extend(io.capsule_bytes(command, BLOCK_BYTES).1);
        }
        io.stream.write_all(&capsules).unwrap();
        let grants: Vec<(u16, u16)> = (0..1024)
            .map(|_| io.receive())
            .map(|r2t| (u16_at(&r2t.header, 8), u16_at(&r2t.header, 10)))
            .collect();
        for (cid, ttag) in &grants {
            let block = [*cid as u8; BLOCK_BYTES];
            io.stream.write_all(&data_pdu(*cid, *ttag, 0, &block, true)).unwrap();
        }
        for _ in &grants {
            assert_eq!(status_of(&io.receive()), 0);
        }
    });
}

/// A command left over from before Connect counts in addition to those of a full queue.
#[test]
fn a_queue_fills_although_a_command_from_before_connect_is_left() {
    each_backend(|address| {
        let host = Host::new(address);
        let mut io = Wire::open(address);
        io.initialise();
        let (connect, data) =
            csd_tests::wire::connect_command(crate::harness::NQN, 1, host.cntlid, 1024, true);
        let (left_cid, left) = io.capsule_bytes(Command(connect.0), data.len());
        let (cid, capsule) = io.capsule_bytes(connect, data.len());
        io.stream.write_all(&[left, capsule].concat()).unwrap();
        let (_, r2t) = (io.receive(), io.receive());
        assert_eq!(u16_at(&r2t.header, 8), cid);
        io.stream.write_all(&data_pdu(cid, u16_at(&r2t.header, 10), 0, &data, true)).unwrap();
        assert_eq!(status_of(&io.receive()), 0, "connected, and command {left_cid} is left");
        let mut capsules = Vec::new();
        for _ in 0..1024 {
            capsules.extend(io.capsule_bytes(Command::new(0x01, 1), BLOCK_BYTES).1);
        }
        io.stream.write_all(&capsules).unwrap();
        for _ in 0..1024 {
            assert_eq!(io.receive().header[0], 0x09, "R2T");
        }
    });
}

#[test]
fn a_connection_lost_in_mid_data_applies_nothing() {
    each_backend(|address| {
        let mut host = Host::new(address);
        for qid in [1u16, 2, 3] {
            let mut io = host.queue(qid, 32, true);
            let (cid, ttag) = granted(&mut io, 2 * BLOCK_BYTES);
            let pdu = data_pdu(cid, ttag, 0, &[0xDD; 2 * BLOCK_BYTES], true);
            // Short of the end by a byte, a block, or nearly all.
            let sent = pdu.len() - [1, BLOCK_BYTES, 2 * BLOCK_BYTES - 1][usize::from(qid) - 1];
            io.stream.write_all(&pdu[..sent]).unwrap();
            // Store of 8 KiB under a key of one byte, as far.
            let store = Command::new(0x01, 2).dword(2, u32::from(qid)).byte(44, 1);
            let (cid, capsule) = {
                let mut kv = host.queue(qid + 10, 32, true);
                let store = store.dword(10, 2 * BLOCK_BYTES as u32);
                let (cid, capsule) = kv.capsule_bytes(store, 2 * BLOCK_BYTES);
                kv.stream.write_all(&capsule).unwrap();
                let ttag = u16_at(&kv.receive().header, 10);
                let pdu = data_pdu(cid, ttag, 0, &[0xDD; 2 * BLOCK_BYTES], true);
                kv.stream.write_all(&pdu[..sent]).unwrap();
                (cid, capsule)
            };
            assert!(cid < 2 && capsule.len() == 72);
            drop(io);
            let mut other = Host::new(address);
            let mut check = other.queue(1, 32, true);
            let blocks = check.command(Command::new(0x02, 1).dword(12, 1), &[], 2 * BLOCK_BYTES);
            assert!(blocks.data.iter().all(|byte| *byte == 0), "a block was written");
            let exist = Command::new(0x14, 2).dword(2, u32::from(qid)).byte(44, 1);
            assert_eq!(check.command(exist, &[], 0).status, KEY_DOES_NOT_EXIST);
        }
    });
}
