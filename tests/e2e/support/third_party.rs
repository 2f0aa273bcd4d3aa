//! Third-party drives: NVMe/TCP from the standard's byte offsets alone, without code of ours.
//!
//! They have one namespace, and a queue or two; they support neither compute namespaces nor logs,
//! and take no data in capsules. They refuse anything else as Invalid Command Opcode or Invalid
//! Field in Command. The one here has read-only blocks and one command set; that of
//! `third_party_kv.rs` has keys and values.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

const NQN: &str = "nqn.2014-08.org.example:other";
pub(crate) const MODEL: &str = "Another Maker's SSD";
/// 512-byte blocks, 16 MiB of them.
const BLOCK_BYTES: u64 = 512;
const BLOCKS: u64 = 32 << 10;

/// Most bytes of one H2CData PDU (MAXH2CDATA), and of one R2T.
const H2C_BYTES_MAX: usize = 8 << 10;
const R2T_BYTES_MAX: usize = 12 << 10;

pub(crate) const INVALID_OPCODE: u16 = 0x001;
pub(crate) const INVALID_FIELD: u16 = 0x002;

/// Answer to a command: data, and dwords 0 and 1, or a status.
pub(crate) type Answer = Result<(Vec<u8>, u64), u16>;

/// Namespace of a drive, behind its queues.
pub(crate) trait Inside: Send + Sync + 'static {
    /// Returns the supported command sets (CAP.CSS).
    fn command_sets(&self) -> u64;

    /// Returns the data of Identify.
    fn identify(&self, cns: u8, csi: u8, nsid: u32) -> Result<Vec<u8>, u16>;

    /// Returns the length of the data to ask the host for before an I/O command is executed.
    fn wanted_bytes(&self, _sqe: &[u8]) -> Result<usize, u16> {
        Ok(0)
    }

    /// Executes an I/O command with its data.
    fn io(&self, sqe: &[u8], data: &[u8]) -> Answer;
}

/// Serves the drive of blocks; see [`serve_inside`].
pub(crate) fn serve_blocks() -> String {
    serve_inside(&Arc::new(Blocks))
}

/// Listens, and serves until the test's process ends; returns the drive's URL.
pub(crate) fn serve_inside<I: Inside>(inside: &Arc<I>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let inside = Arc::clone(inside);
    std::thread::spawn(move || {
        for host in listener.incoming().map_while(Result::ok) {
            let inside = Arc::clone(&inside);
            let coming = BTreeMap::new();
            let queue = Queue { host, inside, qid: 0, head: 0, status: 1, coming };
            std::thread::spawn(|| queue.serve());
        }
    });
    format!("nvme+tcp://{address}/{NQN}")
}

/// Connection, and the queue on it.
struct Queue<I> {
    host: TcpStream,
    inside: Arc<I>,
    qid: u16,
    head: u16,
    /// Controller Status (CSTS): ready, and shutdown complete.
    status: u64,
    /// Commands whose data is coming, by identifier.
    coming: BTreeMap<u16, Coming>,
}

/// Command whose data is coming.
struct Coming {
    sqe: Vec<u8>,
    /// Length of all data, and the end of the part that was asked for.
    bytes: usize,
    asked: usize,
    data: Vec<u8>,
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn dword(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn size(bytes: &[u8], at: usize) -> usize {
    usize::try_from(dword(bytes, at)).unwrap()
}

/// Returns the tag of a command's R2Ts.
fn tag(cid: u16) -> u16 {
    cid ^ 0x5AA5
}

impl<I: Inside> Queue<I> {
    fn serve(mut self) -> io::Result<()> {
        self.host.set_nodelay(true)?;
        loop {
            let mut pdu = vec![0; 8];
            self.host.read_exact(&mut pdu)?;
            pdu.resize(size(&pdu, 4).max(8), 0);
            self.host.read_exact(&mut pdu[8..])?;
            match pdu[0] {
                0x00 => {
                    let mut response = [0; 128]; // ICResp, no digests
                    (response[0], response[2], response[4]) = (0x01, 128, 128);
                    let most = u32::try_from(H2C_BYTES_MAX).unwrap();
                    response[12..16].copy_from_slice(&most.to_le_bytes());
                    self.host.write_all(&response)?;
                }
                0x04 => self.command(&pdu[8..72])?,
                0x06 => self.data_of_host(&pdu)?,
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
            (_, 0) => self.admin(sqe),
            _ => match self.inside.wanted_bytes(sqe) {
                Ok(0) => self.inside.io(sqe, &[]),
                Ok(bytes) => {
                    let (cid, data) = (half(sqe, 2), Vec::new());
                    self.coming.insert(cid, Coming { sqe: sqe.to_vec(), bytes, asked: 0, data });
                    return self.ask(cid);
                }
                Err(status) => Err(status),
            },
        };
        self.answer(&sqe[2..4], answer)
    }

    /// Asks for the next part of a command's data by R2T.
    fn ask(&mut self, cid: u16) -> io::Result<()> {
        let coming = self.coming.get_mut(&cid).unwrap();
        let offset = coming.asked;
        let length = R2T_BYTES_MAX.min(coming.bytes - offset);
        coming.asked += length;
        let mut r2t = vec![0x09, 0, 24, 0, 24, 0, 0, 0];
        r2t.extend_from_slice(&cid.to_le_bytes());
        r2t.extend_from_slice(&tag(cid).to_le_bytes());
        for dword in [offset, length, 0] {
            r2t.extend_from_slice(&u32::try_from(dword).unwrap().to_le_bytes());
        }
        self.host.write_all(&r2t)
    }

    /// Receives H2CData, which must be the next part of what was asked for; executes the command
    /// once all its data is there.
    fn data_of_host(&mut self, pdu: &[u8]) -> io::Result<()> {
        let (cid, part) = (half(pdu, 8), &pdu[usize::from(pdu[3])..]);
        let Some(coming) = self.coming.get_mut(&cid) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (start, end) = (coming.data.len(), coming.data.len() + part.len());
        let is_last = pdu[1] & 0x04 != 0;
        let is_right = half(pdu, 10) == tag(cid)
            && (size(pdu, 12), size(pdu, 16)) == (start, part.len())
            && part.len() <= H2C_BYTES_MAX
            && end <= coming.asked
            && is_last == (end == coming.asked);
        if !is_right {
            return Err(io::ErrorKind::InvalidData.into());
        }
        coming.data.extend_from_slice(part);
        match (end == coming.asked, end == coming.bytes) {
            (false, _) => Ok(()),
            (true, false) => self.ask(cid),
            (true, true) => {
                let Coming { sqe, data, .. } = self.coming.remove(&cid).unwrap();
                let answer = self.inside.io(&sqe, &data);
                self.answer(&sqe[2..4], answer)
            }
        }
    }

    fn answer(&mut self, cid: &[u8], answer: Answer) -> io::Result<()> {
        self.head = (self.head + 1) % 16;
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
        // 16 entries.
        const CAP: u64 = 15 | 1 << 16 | 20 << 24;
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
                0x00 => Ok((Vec::new(), CAP | self.inside.command_sets() << 37)),
                0x1C => Ok((Vec::new(), self.status)),
                _ => Err(INVALID_FIELD),
            },
            _ => Err(INVALID_FIELD),
        }
    }

    fn admin(&self, sqe: &[u8]) -> Answer {
        match sqe[0] {
            0x06 => {
                let data = self.inside.identify(sqe[40], sqe[47], dword(sqe, 4))?;
                Ok((data, 0))
            }
            // Number of Queues: two, as a 0's based value.
            0x09 if sqe[40] == 0x07 => Ok((Vec::new(), 0x0001_0001)),
            0x18 => Ok((Vec::new(), 0)),
            _ => Err(INVALID_OPCODE),
        }
    }
}

/// Returns the data of Identify Controller. Transfers are of 2^`mdts` pages of 4 KiB.
pub(crate) fn controller(mdts: u8) -> Vec<u8> {
    let mut data = vec![0; 4096];
    data[24..64].copy_from_slice(format!("{MODEL:<40}").as_bytes());
    data[77] = mdts;
    data[78] = 1; // CNTLID
    data[516] = 1; // NN
    data[1792] = 4; // IOCCSZ: no data in capsules
    data[1796] = 1; // IORCSZ
    data
}

/// Read-only blocks.
struct Blocks;

impl Inside for Blocks {
    /// Announces the NVM command set only.
    fn command_sets(&self) -> u64 {
        1
    }

    fn identify(&self, cns: u8, _csi: u8, nsid: u32) -> Result<Vec<u8>, u16> {
        let mut data = vec![0; 4096];
        match (cns, nsid) {
            (0x01, _) => return Ok(controller(5)),
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

    fn io(&self, sqe: &[u8], _data: &[u8]) -> Answer {
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
}
