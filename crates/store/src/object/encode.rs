//! Encoding on the host: [`Encoder`] computes the parity of consecutive chunks while they are read,
//! [`stored`] that of chunks which lie on their drives, unless drives do so ([`super::in_drives`]).
//!
//! Writes no entry. Invariants: an encoder holds the parity of one stripe at most; [`stored`] holds
//! [`AHEAD_BYTES`] of stripes, or one stripe.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use csd_kernels::erasure::Code;
use csd_reactor::{Buffer, Class, JoinHandle, compute_fn, spawn};

use super::chunk::read_chunk;
use super::encoding::{Encoded, Encoding, Number, Origin, Piece};
use super::flow::Flow;
use super::in_drives::InDrives;
use super::new_page_lists::{self, UnlistedPieces};
use super::pages::Lists;
use super::{Error, check_owner};
use crate::array::{Array, DriveIndex};
use crate::catalogue::Entry;
use crate::layout;
use crate::link::{Link, Persistence};

/// Bytes of stripes that are encoded at once, unless one stripe is longer.
const AHEAD_BYTES: usize = 64 << 20;

/// Computes parity, chunk by chunk.
pub(super) struct Encoder {
    code: Code,
    /// Chunks of a stripe.
    width: usize,
    chunk_bytes: usize,
    /// Chunks of the current stripe so far, and the length of the longest, bytes.
    column: usize,
    longest: usize,
    /// Parity of the current stripe so far; empty before its first chunk.
    rooms: Vec<Buffer>,
}

impl Encoder {
    /// Returns the encoder of a protected object if its stripes `are_consecutive` chunks.
    pub(super) fn of(entry: &Entry, are_consecutive: bool) -> Option<Self> {
        let protection = entry.protection.as_ref().filter(|_| are_consecutive)?;
        Some(Self {
            code: protection.scheme.code(),
            width: layout::width(protection.scheme, entry.members.len()),
            chunk_bytes: entry.chunk_bytes as usize,
            column: 0,
            longest: 0,
            rooms: Vec::new(),
        })
    }

    /// Takes memory for the next stripe, on the thread that will free it after sending: a thread
    /// reuses memory that it has freed itself.
    pub(super) fn prepare(&mut self) {
        if self.rooms.is_empty() {
            let room = |_| Buffer::zeroed(self.chunk_bytes);
            self.rooms = (0..self.code.parity()).map(room).collect();
        }
    }

    /// Adds a chunk; returns the parity of its stripe if that is complete.
    pub(super) fn add(&mut self, chunk: &[u8]) -> Vec<Piece> {
        let mut rooms: Vec<&mut [u8]> = self.rooms.iter_mut().map(|room| &mut room[..]).collect();
        let added = self.code.accumulate(self.column, chunk, &mut rooms);
        added.expect("prepared for a chunk of the stripe");
        self.column += 1;
        self.longest = self.longest.max(chunk.len());
        if self.column == self.width { self.finish() } else { Vec::new() }
    }

    /// Returns the parity of the last stripe, unless it was complete.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        if self.column == 0 {
            return Vec::new();
        }
        let longest = std::mem::take(&mut self.longest);
        self.column = 0;
        let piece = |mut room: Buffer| {
            room.truncate(longest);
            let sum = crc32c::crc32c(&room);
            (room, sum)
        };
        self.rooms.drain(..).map(piece).collect()
    }
}

/// Encodes an object whose chunks are stored, and stores its parity; in `drives`, if they are
/// given. If the chunks lie at an `origin`, they are copied to the drives of their stripes. If
/// `page_bytes` is given, pages of that size of the pieces that are stored get checksums.
///
/// # Errors
/// [`DriveError::Corrupt`](crate::error::DriveError::Corrupt) for a damaged chunk;
/// [`DriveError::Full`](crate::error::DriveError::Full); an error of the drives.
pub(super) async fn stored(
    array: &Array,
    entry: &Entry,
    (origin, drives): (Option<Origin>, Option<&Rc<InDrives>>),
    page_bytes: Option<u32>,
    flow: &Flow,
) -> Result<Encoded, Error> {
    let stripes = entry.stripes().expect("the object is protected");
    let (code, slots) = (stripes.scheme().code(), array.slots().to_vec());
    let (pace, lists) = (Rc::clone(&flow.pace), RefCell::new(page_bytes.map(Lists::new)));
    let link = |(index, _)| Link::new(array, index, Persistence::brief()).map(Rc::new);
    let links = DriveIndex::each(&slots).map(link).collect::<Result<_, _>>()?;
    let work = Encoding { entry: entry.clone(), origin, stripes, code, slots, links, pace, lists };
    let work = Rc::new(work);
    if !drives.is_some_and(|drives| drives.has_room()) {
        let left = work.check_room(array).await?;
        drives.inspect(|drives| drives.begin(UnlistedPieces::new(left)));
    }
    let stripe_bytes = work.stripes.scheme().pieces() * entry.chunk_bytes as usize;
    let ahead = (AHEAD_BYTES / stripe_bytes).max(1);
    let mut pending = VecDeque::new();
    let all = work.encode_all(array, (drives, ahead), flow, &mut pending).await;
    // A piece that is stored later would be left when the caller has deleted all.
    for encoding in pending {
        let _encoded = encoding.await;
    }
    let all = all?;
    if let Some(lists) = work.lists.take() {
        lists.finish(|index| Rc::clone(&work.links[index])).await;
    }
    if let (Some(drives), Some(page_bytes)) = (drives, page_bytes) {
        new_page_lists::list(array, entry, (drives.take_stored(), page_bytes), flow).await?;
    }
    Ok(all)
}

/// A stripe that is being encoded; `None` if this host must do so after a look at the name.
type Pending = JoinHandle<Result<Option<Encoded>, Error>>;

impl Encoding {
    /// Encodes all stripes, so many at once; `pending` has those in flight if one has failed.
    async fn encode_all(
        self: &Rc<Self>,
        array: &Array,
        (drives, ahead): (Option<&Rc<InDrives>>, usize),
        flow: &Flow,
        pending: &mut VecDeque<Pending>,
    ) -> Result<Encoded, Error> {
        let layout = self.entry.layout();
        let chunk_sums = vec![0; layout.chunks() as usize];
        let mut all = Encoded { chunk_sums, ..Encoded::default() };
        let (mut next, mut done) = (0, 0);
        loop {
            while next < self.stripes.count() && pending.len() < ahead {
                let (work, stripe, drives) = (Rc::clone(self), next, drives.cloned());
                pending.push_back(spawn(Class::Foreground, async move {
                    work.encode(stripe, drives.as_ref()).await
                }));
                next += 1;
            }
            let Some(encoded) = pending.pop_front() else { return Ok(all) };
            let encoded = match encoded.await? {
                Some(encoded) => encoded,
                None => self.encode_to_blocks(array, done).await?,
            };
            let chunks = self.stripes.chunks(done);
            for (chunk, sum) in chunks.iter().zip(encoded.chunk_sums) {
                all.chunk_sums[*chunk as usize] = sum;
            }
            all.sums.extend(encoded.sums);
            all.lost.extend(encoded.lost);
            if flow.stop.get() {
                return Err(Error::Stopped);
            }
            flow.progress.add(chunks.iter().map(|chunk| u64::from(layout.chunk_len(*chunk))).sum());
            done += 1;
        }
    }

    /// Has a drive encode a stripe, or reads its chunks and stores its pieces. Returns `None` if
    /// this host must do so after a look at the name, because it writes to blocks.
    async fn encode(
        self: &Rc<Self>,
        stripe: u32,
        drives: Option<&Rc<InDrives>>,
    ) -> Result<Option<Encoded>, Error> {
        if let Some(drives) = drives {
            let encoded = self.encode_in(drives, stripe).await?;
            if encoded.is_some() || self.writes_blocks() {
                return Ok(encoded);
            }
        }
        let (pieces, mut encoded) = self.compute(stripe).await?;
        encoded.lost = self.store(stripe, pieces).await?;
        Ok(Some(encoded))
    }

    /// Encodes a stripe whose chunks are copied to blocks, and stores it if this writer still owns
    /// the name: if not, the blocks soon belong to another object.
    async fn encode_to_blocks(
        self: &Rc<Self>,
        array: &Array,
        stripe: u32,
    ) -> Result<Encoded, Error> {
        let (pieces, mut encoded) = self.compute(stripe).await?;
        check_owner(array, &self.entry).await?;
        encoded.lost = self.store(stripe, pieces).await?;
        Ok(encoded)
    }

    /// Reads the chunks of a stripe and encodes them. Returns the pieces to store, and digests.
    async fn compute(self: &Rc<Self>, stripe: u32) -> Result<(Vec<Buffer>, Encoded), Error> {
        let (data, bytes) = (self.read(stripe).await?, self.stripes.parity_bytes(stripe));
        let code = self.code.clone();
        let encode = move || {
            let empty = std::iter::repeat_n(&[][..], code.data() - data.len());
            let slices: Vec<&[u8]> = data.iter().map(|chunk| &chunk[..]).chain(empty).collect();
            let room = |_| Buffer::zeroed(bytes as usize);
            let mut parity: Vec<Buffer> = (0..code.parity()).map(room).collect();
            let mut rooms: Vec<&mut [u8]> = parity.iter_mut().map(|room| &mut room[..]).collect();
            code.encode(&slices, &mut rooms).expect("as many pieces as the code has");
            let chunk_sums = data.iter().map(|chunk| crc32c::crc32c(chunk)).collect();
            let sums: Vec<u32> = parity.iter().map(|piece| crc32c::crc32c(piece)).collect();
            (data, parity, chunk_sums, sums)
        };
        let encoded = compute_fn(Class::Foreground, 0, encode).await;
        let (data, parity, chunk_sums, sums) = encoded.map_err(|_| Error::ComputeThread)?;
        let data = if self.origin.is_some() { data } else { Vec::new() };
        let pieces = data.into_iter().chain(parity).collect();
        Ok((pieces, Encoded { chunk_sums, sums, lost: Vec::new() }))
    }

    async fn read(self: &Rc<Self>, stripe: u32) -> Result<Vec<Buffer>, Error> {
        let begin = |(piece, chunk): (usize, &u32)| {
            let (work, chunk) = (Rc::clone(self), *chunk);
            spawn(Class::Foreground, async move {
                let (drive, entry) = work.source(stripe, piece)?;
                work.pace.wait(drive.index, u64::from(entry.layout().chunk_len(chunk))).await;
                read_chunk(drive, entry, chunk).await
            })
        };
        let reading: Vec<_> = self.stripes.chunks(stripe).iter().enumerate().map(begin).collect();
        let mut data = Vec::with_capacity(reading.len());
        for chunk in reading {
            data.push(chunk.await?);
        }
        Ok(data)
    }

    /// Stores the pieces of a stripe; returns those that no drive has acknowledged. Waits for all
    /// of them. Chunks on blocks must be there, because nothing says that one is not.
    async fn store(
        self: &Rc<Self>,
        stripe: u32,
        pieces: Vec<Buffer>,
    ) -> Result<Vec<Number>, Error> {
        let begin = |(piece, bytes): (usize, Buffer)| {
            let work = Rc::clone(self);
            let stored = spawn(Class::Foreground, async move {
                let drive = work.drive(stripe, piece)?;
                let (spot, length) = work.spot(stripe, piece);
                work.pace.wait(drive.index, length.into()).await;
                match work.listed(drive, spot, bytes.len()) {
                    Some(listed) => listed.store(&work.links[drive.index], spot, bytes).await,
                    None => spot.write(drive, bytes, true).await,
                }
            });
            (self.number(stripe, piece), stored)
        };
        let storing: Vec<_> = self.written(stripe).zip(pieces).map(begin).collect();
        let (mut lost, mut result) = (Vec::new(), Ok(()));
        for (number, stored) in storing {
            let is_block = self.writes_blocks() && matches!(number, Number::Chunk(_));
            match stored.await {
                Err(error) if error.is_lost() && !is_block => lost.push(number),
                stored => result = result.and(stored),
            }
        }
        result.map(|()| lost)
    }
}
