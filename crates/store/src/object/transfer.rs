//! Transfer: the chunks of a copy go from drive to drive, and their drives compute its parity.
//!
//! The drive of each chunk fetches it from the drive that has it ([`super::fetch`]). A chunk that
//! cannot be fetched goes through this host, which computes it if it is lost: a drive is down or
//! does not know the other one, or the chunk is missing or damaged. Invariants: a chunk counts only
//! if it matches the digest in the entry; this host writes only soon after a look at the name; once
//! [`make`] returns, no chunk is in flight.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use csd_reactor::{Buffer, Class, Instant, JoinHandle, Semaphore, compute_fn, now, spawn};

use super::chunk::{not_stored, read_front};
use super::copy;
use super::fetch::Fetch;
use super::flow::Flow;
use super::in_drives::InDrives;
use super::new_page_lists::{self, UnlistedPieces};
use super::pieces::Pieces;
use super::{CHECK_INTERVAL, Error, Progress, WINDOW, check_owner, parity};
use crate::array::{Array, Drive, DriveIndex, DriveSlot, drive_of};
use crate::catalogue::{Entry, Placement};
use crate::error::NameError;
use crate::guarded::Owner;
use crate::layout::Layout;
use crate::pages::Wanted;
use crate::piece::Spot;
use crate::room::{self, Left};

/// Bytes of chunks in flight, unless one is longer.
const AHEAD_BYTES: usize = 64 << 20;

/// Chunks that were transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Number of all chunks.
    pub(super) chunks: u64,
    /// Number of chunks that drives have fetched.
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
    let stored = UnlistedPieces::new(check_room(array, &copy).await?);
    let made = make_all(array, entry, &mut copy, (drives, stored), flow).await;
    // Nothing of an object before shall be listed as a piece of the next one.
    drop(drives.take_stored());
    match made {
        Ok(count) => {
            *entry = copy;
            Ok(count)
        }
        // Pieces are gone if another writer has taken the name.
        Err(error) => match check_owner(array, &copy).await {
            Err(overtaken @ Error::Name(NameError::Overtaken { .. })) => Err(overtaken),
            _ => Err(error),
        },
    }
}

async fn make_all(
    array: &Array,
    entry: &Entry,
    copy: &mut Entry,
    (drives, stored): (&Rc<InDrives>, UnlistedPieces),
    flow: &Flow,
) -> Result<Count, Error> {
    let page_bytes = copy::page_bytes(array, entry).await;
    copy::claim(array, copy).await?;
    copy.sums.clone_from(&entry.sums);
    let work = Rc::new(Transfer::new(array, (entry, copy), (drives, stored), flow));
    let count = work.run(array).await?;
    copy::flush(array, copy).await?;
    let stored = work.stored.take();
    if copy.protection.is_some() {
        drives.begin(stored);
        let silent = Flow { progress: Progress::none(), ..flow.clone() };
        parity::encode(array, copy, Some(drives), page_bytes, &silent).await?;
    } else if let Some(page_bytes) = page_bytes {
        new_page_lists::list(array, copy, (stored, page_bytes), flow).await?;
    }
    Ok(count)
}

/// Checks that the drives have room for a copy and its parity. Returns what is left then.
async fn check_room(array: &Array, copy: &Entry) -> Result<Left, Error> {
    let (layout, are_values) = (copy.layout(), copy.placement == Placement::Kv);
    let chunk = |chunk| {
        let bytes = are_values.then(|| layout.chunk_len(chunk));
        (copy.members[layout.member(chunk)], bytes)
    };
    let stripes = copy.stripes();
    let parity = stripes.iter().flat_map(|stripes| {
        let of_stripe = move |stripe| {
            let pieces = stripes.pieces(stripe).filter(|piece| *piece >= stripes.scheme().data());
            let bytes = stripes.parity_bytes(stripe);
            pieces.filter_map(move |piece| Some((stripes.drive(stripe, piece)?, Some(bytes))))
        };
        (0..stripes.count()).flat_map(of_stripe)
    });
    room::check(array, (0..layout.chunks()).map(chunk).chain(parity)).await
}

/// An object that is copied.
struct Transfer {
    from: (Rc<Entry>, Layout),
    to: (Entry, Layout),
    slots: Vec<DriveSlot>,
    /// Chunks that each drive fetches at once.
    windows: Vec<Semaphore>,
    /// The object's pieces, if it is protected.
    pieces: Option<Rc<Pieces>>,
    drives: Rc<InDrives>,
    flow: Flow,
    /// Time of the last look at the name.
    checked: Cell<Instant>,
    /// Chunks that are stored.
    stored: RefCell<UnlistedPieces>,
}

/// A chunk in flight; its bytes, if this host has to send them.
type Moving = JoinHandle<Result<Option<Buffer>, Error>>;

/// Chunks in flight, and writes of this host.
#[derive(Default)]
struct Flight {
    chunks: VecDeque<Moving>,
    writes: VecDeque<JoinHandle<Result<(), Error>>>,
}

impl Transfer {
    fn new(
        array: &Array,
        (entry, copy): (&Entry, &Entry),
        (drives, stored): (&Rc<InDrives>, UnlistedPieces),
        flow: &Flow,
    ) -> Self {
        let from = Rc::new(entry.clone());
        Self {
            pieces: Pieces::new(array, &from),
            from: (from, entry.layout()),
            to: (copy.clone(), copy.layout()),
            slots: array.slots().to_vec(),
            windows: array.slots().iter().map(|_| Semaphore::new(WINDOW)).collect(),
            drives: Rc::clone(drives),
            flow: flow.clone(),
            checked: Cell::new(now()),
            stored: RefCell::new(stored),
        }
    }

    /// Transfers all chunks.
    async fn run(self: &Rc<Self>, array: &Array) -> Result<Count, Error> {
        let mut flight = Flight::default();
        let mut result = self.transfer(array, &mut flight).await;
        for chunk in flight.chunks {
            let _chunk = chunk.await;
        }
        for write in flight.writes {
            let written = write.await;
            result = result.and_then(|count| written.map(|()| count));
        }
        result
    }

    async fn transfer(self: &Rc<Self>, array: &Array, flight: &mut Flight) -> Result<Count, Error> {
        let (chunks, chunk_bytes) = (self.to.1.chunks(), self.to.0.chunk_bytes as usize);
        let most = WINDOW * self.to.0.members.len();
        let ahead = (AHEAD_BYTES / chunk_bytes).clamp(1, most);
        let (mut next, mut count) = (0, Count::default());
        loop {
            while next < chunks && flight.chunks.len() < ahead {
                let (work, chunk) = (Rc::clone(self), next);
                self.pace(chunk).await;
                let moving = async move { work.move_one(chunk).await };
                flight.chunks.push_back(spawn(Class::Foreground, moving));
                next += 1;
            }
            let chunk = next - u32::try_from(flight.chunks.len()).expect("a few chunks");
            let Some(moving) = flight.chunks.pop_front() else { return Ok(count) };
            let moved = moving.await?;
            if self.flow.stop.get() {
                return Err(Error::Stopped);
            }
            self.check(array).await?;
            count.chunks += 1;
            match moved {
                None => count.by_drives += 1,
                Some(bytes) => {
                    let work = Rc::clone(self);
                    let write = async move { work.send(chunk, bytes).await };
                    flight.writes.push_back(spawn(Class::Foreground, write));
                }
            }
            while flight.writes.len() > ahead {
                flight.writes.pop_front().expect("it is not empty").await?;
            }
        }
    }

    /// Looks at the name from time to time: if another writer has taken it, the units of the copy
    /// soon belong to another object.
    async fn check(&self, array: &Array) -> Result<(), Error> {
        if now().since(self.checked.get()) >= CHECK_INTERVAL {
            check_owner(array, &self.to.0).await?;
            self.checked.set(now());
        }
        Ok(())
    }

    /// Waits until the drives of a chunk may read and write it.
    async fn pace(&self, chunk: u32) {
        let (bytes, (from, to)) = (self.to.1.chunk_len(chunk).into(), self.places(chunk));
        self.flow.pace.wait(from, bytes).await;
        self.flow.pace.wait(to, bytes).await;
    }

    /// Has the drive of a chunk fetch it, or reads it.
    async fn move_one(&self, chunk: u32) -> Result<Option<Buffer>, Error> {
        let (from, to) = self.places(chunk);
        if let (Ok(from), Ok(to)) = (self.drive(from), self.drive(to)) {
            let _permit = self.windows[to.index].acquire(1).await;
            let from = (&**from, Spot::of_chunk(&self.from.0, &self.from.1, chunk));
            let (to, bytes) = ((&**to, self.spot(chunk)), self.to.1.chunk_len(chunk));
            let (sum, owner) = (self.sum(chunk), Owner::of(&self.to.0));
            if self.drives.fetch(&Fetch { from, to, bytes, sum, owner }).await {
                self.note(chunk);
                return Ok(None);
            }
        }
        let read = match &self.pieces {
            Some(pieces) => pieces.chunk(chunk).await,
            None => read_front(self.drive(from)?, &self.from.0, chunk, u32::MAX).await,
        };
        read.map(Some)
    }

    /// Sends a chunk that this host has read.
    async fn send(&self, chunk: u32, bytes: Buffer) -> Result<(), Error> {
        let sum = move || {
            let sum = crc32c::crc32c(&bytes);
            (bytes, sum)
        };
        let summed = compute_fn(Class::Foreground, 0, sum).await;
        let (bytes, sum) = summed.map_err(|_| Error::ComputeThread)?;
        let (from, to) = self.places(chunk);
        if sum != self.sum(chunk) {
            return Err(not_stored(&self.drive(from)?.name, &self.from.0, chunk));
        }
        self.spot(chunk).write(self.drive(to)?, bytes, false).await?;
        self.note(chunk);
        Ok(())
    }

    /// Counts a chunk that is stored.
    fn note(&self, chunk: u32) {
        let (bytes, (_, drive)) = (self.to.1.chunk_len(chunk), self.places(chunk));
        let piece = Wanted { spot: self.spot(chunk), bytes, sum: self.sum(chunk) };
        self.stored.borrow_mut().add(drive, piece);
        self.flow.progress.add(bytes.into());
    }

    /// Returns the drive that has a chunk, and the one that gets it, by index.
    fn places(&self, chunk: u32) -> (DriveIndex, DriveIndex) {
        let drive = |entry: &Entry, layout: &Layout| entry.members[layout.member(chunk)];
        (drive(&self.from.0, &self.from.1), drive(&self.to.0, &self.to.1))
    }

    fn drive(&self, index: DriveIndex) -> Result<&Rc<Drive>, Error> {
        Ok(drive_of(&self.slots, index)?)
    }

    fn spot(&self, chunk: u32) -> Spot {
        Spot::of_chunk(&self.to.0, &self.to.1, chunk)
    }

    fn sum(&self, chunk: u32) -> u32 {
        self.from.0.sum(chunk).expect("its digests are known")
    }
}
