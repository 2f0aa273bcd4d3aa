//! Transfer: the chunks of a copy go from drive to drive, and their drives compute its parity.
//!
//! The drive of each chunk fetches it from the drive that has it ([`super::fetch`]). Chunks that
//! cannot be fetched go through this host, which computes those that are lost: a drive is down or
//! does not know its peers, or a chunk is missing or damaged. Invariants: a chunk counts only if it
//! matches the digest in the entry; this host writes to blocks only after a look at the name; once
//! [`make`] returns, no chunk is in flight.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use csd_reactor::{Buffer, Class, JoinHandle, compute_fn, now, spawn};

use super::chunk::not_stored;
use super::copy::{self, Flow};
use super::fetch::Fetch;
use super::get::{Reader, Reading};
use super::in_drives::{InDrives, list_pages};
use super::writer::check_owner;
use super::{CHECK_INTERVAL, Error, parity};
use crate::array::{Array, Drive, DriveSlot};
use crate::catalogue::{Entry, Placement};
use crate::guarded::Owner;
use crate::layout::Layout;
use crate::pages::Wanted;
use crate::piece::Spot;
use crate::room;

/// Bytes of chunks that are fetched at once, unless one unit of the reader is longer.
const AHEAD_BYTES: usize = 64 << 20;

/// Chunks that were transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) chunks: u64,
    /// Those of them that drives have fetched.
    pub(super) by_drives: u64,
}

/// Copies the chunks of `entry`, whose digests are known, with parity if `copy` is protected, and
/// makes it that of its copy.
///
/// # Errors
/// Those of [`put`](super::put()); [`Error::Stopped`]; the reason why a chunk cannot be read.
pub(super) async fn make(
    array: &Array,
    entry: &mut Entry,
    mut copy: Entry,
    drives: &Rc<InDrives>,
    flow: &Flow,
) -> Result<Count, Error> {
    let page_bytes = copy::page_bytes(array, entry).await;
    let left = room::left_after(array, &needed(array, &copy)).await?;
    copy::claim(array, &mut copy).await?;
    copy.sums.clone_from(&entry.sums);
    let (from, to) = (entry.layout(), copy.layout());
    let work = Transfer {
        from: (Rc::new(entry.clone()), from),
        to: (copy.clone(), to),
        slots: array.slots().to_vec(),
        drives: Rc::clone(drives),
        flow: flow.clone(),
    };
    let count = Rc::new(work).run(array).await?;
    copy::flush(array, &copy).await?;
    if let Some(page_bytes) = page_bytes {
        list_pages(drives, array.slots(), (copy.id, page_bytes), &left, &flow.pace).await;
    }
    if copy.protection.is_some() {
        let silent = Flow { progress: Arc::new(|_| {}), ..flow.clone() };
        parity::encode(array, &mut copy, Some(drives), page_bytes, &silent).await?;
    }
    *entry = copy;
    Ok(count)
}

/// Returns the bytes of records that the chunks of an object take on each of its drives.
fn needed(array: &Array, copy: &Entry) -> Vec<Option<u64>> {
    let (layout, mut needed) = (copy.layout(), vec![None; array.slots().len()]);
    for member in &copy.members {
        needed[usize::from(*member)] = Some(0);
    }
    if copy.placement == Placement::Kv {
        for chunk in 0..layout.chunks() {
            let drive = usize::from(copy.members[layout.member(chunk)]);
            let bytes = room::record_bytes(layout.chunk_len(chunk).into());
            needed[drive] = needed[drive].map(|needed| needed + bytes);
        }
    }
    needed
}

/// An object that is copied.
struct Transfer {
    from: (Rc<Entry>, Layout),
    to: (Entry, Layout),
    slots: Vec<DriveSlot>,
    drives: Rc<InDrives>,
    flow: Flow,
}

/// A unit of the reader whose chunks are being fetched; those that were not are the result. It is
/// being read as well if it is known that a drive cannot fetch.
struct Unit {
    number: u32,
    fetching: JoinHandle<Vec<u32>>,
    reading: Option<Reading>,
}

/// What is in flight.
#[derive(Default)]
struct Flight {
    units: VecDeque<Unit>,
    writes: VecDeque<JoinHandle<Result<(), Error>>>,
}

impl Transfer {
    /// Transfers all chunks.
    async fn run(self: Rc<Self>, array: &Array) -> Result<Count, Error> {
        let mut flight = Flight::default();
        let mut result = self.transfer(array, &mut flight).await;
        for unit in flight.units {
            let _lacking = unit.fetching.await;
        }
        for write in flight.writes {
            let written = write.await;
            result = result.and_then(|count| written.map(|()| count));
        }
        match result {
            // Chunks are gone if another writer has taken the name.
            Err(error) => check_owner(array, &self.to.0).await.and(Err(error)),
            result => result,
        }
    }

    async fn transfer(self: &Rc<Self>, array: &Array, flight: &mut Flight) -> Result<Count, Error> {
        let reader = Reader::new(array, &self.from.0, false);
        let unit_bytes = reader.chunks(0).len().max(1) * self.to.0.chunk_bytes as usize;
        let ahead = (AHEAD_BYTES / unit_bytes).clamp(1, reader.ahead());
        let (mut next, mut checked, mut count) = (0, now(), Count::default());
        loop {
            while next < reader.units() && flight.units.len() < ahead {
                flight.units.push_back(self.begin(&reader, next).await?);
                next += 1;
            }
            let Some(mut unit) = flight.units.pop_front() else { return Ok(count) };
            let (number, reading) = (unit.number, unit.reading.take());
            let lacking = unit.fetching.await;
            if self.flow.stop.get() {
                return Err(Error::Stopped);
            }
            if now().since(checked) >= CHECK_INTERVAL {
                check_owner(array, &self.to.0).await?;
                checked = now();
            }
            count.chunks += reader.chunks(number).len() as u64;
            count.by_drives += (reader.chunks(number).len() - lacking.len()) as u64;
            if !lacking.is_empty() {
                let reading = reading.map_or_else(|| reader.begin(number), Ok)?;
                let read = reader.read(number, reading).await;
                let read = reader.chunks(number).zip(read);
                let lost = read.filter(|(chunk, _)| lacking.contains(chunk)).collect();
                self.send(array, lost, &mut flight.writes).await?;
            }
            while flight.writes.len() > ahead {
                let written = flight.writes.pop_front().expect("it is not empty");
                written.await?;
            }
        }
    }

    /// Begins to transfer a unit, once the drives may be used.
    async fn begin(self: &Rc<Self>, reader: &Reader<'_>, number: u32) -> Result<Unit, Error> {
        let chunks = reader.chunks(number);
        for chunk in chunks.clone() {
            let bytes = u64::from(self.to.1.chunk_len(chunk));
            for drive in [self.places(chunk).0, self.places(chunk).1] {
                self.flow.pace.wait(usize::from(drive), bytes).await;
            }
        }
        let is_lacking = chunks.clone().any(|chunk| self.planned(chunk).is_none());
        let reading = is_lacking.then(|| reader.begin(number)).transpose()?;
        let work = Rc::clone(self);
        let fetching = spawn(Class::Foreground, async move { work.fetch(chunks).await });
        Ok(Unit { number, fetching, reading })
    }

    /// Has drives fetch chunks. Returns those that they have not fetched.
    async fn fetch(self: Rc<Self>, chunks: Range<u32>) -> Vec<u32> {
        let begin = |chunk| {
            let work = Rc::clone(&self);
            (chunk, spawn(Class::Foreground, async move { work.fetch_one(chunk).await }))
        };
        let fetching: Vec<_> = chunks.map(begin).collect();
        let mut lacking = Vec::new();
        for (chunk, fetched) in fetching {
            if !fetched.await {
                lacking.push(chunk);
            }
        }
        lacking
    }

    async fn fetch_one(&self, chunk: u32) -> bool {
        let Some(fetch) = self.planned(chunk) else { return false };
        let is_fetched = self.drives.fetch(&fetch).await;
        if is_fetched {
            self.note(chunk);
        }
        is_fetched
    }

    /// Returns how a chunk is fetched; `None` if one of its drives cannot.
    fn planned(&self, chunk: u32) -> Option<Fetch<'_>> {
        let up = |drive: u16| -> Option<&Drive> {
            let drive = self.slots[usize::from(drive)].up().ok()?;
            self.drives.is_sound(drive).then_some(&**drive)
        };
        let (from, to) = self.places(chunk);
        let (from, to, bytes) = (up(from)?, up(to)?, self.to.1.chunk_len(chunk));
        (bytes > 0).then(|| Fetch {
            from: (from, Spot::of_chunk(&self.from.0, &self.from.1, chunk)),
            to: (to, self.spot(chunk)),
            bytes,
            sum: self.sum(chunk),
            owner: Owner::of(&self.to.0),
        })
    }

    /// Returns the drive that has a chunk, and the one that gets it.
    fn places(&self, chunk: u32) -> (u16, u16) {
        let drive = |entry: &Entry, layout: &Layout| entry.members[layout.member(chunk)];
        (drive(&self.from.0, &self.from.1), drive(&self.to.0, &self.to.1))
    }

    fn spot(&self, chunk: u32) -> Spot {
        Spot::of_chunk(&self.to.0, &self.to.1, chunk)
    }

    fn sum(&self, chunk: u32) -> u32 {
        self.from.0.sum(chunk).expect("its digests are known")
    }

    /// Counts a chunk that is stored.
    fn note(&self, chunk: u32) {
        let (bytes, (_, drive)) = (self.to.1.chunk_len(chunk), self.places(chunk));
        let piece = Wanted { spot: self.spot(chunk), bytes, sum: self.sum(chunk) };
        self.drives.note(usize::from(drive), piece);
        (self.flow.progress)(bytes.into());
    }

    /// Begins to send chunks that this host has read.
    async fn send(
        self: &Rc<Self>,
        array: &Array,
        chunks: Vec<(u32, Result<Buffer, Error>)>,
        writes: &mut VecDeque<JoinHandle<Result<(), Error>>>,
    ) -> Result<(), Error> {
        if self.to.0.placement != Placement::Kv {
            check_owner(array, &self.to.0).await?;
        }
        for (chunk, bytes) in chunks {
            let (work, bytes) = (Rc::clone(self), bytes?);
            let write = async move { work.send_one(chunk, bytes).await };
            writes.push_back(spawn(Class::Foreground, write));
        }
        Ok(())
    }

    async fn send_one(&self, chunk: u32, bytes: Buffer) -> Result<(), Error> {
        let sum = move || {
            let sum = crc32c::crc32c(&bytes);
            (bytes, sum)
        };
        let summed = compute_fn(Class::Foreground, 0, sum).await;
        let (bytes, sum) = summed.map_err(|_| Error::Lane)?;
        let (from, to) = self.places(chunk);
        if sum != self.sum(chunk) {
            let name = &self.slots[usize::from(from)].name;
            return Err(not_stored(name, &self.from.0, chunk));
        }
        let drive = self.slots[usize::from(to)].up()?;
        self.spot(chunk).write(drive, bytes, false).await?;
        self.note(chunk);
        Ok(())
    }
}
