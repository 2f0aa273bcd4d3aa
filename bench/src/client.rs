//! The client of drive and floor: sends prepared capsules and receives answers of fixed size,
//! without sleeping.
//!
//! Checks the type, identifier and status of every answer, but not its data: the end-to-end tests
//! do. Invariant: a target that may not be written gets no command that writes.

mod together;

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use csd_nvme::capsule::{FLAGS_SGL, Sgl};
use csd_nvme::nvm::{self, Extent};
use csd_nvme::pdu::{Kind, R2t};
use csd_nvme::tcp::Digests;
use csd_nvme::tcp::host::Connection;

use crate::Error;
use crate::frame::Stop;
use crate::wire::{self, ANSWER_WITHIN, Controller, Target, broken, lost, silent};
use crate::workload::{BLOCK_BYTES, Workload};
pub use together::{Timed, run_together, times_next_to};

/// Most slices of one send.
const SLICES: usize = 64;
/// Turns between two looks at the clock.
const TURNS: u32 = 64;

/// The server of a run.
#[derive(Clone, Debug)]
pub enum Server {
    /// The bare server at this address, [`crate::floor`].
    Floor(SocketAddr),
    /// A drive.
    Drive(Target),
}

/// Writes every block of a drive once, so that no read hits a hole.
///
/// # Errors
/// Those of [`Client::connect`] and [`Client::run_count`].
pub fn fill(target: &Target, blocks: u64, stop: &Stop) -> Result<(), Error> {
    let workload = Workload {
        name: "fill",
        read: false,
        bytes: BLOCK_BYTES,
        depth: 64,
        in_order: true,
        blocks,
    };
    Client::connect(&Server::Drive(target.clone()), workload, stop)?.run_count(blocks).map(drop)
}

/// A connected client.
pub struct Client {
    stream: TcpStream,
    address: SocketAddr,
    /// Longest wait for an answer.
    within: Duration,
    stop: Stop,
    workload: Workload,
    wire: Connection,
    offsets: Box<dyn Iterator<Item = u64>>,
    nsid: u32,
    block_bytes: u32,
    in_capsule: bool,
    // Requested transfers (R2T): identifier, tag, offset, length.
    asked: Vec<(u16, u16, u32, u32)>,
    // Bytes received and not yet parsed.
    input: Vec<u8>,
    filled: usize,
    idle: Vec<u16>,
    data: Vec<u8>,
    left: usize,
    // The admin connection keeps the controller alive.
    _controller: Option<Controller>,
}

impl Client {
    /// Connects to a running server, for this workload.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses a step, or may not be written by a workload that
    /// writes.
    pub fn connect(server: &Server, workload: Workload, stop: &Stop) -> Result<Self, Error> {
        stop.check()?;
        let (controller, stream, wire, target) = match server {
            Server::Floor(address) => {
                let stream = open_floor(*address, workload)?;
                let wire = Connection::new(Digests::default()).0;
                // It takes the data of any command right behind it.
                let target = Target { in_capsule_bytes: u32::MAX, ..Target::started(*address) };
                (None, stream, wire, target)
            }
            Server::Drive(target) => {
                if !workload.read && !target.may_write {
                    let what = "this would overwrite data of";
                    return Err(Error::Usage(format!("{what} {}", target.address)));
                }
                let controller = Controller::connect(target)?;
                let queue = controller.io_queue(target)?;
                (Some(controller), queue.stream, queue.wire, target.clone())
            }
        };
        stream.set_nonblocking(true).map_err(Error::system("a socket"))?;
        Ok(Self {
            stream,
            address: target.address,
            within: target.answer_within,
            stop: stop.clone(),
            workload,
            wire,
            offsets: Box::new(workload.offsets()),
            nsid: target.nsid,
            block_bytes: target.block_bytes,
            in_capsule: !workload.read && workload.length() <= target.in_capsule_bytes,
            asked: Vec::new(),
            input: vec![0; 512 << 10],
            filled: 0,
            idle: (0..workload.depth).collect(),
            data: vec![0xA5; workload.bytes],
            left: 0,
            _controller: controller,
        })
    }

    /// Limits the bytes that are received at once.
    #[must_use]
    pub fn taking_at_most(mut self, bytes: usize) -> Self {
        self.input.truncate(bytes);
        self
    }

    /// Keeps the workload's number of operations in flight for this long. Returns the operations
    /// completed and the time they took.
    ///
    /// # Errors
    /// If the server fails a command, closes or stands still; [`Error::Interrupted`].
    pub fn run(&mut self, length: Duration) -> Result<(u64, Duration), Error> {
        let mut watch = Watch::start();
        let mut operations = 0;
        loop {
            self.send()?;
            operations += self.receive()?;
            if let Some(elapsed) = watch.turn(operations, self)?
                && elapsed >= length
            {
                return Ok((operations, elapsed));
            }
        }
    }

    /// Completes this many operations and returns the time they took.
    ///
    /// # Errors
    /// Those of [`Self::run`].
    pub fn run_count(&mut self, count: u64) -> Result<Duration, Error> {
        let mut watch = Watch::start();
        let mut ended = 0;
        while ended < count {
            if ended + self.in_flight() < count {
                self.send()?;
            }
            ended += self.receive()?;
            watch.turn(ended, self)?;
        }
        Ok(watch.start.elapsed())
    }

    fn lost(&self, error: io::Error) -> Error {
        lost(self.address, self.within, error)
    }

    fn in_flight(&self) -> u64 {
        u64::from(self.workload.depth) - self.idle.len() as u64
    }

    fn send(&mut self) -> Result<(), Error> {
        while !self.idle.is_empty() {
            let count = self.idle.len().min(SLICES / 2);
            let cids = self.idle.split_off(self.idle.len() - count);
            let capsules: Vec<Vec<u8>> = cids.iter().rev().map(|cid| self.capsule(*cid)).collect();
            let mut slices = Vec::with_capacity(SLICES);
            for capsule in &capsules {
                slices.push(IoSlice::new(capsule));
                if self.in_capsule {
                    slices.push(IoSlice::new(&self.data));
                }
            }
            write_all(&mut self.stream, (self.address, self.within), &self.stop, &mut slices)?;
        }
        Ok(())
    }

    fn capsule(&mut self, cid: u16) -> Vec<u8> {
        let bytes = self.workload.length();
        let offset = self.offsets.next().unwrap_or(0);
        let slba = offset / u64::from(self.block_bytes);
        // Floors take values of any length; they look at the command's length alone.
        let extent = Extent { slba, blocks: (bytes / self.block_bytes).max(1) };
        let mut sqe = match self.workload.read {
            true => nvm::read(self.nsid, extent),
            false => nvm::write(self.nsid, extent, false),
        };
        sqe.set_sgl(if self.in_capsule { Sgl::in_capsule(bytes) } else { Sgl::transport(bytes) });
        sqe.set_cid(cid).set_flags(FLAGS_SGL);
        self.wire.capsule(&sqe, if self.in_capsule { bytes } else { 0 }).to_vec()
    }

    /// Sends the data that the drive has requested.
    fn transfer(&mut self) -> Result<(), Error> {
        for (cid, ttag, offset, length) in std::mem::take(&mut self.asked) {
            let prefix = self.wire.data_prefix(cid, ttag, offset, length, true);
            let end = offset as usize + length as usize;
            let data = self.data.get(offset as usize..end);
            let data =
                data.ok_or_else(|| broken(self.address, "it asks for data beyond the end"))?;
            let mut slices = [IoSlice::new(&prefix), IoSlice::new(data)];
            write_all(&mut self.stream, (self.address, self.within), &self.stop, &mut slices)?;
        }
        Ok(())
    }

    /// Receives once and returns the number of operations that completed.
    fn receive(&mut self) -> Result<u64, Error> {
        let received = match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => return Err(self.lost(ErrorKind::UnexpectedEof.into())),
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(0);
            }
            Err(error) => return Err(self.lost(error)),
        };
        self.filled += received;
        let mut at = 0;
        let mut ended = 0;
        loop {
            let skip = self.left.min(self.filled - at);
            at += skip;
            self.left -= skip;
            if self.left > 0 || self.filled - at < 24 {
                break;
            }
            let header = &self.input[at..at + 24];
            let length = wire::dword(header, 4) as usize;
            wire::check(self.address, header)?;
            let cid = match Kind(header[0]) {
                Kind::C2H_DATA => Some(u16::from_le_bytes([header[8], header[9]])),
                Kind::CAPSULE_RESP => Some(u16::from_le_bytes([header[20], header[21]])),
                Kind::R2T => {
                    let r2t = R2t::parse(header);
                    let r2t = r2t.map(|r2t| (r2t.cccid(), r2t.ttag(), r2t.r2to(), r2t.r2tl()));
                    self.asked.extend(r2t);
                    None
                }
                _ => return Err(broken(self.address, "its PDU has an unknown type")),
            };
            if length < 24 {
                return Err(broken(self.address, "its PDU is shorter than its header"));
            }
            // With SUCCESS (flag bit 3) data completes its command; a response always does.
            let ends = header[0] == Kind::CAPSULE_RESP.0 || header[1] & 8 != 0;
            if let Some(cid) = cid.filter(|_| ends) {
                if self.idle.len() >= usize::from(self.workload.depth) {
                    return Err(broken(self.address, "it answers a command that it did not get"));
                }
                self.idle.push(cid);
                ended += 1;
            }
            self.left = length;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        self.transfer()?;
        Ok(ended)
    }
}

/// Time and progress of a run.
struct Watch {
    start: Instant,
    turns: u32,
    // Operations that had ended at the last look, and the time of the last one that ended.
    last: (u64, Duration),
}

impl Watch {
    fn start() -> Self {
        Self { start: Instant::now(), turns: 0, last: (0, Duration::ZERO) }
    }

    /// Counts a turn. Every so many turns it returns the time since the start, after it has looked
    /// for an interruption and for a server that stands still.
    fn turn(&mut self, ended: u64, client: &Client) -> Result<Option<Duration>, Error> {
        self.turns = self.turns.wrapping_add(1);
        if !self.turns.is_multiple_of(TURNS) {
            return Ok(None);
        }
        client.stop.check()?;
        let elapsed = self.start.elapsed();
        if ended != self.last.0 {
            self.last = (ended, elapsed);
        } else if elapsed.saturating_sub(self.last.1) > client.within {
            return Err(silent(client.address, client.within));
        }
        Ok(Some(elapsed))
    }
}

/// Connects to the floor, which needs only the sizes of commands and answers.
fn open_floor(address: SocketAddr, workload: Workload) -> Result<TcpStream, Error> {
    let mut stream = wire::open(address, ANSWER_WITHIN)?;
    let (command, answer) = workload.sizes();
    let mut sizes = [0; 8];
    sizes[..4].copy_from_slice(&command.to_le_bytes());
    sizes[4..].copy_from_slice(&answer.to_le_bytes());
    stream.write_all(&sizes).map_err(|error| lost(address, ANSWER_WITHIN, error))?;
    Ok(stream)
}

fn write_all(
    stream: &mut TcpStream,
    (address, within): (SocketAddr, Duration),
    stop: &Stop,
    mut slices: &mut [IoSlice<'_>],
) -> Result<(), Error> {
    let (mut full, mut turns) = (None, 0u32);
    while !slices.is_empty() {
        match stream.write_vectored(slices) {
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                turns = turns.wrapping_add(1);
                if turns.is_multiple_of(TURNS) {
                    stop.check()?;
                    if full.get_or_insert_with(Instant::now).elapsed() > within {
                        return Err(silent(address, within));
                    }
                }
                std::hint::spin_loop();
            }
            Err(error) => return Err(lost(address, within, error)),
        }
    }
    Ok(())
}
