//! A host in raw bytes, written from the specification alone: byte offsets by hand, without this
//! project's code.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Maximum wait for a peer's bytes. It only ends tests that hang.
const PATIENCE: Duration = Duration::from_secs(600);

/// One TCP connection that speaks NVMe/TCP.
pub struct Wire {
    /// The connection.
    pub stream: TcpStream,
    next_cid: u16,
}

/// A received PDU.
pub struct Pdu {
    /// Header, unchanged.
    pub header: Vec<u8>,
    /// Data.
    pub data: Vec<u8>,
}

/// Result of a command.
#[derive(Debug)]
pub struct Reply {
    /// Status Code Type in bits 10:8, Status Code in bits 7:0.
    pub status: u16,
    /// Dwords 0 and 1.
    pub result: u64,
    /// Data of C2HData PDUs, in order.
    pub data: Vec<u8>,
}

/// A 64-byte submission queue entry.
pub struct Command(pub [u8; 64]);

impl Command {
    /// Returns a command with an SGL and no data.
    #[must_use]
    pub fn new(opcode: u8, nsid: u32) -> Self {
        let mut bytes = [0; 64];
        bytes[0] = opcode;
        bytes[1] = 0x40; // PSDT 01b: SGL
        bytes[4..8].copy_from_slice(&nsid.to_le_bytes());
        Self(bytes)
    }

    /// Sets a command dword.
    #[must_use]
    pub fn dword(mut self, number: usize, value: u32) -> Self {
        self.0[number * 4..number * 4 + 4].copy_from_slice(&value.to_le_bytes());
        self
    }

    /// Sets one byte.
    #[must_use]
    pub fn byte(mut self, offset: usize, value: u8) -> Self {
        self.0[offset] = value;
        self
    }

    /// Sets the SGL: length at 32, type at 39 (byte 15 of the descriptor at 24).
    pub fn sgl(&mut self, length: usize, kind: u8) {
        self.0[24..40].fill(0);
        self.0[32..36].copy_from_slice(&(length as u32).to_le_bytes());
        self.0[39] = kind;
    }
}

impl Wire {
    /// Connects to a drive, without any exchange.
    #[must_use]
    pub fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the drive listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, next_cid: 0 }
    }

    /// Sends ICReq and checks ICResp.
    pub fn initialise(&mut self) {
        let mut request = [0u8; 128];
        request[0] = 0x00;
        request[2] = 128;
        request[4] = 128;
        self.stream.write_all(&request).unwrap();
        let response = self.receive();
        assert_eq!((response.header[0], response.header.len()), (0x01, 128));
        let h2c = u32::from_le_bytes(response.header[12..16].try_into().unwrap());
        assert!(h2c >= 4096, "MAXH2CDATA {h2c}");
        assert_eq!(response.header[11], 0, "no digests were asked for");
    }

    /// Receives the next PDU.
    pub fn receive(&mut self) -> Pdu {
        let mut common = [0; 8];
        self.stream.read_exact(&mut common).expect("a PDU");
        let (hlen, pdo) = (usize::from(common[2]), usize::from(common[3]));
        let plen = u32::from_le_bytes(common[4..8].try_into().unwrap()) as usize;
        let mut rest = vec![0; plen - 8];
        self.stream.read_exact(&mut rest).expect("the whole PDU");
        let mut header = common.to_vec();
        header.extend_from_slice(&rest[..hlen - 8]);
        let data = if pdo > 0 { rest[pdo - 8..].to_vec() } else { Vec::new() };
        Pdu { header, data }
    }

    /// Sends a capsule with its data inside.
    pub fn send_capsule(&mut self, command: &Command, data: &[u8]) {
        self.stream.write_all(&Self::capsule(command, data)).unwrap();
    }

    /// Returns the bytes of a capsule with its data inside.
    #[must_use]
    pub fn capsule(command: &Command, data: &[u8]) -> Vec<u8> {
        let mut pdu = vec![0x04, 0, 72, if data.is_empty() { 0 } else { 72 }];
        pdu.extend_from_slice(&((72 + data.len()) as u32).to_le_bytes());
        pdu.extend_from_slice(&command.0);
        pdu.extend_from_slice(data);
        pdu
    }

    /// Returns the command identifier and the bytes of a capsule for a command with `length` bytes
    /// by transfer.
    pub fn capsule_bytes(&mut self, mut command: Command, length: usize) -> (u16, Vec<u8>) {
        let cid = self.stamp(&mut command);
        command.sgl(length, 0x5A);
        let mut pdu = vec![0x04, 0, 72, 0, 72, 0, 0, 0];
        pdu.extend_from_slice(&command.0);
        (cid, pdu)
    }

    /// Sends a capsule, with data inside or none, and does not wait for the answer; returns the
    /// command identifier.
    pub fn post(&mut self, mut command: Command, data: &[u8]) -> u16 {
        let cid = self.stamp(&mut command);
        command.sgl(data.len(), if data.is_empty() { 0x5A } else { 0x01 });
        self.send_capsule(&command, data);
        cid
    }

    /// Receives the next response capsule: identifier, status, result dword 0.
    pub fn response(&mut self) -> (u16, u16, u32) {
        let header = self.receive().header;
        assert_eq!(header[0], 0x05, "a response capsule");
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let dword = u32::from_le_bytes(header[8..12].try_into().unwrap());
        (half(20), (half(22) >> 1) & 0x7FF, dword)
    }

    /// Gives a command the next identifier, and returns it.
    pub fn stamp(&mut self, command: &mut Command) -> u16 {
        let cid = self.next_cid;
        self.next_cid = self.next_cid.wrapping_add(1);
        command.0[2..4].copy_from_slice(&cid.to_le_bytes());
        cid
    }

    /// Executes a command with in-capsule data (SGL type 01h).
    pub fn command_in_capsule(&mut self, mut command: Command, data: &[u8]) -> Reply {
        let cid = self.stamp(&mut command);
        command.sgl(data.len(), 0x01);
        self.send_capsule(&command, data);
        self.answer(cid, &[])
    }

    /// Executes a command with a transport data block (SGL type 5Ah): sends `send` on request, or
    /// receives up to `receive` bytes.
    pub fn command(&mut self, mut command: Command, send: &[u8], receive: usize) -> Reply {
        let cid = self.stamp(&mut command);
        command.sgl(send.len().max(receive), 0x5A);
        self.send_capsule(&command, &[]);
        self.answer(cid, send)
    }

    fn answer(&mut self, cid: u16, send: &[u8]) -> Reply {
        let mut data = Vec::new();
        loop {
            let pdu = self.receive();
            let field = |offset: usize| {
                u32::from_le_bytes(pdu.header[offset..offset + 4].try_into().unwrap())
            };
            let id = |offset: usize| {
                u16::from_le_bytes(pdu.header[offset..offset + 2].try_into().unwrap())
            };
            match pdu.header[0] {
                0x05 => {
                    assert_eq!(id(20), cid, "answer to another command");
                    let status = (id(22) >> 1) & 0x7FF;
                    let result = u64::from(field(8)) | u64::from(field(12)) << 32;
                    return Reply { status, result, data };
                }
                0x07 => {
                    assert_eq!(id(8), cid);
                    // SPDK 26.05 takes no second PDU for a buffer in several parts.
                    assert!(data.is_empty() && pdu.header[1] & 0x04 != 0, "one PDU has all data");
                    assert_eq!(field(12), 0, "DATAO");
                    assert_eq!(field(16) as usize, pdu.data.len(), "DATAL");
                    data.extend_from_slice(&pdu.data);
                    if pdu.header[1] & 0x08 != 0 {
                        assert!(pdu.header[1] & 0x04 != 0, "SUCCESS only with LAST_PDU");
                        return Reply { status: 0, result: 0, data };
                    }
                }
                0x09 => {
                    assert_eq!(id(8), cid);
                    self.send_data(cid, id(10), field(12), field(16), send);
                }
                other => panic!("unexpected PDU type {other:#x}: {:02x?}", pdu.header),
            }
        }
    }

    fn send_data(&mut self, cid: u16, ttag: u16, offset: u32, length: u32, send: &[u8]) {
        let all = &send[offset as usize..(offset + length) as usize];
        let mut at = offset;
        for chunk in all.chunks(64 << 10) {
            let last = at + chunk.len() as u32 == offset + length;
            self.stream.write_all(&data_pdu(cid, ttag, at, chunk, last)).unwrap();
            at += chunk.len() as u32;
        }
    }

    /// Connects a queue of 32 entries, with or without flow control.
    pub fn connect(&mut self, nqn: &str, qid: u16, cntlid: u16, flow_control: bool) -> Reply {
        self.connect_sized(nqn, qid, cntlid, 32, flow_control)
    }

    /// Connects a queue of `entries` entries.
    pub fn connect_sized(
        &mut self,
        nqn: &str,
        qid: u16,
        cntlid: u16,
        entries: u16,
        flow_control: bool,
    ) -> Reply {
        let (command, data) = connect_command(nqn, qid, cntlid, entries, flow_control);
        self.command_in_capsule(command, &data)
    }

    /// Reads a property of 4 or 8 bytes.
    pub fn property(&mut self, offset: u32, wide: bool) -> u64 {
        let command = Command::new(0x7F, 0).byte(4, 0x04).byte(40, u8::from(wide));
        let reply = self.command(command.dword(11, offset), &[], 0);
        assert_eq!(reply.status, 0);
        reply.result
    }

    /// Connects the admin queue and enables the controller; returns its id.
    pub fn admin(&mut self, nqn: &str) -> u16 {
        self.initialise();
        let reply = self.connect(nqn, 0, 0xFFFF, true);
        assert_eq!(reply.status, 0, "{reply:?}");
        // CC: IOCQES 4, IOSQES 6, CSS 110b, EN 1.
        let enable = Command::new(0x7F, 0).byte(4, 0x00).dword(11, 0x14);
        let reply2 = self.command(enable.dword(12, 4 << 20 | 6 << 16 | 6 << 4 | 1), &[], 0);
        assert_eq!(reply2.status, 0);
        assert_eq!(self.property(0x1C, false) & 1, 1, "CSTS.RDY");
        (reply.result & 0xFFFF) as u16
    }
}

/// Returns a Connect command with a keep-alive timeout of 30 s, and its data.
#[must_use]
pub fn connect_command(
    nqn: &str,
    qid: u16,
    cntlid: u16,
    entries: u16,
    flow_control: bool,
) -> (Command, [u8; 1024]) {
    let mut command = Command::new(0x7F, 0).byte(4, 0x01);
    command.0[42..44].copy_from_slice(&qid.to_le_bytes());
    command.0[44..46].copy_from_slice(&(entries - 1).to_le_bytes());
    command.0[46] = if flow_control { 0 } else { 0x04 };
    command.0[48..52].copy_from_slice(&30_000u32.to_le_bytes());
    let mut data = [0u8; 1024];
    data[..16].copy_from_slice(&[0x42; 16]);
    data[16..18].copy_from_slice(&cntlid.to_le_bytes());
    data[256..256 + nqn.len()].copy_from_slice(nqn.as_bytes());
    let host = b"nqn.2014-08.org.nvmexpress:uuid:stock-client";
    data[512..512 + host.len()].copy_from_slice(host);
    (command, data)
}

/// Returns the bytes of an H2CData PDU.
#[must_use]
pub fn data_pdu(cid: u16, ttag: u16, offset: u32, data: &[u8], last: bool) -> Vec<u8> {
    let mut pdu = vec![0x06, if last { 0x04 } else { 0 }, 24, 24];
    pdu.extend_from_slice(&((24 + data.len()) as u32).to_le_bytes());
    pdu.extend_from_slice(&cid.to_le_bytes());
    pdu.extend_from_slice(&ttag.to_le_bytes());
    pdu.extend_from_slice(&offset.to_le_bytes());
    pdu.extend_from_slice(&(data.len() as u32).to_le_bytes());
    pdu.extend_from_slice(&[0; 4]);
    pdu.extend_from_slice(data);
    pdu
}
