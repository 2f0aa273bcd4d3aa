//! Header and data digests: right, wrong, and half of them.

use std::io::Write;

use crate::harness::{
    BLOCK_BYTES, Host, NQN, assert_terminated, each_backend, send, status_of, u16_at, u32_at,
};
use crate::wire::{Command, Wire, connect_command};

const HEADER_DIGEST_ERROR: u16 = 0x03;
const TRANSIENT_TRANSPORT_ERROR: u16 = 0x22;

/// A PDU with both digests: header of which the first 8 bytes are made here, and data.
fn digested(kind: u8, flags: u8, rest: &[u8], data: &[u8]) -> Vec<u8> {
    let hlen = 8 + rest.len();
    let (data_flag, tail) = if data.is_empty() { (0, 0) } else { (2, data.len() + 4) };
    let pdo = if data.is_empty() { 0 } else { hlen + 4 };
    let mut pdu = vec![kind, flags | 1 | data_flag, hlen as u8, pdo as u8];
    pdu.extend_from_slice(&((hlen + 4 + tail) as u32).to_le_bytes());
    pdu.extend_from_slice(rest);
    pdu.extend_from_slice(&crc32c::crc32c(&pdu).to_le_bytes());
    if !data.is_empty() {
        pdu.extend_from_slice(data);
        pdu.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
    }
    pdu
}

/// A connection of an I/O queue with both digests.
struct Digested(Wire);

impl Digested {
    fn open(host: &Host, qid: u16) -> Self {
        let mut wire = Wire::open(host.address);
        let mut request = [0u8; 128];
        (request[2], request[4], request[11]) = (128, 128, 3);
        wire.stream.write_all(&request).unwrap();
        assert_eq!(wire.receive().header[11], 3, "both digests");
        let (mut command, data) = connect_command(NQN, qid, host.cntlid, 32, true);
        command.sgl(data.len(), 0x01);
        wire.stamp(&mut command);
        wire.stream.write_all(&digested(0x04, 0, &command.0, &data)).unwrap();
        let mut this = Self(wire);
        assert_eq!(this.status(), 0);
        this
    }

    fn status(&mut self) -> u16 {
        let pdu = self.0.receive();
        assert_eq!(pdu.header[1] & 1, 1, "a header digest");
        status_of(&pdu)
    }

    fn write(&mut self, kind: u8, block: u32) -> Command {
        let mut command = Command::new(0x01, 1).dword(10, block);
        self.0.stamp(&mut command);
        command.sgl(BLOCK_BYTES, kind);
        command
    }
}

#[test]
fn right_digests_pass_and_a_wrong_data_digest_fails_one_command() {
    each_backend(|address| {
        let host = Host::new(address);
        let mut io = Digested::open(&host, 1);
        let (old, new) = ([0x11; BLOCK_BYTES], [0x22; BLOCK_BYTES]);
        let command = io.write(0x01, 5);
        send(&mut io.0, &digested(0x04, 0, &command.0, &old));
        assert_eq!(io.status(), 0);
        // In the capsule.
        let command = io.write(0x01, 5);
        let mut pdu = digested(0x04, 0, &command.0, &new);
        *pdu.last_mut().unwrap() ^= 1;
        send(&mut io.0, &pdu);
        assert_eq!(io.status(), TRANSIENT_TRANSPORT_ERROR);
        // By transfer, in two PDUs of which the first is damaged: all of it still comes.
        let command = io.write(0x5A, 5);
        send(&mut io.0, &digested(0x04, 0, &command.0, &[]));
        let r2t = io.0.receive();
        let mut sent = 0;
        for (part, flags) in [(&new[..1024], 0u8), (&new[1024..], 4)] {
            let mut rest = r2t.header[8..12].to_vec();
            rest.extend_from_slice(&(sent as u32).to_le_bytes());
            rest.extend_from_slice(&(part.len() as u32).to_le_bytes());
            rest.extend_from_slice(&[0; 4]);
            let mut pdu = digested(0x06, flags, &rest, part);
            if sent == 0 {
                pdu[24 + 4 + 9] ^= 0x40; // a bit of the data
            }
            send(&mut io.0, &pdu);
            sent += part.len();
        }
        assert_eq!(io.status(), TRANSIENT_TRANSPORT_ERROR);
        let mut read = Command::new(0x02, 1).dword(10, 5);
        io.0.stamp(&mut read);
        read.sgl(BLOCK_BYTES, 0x5A);
        send(&mut io.0, &digested(0x04, 0, &read.0, &[]));
        let pdu = io.0.receive();
        assert_eq!(pdu.data[..BLOCK_BYTES], old, "damaged data is not written");
        assert_eq!(u32_at(&pdu.data, BLOCK_BYTES), crc32c::crc32c(&old), "DDGST");
        assert_eq!(io.status(), 0);
    });
}

#[test]
fn a_wrong_header_digest_ends_the_connection() {
    each_backend(|address| {
        let host = Host::new(address);
        // Bits of the queue entry and of the digest itself.
        for (qid, bit) in (1..).zip([8 * 8, 8 * 28, 8 * 71 + 7, 8 * 72, 8 * 75 + 7]) {
            let mut io = Digested::open(&host, qid);
            let mut pdu = digested(0x04, 0, &Command::new(0x00, 1).0, &[]);
            pdu[bit / 8] ^= 1 << (bit % 8);
            send(&mut io.0, &pdu);
            assert_terminated(&mut io.0, HEADER_DIGEST_ERROR);
        }
    });
}

#[test]
fn flags_must_say_what_was_agreed() {
    each_backend(|address| {
        let host = Host::new(address);
        for flags in [0u8, 2] {
            let mut io = Digested::open(&host, 3 + u16::from(flags));
            let mut pdu = digested(0x04, 0, &Command::new(0x00, 1).0, &[]);
            pdu[1] = flags;
            send(&mut io.0, &pdu);
            assert_terminated(&mut io.0, 0x01);
        }
        let mut io = Digested::open(&host, 9);
        let command = io.write(0x5A, 1);
        send(&mut io.0, &digested(0x04, 0, &command.0, &[]));
        let ttag = u16_at(&io.0.receive().header, 10);
        // Data without a digest, with a right header digest.
        let mut rest = command.0[2..4].to_vec();
        rest.extend_from_slice(&ttag.to_le_bytes());
        rest.extend_from_slice(&[0; 4]);
        rest.extend_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
        rest.extend_from_slice(&[0; 4]);
        let mut pdu = vec![0x06, 1 | 4, 24, 28];
        pdu.extend_from_slice(&((28 + BLOCK_BYTES) as u32).to_le_bytes());
        pdu.extend_from_slice(&rest);
        pdu.extend_from_slice(&crc32c::crc32c(&pdu).to_le_bytes());
        pdu.extend_from_slice(&[0; BLOCK_BYTES]);
        send(&mut io.0, &pdu);
        assert_terminated(&mut io.0, 0x01);
    });
}
