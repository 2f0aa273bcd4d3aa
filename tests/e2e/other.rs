//! Drive of another maker: NVMe/TCP from the standard's byte offsets alone, without code of ours.
//!
//! It has one read-only block namespace, one command set, and a queue or two; it supports neither
//! key-value nor compute namespaces, nor logs. It refuses anything else as Invalid Command Opcode
//! or Invalid Field in Command.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

pub(crate) const NQN: &str = "nqn.2014-08.org.example:other";
pub(crate) const MODEL: &str = "Another Maker's SSD";
/// 512-byte blocks, 16 MiB of them.
const BLOCK_BYTES: u64 = 512;
const BLOCKS: u64 = 32 << 10;

const INVALID_OPCODE: u16 = 0x001;
const INVALID_FIELD: u16 = 0x002;

/// Listens, and serves until the test's process ends; returns the drive's URL.
pub(crate) fn serve() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for host in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || Queue { host, qid: 0, head: 0, status: 1 }.serve());
        }
    });
    format!("nvme+tcp://{address}/{NQN}")
}

/// Connection, and the queue on it.
struct Queue {
    host: TcpStream,
    qid: u16,
    head: u16,
    /// Controller Status (CSTS): ready, and shutdown complete.
    status: u64,
}

/// Answer to a command: data, and dwords 0 and 1, or a status.
type Answer = Result<(Vec<u8>, u64), u16>;

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn dword(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

impl Queue {
    fn serve(mut self) -> io::Result<()> {
        self.host.set_nodelay(true)?;
        loop {
            let mut pdu = vec![0; 8];
            self.host.read_exact(&mut pdu)?;
            let length = usize::try_from(dword(&pdu, 4)).unwrap().max(8);
            pdu.resize(length, 0);
            self.host.read_exact(&mut pdu[8..])?;
            match pdu[0] {
                0x00 => {
                    let mut response = [0; 128]; // ICResp, no digests
                    (response[0], response[2], response[4]) = (0x01, 128, 128);
                    response[12..16].copy_from_slice(&(128u32 << 10).to_le_bytes());
                    self.host.write_all(&response)?;
                }
                0x04 => self.command(&pdu[8..72])?,
                _ => return Ok(()),
            }
        }
    }

    fn command(&mut self, sqe: &[u8]) -> io::Result<()> {
        const ASYNC_EVENT_REQUEST: u8 = 0x0C;
        let answer = match (sqe[0], self.qid) {
            (0x7F, _) => self.fabrics(sqe),
            // This drive has no events to report.
            (ASYNC_EVENT_REQUEST, 0) => return Ok(()),
            (_, 0) => admin(sqe),
            _ => io(sqe),
        };
        self.head = (self.head + 1) % 16;
        let cid = &sqe[2..4];
        let (result, status) = match answer {
            Ok((data, result)) => {
                self.data(cid, &data)?;
                (result, 0)
            }
            Err(status) => (0, status),
        };
        let mut capsule = vec![0x05, 0, 24, 0, 24, 0, 0, 0];
        capsule.extend_from_slice(&result.to_le_bytes());
        capsule.extend_from_slice(&self.head.to_le_bytes());
        capsule.extend_from_slice(&self.qid.to_le_bytes());
        capsule.extend_from_slice(cid);
        capsule.extend_from_slice(&(status << 1).to_le_bytes());
        self.host.write_all(&capsule)
    }

    /// Sends C2HData in pieces.
    fn data(&mut self, cid: &[u8], data: &[u8]) -> io::Result<()> {
        const PIECE: usize = 32 << 10;
        for (index, piece) in data.chunks(PIECE).enumerate() {
            let last = (index + 1) * PIECE >= data.len();
            let dwords = [24 + piece.len(), 0, index * PIECE, piece.len(), 0];
            let mut header = vec![0x07, if last { 0x04 } else { 0 }, 24, 24];
            for dword in dwords {
                header.extend_from_slice(&u32::try_from(dword).unwrap().to_le_bytes());
            }
            header[8..10].copy_from_slice(cid);
            self.host.write_all(&[&header[..], piece].concat())?;
        }
        Ok(())
    }

    fn fabrics(&mut self, sqe: &[u8]) -> Answer {
        // 16 entries, NVM command set only.
        const CAP: u64 = 15 | 1 << 16 | 20 << 24 | 1 << 37;
        match sqe[4] {
            0x01 => {
                self.qid = half(sqe, 42);
                Ok((Vec::new(), 1))
            }
            0x00 => {
                // Shutdown Notification (SHN) of Controller Configuration: done at once.
                if dword(sqe, 44) == 0x14 && dword(sqe, 48) & 0xC000 != 0 {
                    self.status = 0b1001;
                }
                Ok((Vec::new(), 0))
            }
            0x04 => match dword(sqe, 44) {
                0x00 => Ok((Vec::new(), CAP)),
                0x1C => Ok((Vec::new(), self.status)),
                _ => Err(INVALID_FIELD),
            },
            _ => Err(INVALID_FIELD),
        }
    }
}

fn admin(sqe: &[u8]) -> Answer {
    match sqe[0] {
        0x06 => identify(sqe[40], dword(sqe, 4)).map(|data| (data, 0)),
        // Number of Queues: two, as a 0's based value.
        0x09 if sqe[40] == 0x07 => Ok((Vec::new(), 0x0001_0001)),
        0x18 => Ok((Vec::new(), 0)),
        _ => Err(INVALID_OPCODE),
    }
}

fn identify(cns: u8, nsid: u32) -> Result<Vec<u8>, u16> {
    let mut data = vec![0; 4096];
    match (cns, nsid) {
        (0x01, _) => {
            data[24..64].copy_from_slice(format!("{MODEL:<40}").as_bytes());
            data[77] = 5; // MDTS: 128 KiB
            data[78] = 1; // CNTLID
            data[516] = 1; // NN
            data[1792] = 4; // IOCCSZ: no data in capsules
            data[1796] = 1; // IORCSZ
        }
        (0x02, 0) => data[0] = 1,
        // One EUI-64, and no command set identifier: such drives have one set.
        (0x03, 1) => data[..5].copy_from_slice(&[1, 8, 0, 0, 0xAA]),
        (0x00, 1) => {
            data[..8].copy_from_slice(&BLOCKS.to_le_bytes());
            data[8..16].copy_from_slice(&BLOCKS.to_le_bytes());
            data[130] = 9; // LBADS
        }
        (0x02, _) => {}
        _ => return Err(INVALID_FIELD),
    }
    Ok(data)
}

fn io(sqe: &[u8]) -> Answer {
    let (slba, blocks) = (u64::from(dword(sqe, 40)), u64::from(half(sqe, 48)) + 1);
    match sqe[0] {
        0x02 if dword(sqe, 4) == 1 && slba + blocks <= BLOCKS => {
            let bytes = slba * BLOCK_BYTES..(slba + blocks) * BLOCK_BYTES;
            Ok((bytes.map(|at| (at % 253).to_le_bytes()[0]).collect(), 0))
        }
        0x02 => Err(INVALID_FIELD),
        0x00 => Ok((Vec::new(), 0)),
        _ => Err(INVALID_OPCODE),
    }
}
