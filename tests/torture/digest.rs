//! Header and data digests: right, wrong, and half of them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use csd_drive::Config;
use csd_drive::log::{Level, Log};
use csd_tests::wire::{Command, Wire, connect_command};

use crate::harness::{
    BLOCK_BYTES, Host, NQN, assert_terminated, each_backend, send, serve, status_of, u16_at, u32_at,
};

const HEADER_DIGEST_ERROR: u16 = 0x03;
const TRANSIENT_TRANSPORT_ERROR: u16 = 0x22;

/// Returns a PDU with both digests: a header whose first 8 bytes are made here, and data.
fn digested(kind: u8, flags: u8, rest: &[u8], data: &[u8]) -> Vec<u8> {
    with_digest(kind, flags, rest, data, crc32c::crc32c(data))
}

/// Returns a PDU with this data digest.
fn with_digest(kind: u8, flags: u8, rest: &[u8], data: &[u8], digest: u32) -> Vec<u8> {
    let hlen = 8 + rest.len();
    let (data_flag, tail) = if data.is_empty() { (0, 0) } else { (2, data.len() + 4) };
    let pdo = if data.is_empty() { 0 } else { hlen + 4 };
    let mut pdu = vec![kind, flags | 1 | data_flag, hlen as u8, pdo as u8];
    pdu.extend_from_slice(&((hlen + 4 + tail) as u32).to_le_bytes());
    pdu.extend_from_slice(rest);
    pdu.extend_from_slice(&crc32c::crc32c(&pdu).to_le_bytes());
    if !data.is_empty() {
        pdu.extend_from_slice(data);
        pdu.extend_from_slice(&digest.to_le_bytes());
    }
    pdu
}

/// Connection of an I/O queue with both digests.
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
        // By transfer, in two PDUs of which the first is damaged: the drive still takes all of it.
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

/// Sends a Store of `data` under a key of 4 bytes.
fn store(io: &mut Digested, kind: u8, key: u32, data: &[u8]) -> Command {
    let mut command = Command::new(0x01, 2).dword(2, key);
    command = command.dword(10, data.len() as u32).dword(11, 4);
    io.0.stamp(&mut command);
    command.sgl(data.len(), kind);
    command
}

#[test]
fn the_digest_of_odd_data_may_be_of_the_data_or_of_the_data_with_zeros_to_a_dword() {
    each_backend(|address| {
        let host = Host::new(address);
        let mut io = Digested::open(&host, 1);
        for bytes in [1usize, 2, 3, 4, 5, 1023, 4097, 8190] {
            let data: Vec<u8> = (0..bytes).map(|at| at as u8 | 1).collect();
            let mut padded = data.clone();
            padded.resize(bytes.next_multiple_of(4), 0);
            let longer = [&padded[..], &[0; 4]].concat();
            let (exact, zeros) = (crc32c::crc32c(&data), crc32c::crc32c(&padded));
            let wrong = [exact ^ 1, crc32c::crc32c(&longer)].map(|digest| (digest, 0x22));
            for (digest, status) in [(exact, 0), (zeros, 0)].into_iter().chain(wrong) {
                let command = store(&mut io, 0x01, bytes as u32, &data);
                send(&mut io.0, &with_digest(0x04, 0, &command.0, &data, digest));
                assert_eq!(io.status(), status, "{bytes} bytes in the capsule");
                let command = store(&mut io, 0x5A, bytes as u32, &data);
                send(&mut io.0, &digested(0x04, 0, &command.0, &[]));
                let r2t = io.0.receive();
                let mut rest = r2t.header[8..12].to_vec();
                rest.extend_from_slice(&0u32.to_le_bytes());
                rest.extend_from_slice(&(bytes as u32).to_le_bytes());
                rest.extend_from_slice(&[0; 4]);
                send(&mut io.0, &with_digest(0x06, 4, &rest, &data, digest));
                assert_eq!(io.status(), status, "{bytes} bytes by transfer");
            }
        }
    });
}

#[test]
fn a_wrong_digest_is_counted_noted_and_told_wherever_it_is() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let log = Log::new(Level::Warn, move |record| {
        let fields: Vec<_> = record.fields.iter().map(|(name, _)| *name).collect();
        sink.lock().unwrap().push((record.event, fields));
    });
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = serve(Config { log, metrics: vec![metrics], ..Config::default() });
    let mut host = Host::new(address);
    let mut io = Digested::open(&host, 1);
    let block = [7; BLOCK_BYTES];
    for _ in 0..3 {
        let command = io.write(0x01, 5);
        send(&mut io.0, &with_digest(0x04, 0, &command.0, &block, 1));
        assert_eq!(io.status(), TRANSIENT_TRANSPORT_ERROR);
    }
    let entry = host.admin.command(Command::new(0x02, u32::MAX).dword(10, 15 << 16 | 1), &[], 64);
    assert_eq!((entry.data[0], u16_at(&entry.data, 12) >> 1 & 0x7FF), (3, 0x22), "error log");
    let mut page = String::new();
    let mut stream = TcpStream::connect(metrics).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_string(&mut page).unwrap();
    let counted =
        page.lines().find(|line| line.starts_with("csd_command_errors_total{code=\"022h\""));
    assert!(counted.is_some_and(|line| line.ends_with(" 3")), "{counted:?}");
    let told = told.lock().unwrap();
    assert_eq!(told[0], ("data digest error", vec!["host", "peer"]));
}

#[test]
fn the_digest_of_a_long_read_is_that_of_all_its_data() {
    const BYTES: usize = 1 << 20;
    each_backend(|address| {
        let host = Host::new(address);
        let mut io = Digested::open(&host, 1);
        for block in [0, 200] {
            let command = io.write(0x01, block);
            let data = [block as u8 + 1; BLOCK_BYTES];
            send(&mut io.0, &digested(0x04, 0, &command.0, &data));
            assert_eq!(io.status(), 0);
        }
        let mut read = Command::new(0x02, 1).dword(12, (BYTES / BLOCK_BYTES) as u32 - 1);
        io.0.stamp(&mut read);
        read.sgl(BYTES, 0x5A);
        send(&mut io.0, &digested(0x04, 0, &read.0, &[]));
        let pdu = io.0.receive();
        assert_eq!((u32_at(&pdu.header, 16) as usize, pdu.data.len()), (BYTES, BYTES + 4));
        let (data, digest) = pdu.data.split_at(BYTES);
        assert_eq!(digest, crc32c::crc32c(data).to_le_bytes());
        assert_eq!((data[0], data[200 * BLOCK_BYTES]), (1, 201));
        assert_eq!(io.status(), 0);
    });
}
