//! [`Pieces`]: reads the pieces of a protected object, and computes those that are lost.
//!
//! A piece is lost if its drive is down or fails, if the drive does not have it or finds it
//! damaged, or if its digest is not that in the entry. Any n other pieces of its stripe give it
//! back, and the result is compared with the digest as well. A drive that fails is asked again only
//! if bytes would be lost without it: then it is connected to once more, with a longer wait,
//! because it may have been slow. Invariant: no bytes are returned that differ from those that were
//! put.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use csd_kernels::erasure::Code;
use csd_reactor::{Buffer, Class, JoinHandle, Semaphore, compute_fn, spawn};

use super::Error;
use super::chunk::read_chunk;
use crate::array::{self, Array, Drive, DriveIndex, DriveSlot, Redial};
use crate::catalogue::{Entry, Parity};
use crate::error::{DriveError, ProtectionError};
use crate::layout::{Layout, Stripes};

/// The pieces of a protected object.
pub struct Pieces {
    entry: Rc<Entry>,
    layout: Layout,
    stripes: Stripes,
    code: Code,
    slots: Vec<DriveSlot>,
    redial: Rc<Redial>,
    /// Drives whose last connection has failed.
    gone: RefCell<BTreeSet<DriveIndex>>,
    /// Drives that were connected to once more; `Err` with the reason why they are down.
    again: RefCell<BTreeMap<DriveIndex, Result<Rc<Drive>, String>>>,
    /// Held while drives are connected to once more.
    dialing: Semaphore,
    /// Reasons of losses, with the number of chunks that were computed because of them.
    computed: RefCell<BTreeMap<String, u64>>,
}

/// A piece that is being read.
type Reading = JoinHandle<Result<Buffer, Error>>;

/// Data pieces of a stripe, each read, computed or lost.
type Read = Vec<Result<Buffer, Error>>;

/// Pieces of one stripe that were read, by number.
type Found = BTreeMap<usize, Buffer>;

impl Pieces {
    /// Returns the pieces of the object; `None` if it is not protected.
    pub fn new(array: &Array, entry: &Rc<Entry>) -> Option<Rc<Self>> {
        let (protection, _) = entry.protected()?;
        Some(Rc::new(Self {
            entry: Rc::clone(entry),
            layout: entry.layout(),
            stripes: entry.stripes()?,
            code: protection.scheme.code(),
            slots: array.slots().to_vec(),
            redial: array.redial(),
            gone: RefCell::default(),
            again: RefCell::default(),
            dialing: Semaphore::new(1),
            computed: RefCell::default(),
        }))
    }

    /// Returns the stripes.
    pub fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    /// Describes the losses so far.
    pub fn warnings(&self) -> Vec<String> {
        let computed = self.computed.borrow();
        let (name, of) =
            (&self.entry.name, |count: u64| if count == 1 { "chunk" } else { "chunks" });
        let word = |(why, count): (&String, &u64)| {
            format!("object {name:?}: {count} {} computed from other pieces: {why}", of(*count))
        };
        computed.iter().map(word).collect()
    }

    /// Returns a chunk, read or computed.
    ///
    /// # Errors
    /// [`ProtectionError::Lost`] if too many pieces of its stripe are lost.
    pub async fn chunk(self: &Rc<Self>, chunk: u32) -> Result<Buffer, Error> {
        let (stripe, piece) = self.stripes.position(chunk);
        let mut found = self.data(stripe, piece..piece + 1).await;
        found.pop().expect("one piece was asked for")
    }

    /// Returns all chunks of a stripe, read or computed.
    pub async fn stripe(self: &Rc<Self>, stripe: u32) -> Vec<Result<Buffer, Error>> {
        self.data(stripe, 0..self.stripes.chunks(stripe).len()).await
    }

    /// Returns one piece as it is stored, compared with its digest. One that the entry lists as
    /// missing is read as well: a medium that was lost may be back, and the digest tells.
    ///
    /// # Errors
    /// The reason why it is lost.
    pub async fn piece(&self, stripe: u32, piece: usize) -> Result<Buffer, Error> {
        let (_, parity) = self.entry.protected().expect("checked when it was made");
        let index = self.stripes.drive(stripe, piece).expect("a piece of the stripe");
        let drive = &*self.drive(index)?;
        let read = match self.stripes.chunks(stripe).get(piece) {
            Some(chunk) => read_chunk(drive, &self.entry, *chunk).await,
            None => self.read_parity(drive, parity, stripe, piece).await,
        };
        read.inspect_err(|error| {
            if error.is_lost() {
                self.gone.borrow_mut().insert(index);
            }
        })
    }

    /// Returns a drive by its last connection.
    fn drive(&self, index: DriveIndex) -> Result<Rc<Drive>, Error> {
        let slot = self.slots.get(usize::from(index)).ok_or_else(|| self.unlisted(index))?;
        let down = |why: &str| {
            let (drive, url, why) = (slot.name.clone(), slot.url.clone(), why.to_owned());
            Error::from(array::Error::Down { drive, url, why })
        };
        if self.gone.borrow().contains(&index) {
            return Err(down("its connection is lost"));
        }
        match self.again.borrow().get(&index) {
            Some(Ok(drive)) => Ok(Rc::clone(drive)),
            Some(Err(why)) => Err(down(why)),
            None => Ok(Rc::clone(slot.up()?)),
        }
    }

    /// Connects once more to the drives of a stripe that do not answer; `tried` is the number of
    /// those that had been tried before the stripe was read. Returns true if others may answer now.
    async fn try_again(&self, stripe: u32, tried: usize) -> bool {
        let _permit = self.dialing.acquire(1).await;
        if self.again.borrow().len() != tried {
            return true;
        }
        let drives =
            self.stripes.pieces(stripe).filter_map(|piece| self.stripes.drive(stripe, piece));
        let is_new = |index: &DriveIndex| {
            let is_up = self.drive(*index).is_ok();
            let is_removed = self.slots.get(usize::from(*index)).is_none_or(DriveSlot::is_vacant);
            !is_up && !is_removed && !self.again.borrow().contains_key(index)
        };
        let silent: BTreeSet<DriveIndex> = drives.filter(is_new).collect();
        let dial = |index: DriveIndex| {
            let redial = Rc::clone(&self.redial);
            (index, spawn(Class::Foreground, async move { redial.connect(index).await }))
        };
        let dialing: Vec<_> = silent.into_iter().map(dial).collect();
        let mut is_any = false;
        for (index, connected) in dialing {
            let connected = connected.await;
            if connected.is_ok() {
                is_any = true;
                self.gone.borrow_mut().remove(&index);
            }
            self.again.borrow_mut().insert(index, connected);
        }
        is_any
    }

    async fn read_parity(
        &self,
        drive: &Drive,
        parity: &Parity,
        stripe: u32,
        piece: usize,
    ) -> Result<Buffer, Error> {
        let number = piece - self.stripes.scheme().data();
        let key = self.entry.parity_key(stripe, number).expect("the object is protected");
        let bytes = self.stripes.parity_bytes(stripe);
        let sum = parity.sums[self.stripes.parity_number(stripe, number)];
        match drive.objects.retrieve(&key, bytes).await {
            Ok(Some(value)) if value.len() as u64 == u64::from(bytes) => {
                match crc32c::crc32c(&value) == sum {
                    true => Ok(value),
                    false => {
                        let why = "is not the one that was stored: its digest differs";
                        Err(self.corrupt(drive.index, stripe, piece, why))
                    }
                }
            }
            Ok(Some(_)) => Err(self.corrupt(drive.index, stripe, piece, "has another length")),
            Ok(None) => Err(self.corrupt(drive.index, stripe, piece, "is missing")),
            Err(error) => Err(Error::command(drive, error)),
        }
    }

    fn unlisted(&self, index: DriveIndex) -> Error {
        let why = "the array file does not list it".to_owned();
        array::Error::Down { drive: self.name(index), url: "?".to_owned(), why }.into()
    }

    fn corrupt(&self, index: DriveIndex, stripe: u32, piece: usize, what: &str) -> Error {
        let why = format!("piece {piece} of stripe {stripe} {what}");
        Error::Drive(DriveError::Corrupt {
            drive: self.name(index),
            object: self.entry.name.clone(),
            why,
        })
    }

    fn name(&self, index: DriveIndex) -> String {
        self.slots
            .get(usize::from(index))
            .map_or_else(|| format!("#{index}"), |slot| slot.name.clone())
    }

    /// Returns true if the piece is likely to be lost: others are read at once with it.
    fn is_likely_lost(&self, stripe: u32, piece: usize) -> bool {
        let (protection, parity) = self.entry.protected().expect("checked when it was made");
        let Some(index) = self.stripes.drive(stripe, piece) else { return true };
        self.drive(index).is_err() || parity.missing.has(protection.scheme, stripe, piece)
    }

    fn begin(self: &Rc<Self>, stripe: u32, piece: usize) -> Reading {
        let pieces = Rc::clone(self);
        spawn(Class::Foreground, async move { pieces.piece(stripe, piece).await })
    }

    /// Returns these data pieces of a stripe, read or computed.
    async fn data(
        self: &Rc<Self>,
        stripe: u32,
        wanted: Range<usize>,
    ) -> Vec<Result<Buffer, Error>> {
        loop {
            let tried = self.again.borrow().len();
            match self.read_data(stripe, wanted.clone()).await {
                Ok(read) => return read,
                Err(_) if self.try_again(stripe, tried).await => {}
                Err(read) => return read,
            }
        }
    }

    /// Does what [`Self::data`] does; `Err` if too many pieces are lost.
    async fn read_data(self: &Rc<Self>, stripe: u32, wanted: Range<usize>) -> Result<Read, Read> {
        // Data pieces that the stripe does not have are empty, and need no reading.
        let needed = self.stripes.chunks(stripe).len();
        let known = wanted.clone().filter(|piece| self.is_likely_lost(stripe, *piece)).count();
        let reading: Vec<(usize, Reading)> =
            wanted.clone().map(|piece| (piece, self.begin(stripe, piece))).collect();
        let mut others: Vec<usize> =
            self.stripes.pieces(stripe).filter(|piece| !wanted.contains(piece)).collect();
        // Pieces that may be there come first.
        others.sort_by_key(|piece| self.is_likely_lost(stripe, *piece));
        let mut others = others.into_iter();
        let more = if known == 0 { 0 } else { needed - (wanted.len() - known) };
        let mut spare: Vec<(usize, Reading)> =
            others.by_ref().take(more).map(|piece| (piece, self.begin(stripe, piece))).collect();
        let (mut found, mut failed, mut why) = (Found::new(), BTreeMap::new(), BTreeSet::new());
        for (piece, reading) in reading {
            match reading.await {
                Ok(bytes) => drop(found.insert(piece, bytes)),
                Err(error) => drop(failed.insert(piece, error)),
            }
        }
        if failed.is_empty() {
            return Ok(found.into_values().map(Ok).collect());
        }
        loop {
            for (piece, reading) in spare.drain(..) {
                match reading.await {
                    Ok(bytes) => drop(found.insert(piece, bytes)),
                    Err(error) => drop(why.insert(reason(&error))),
                }
            }
            let lacking = needed.saturating_sub(found.len());
            let next = others.by_ref().take(lacking);
            spare.extend(next.map(|piece| (piece, self.begin(stripe, piece))));
            if lacking == 0 || spare.is_empty() {
                break;
            }
        }
        if found.len() >= needed {
            return Ok(self.compute(stripe, wanted, found, failed).await);
        }
        why.extend(failed.values().map(reason));
        let why: Vec<String> = why.into_iter().collect();
        let lost = |piece: usize| self.lost(stripe, piece, why.clone());
        Err(wanted.map(|piece| found.remove(&piece).ok_or_else(|| lost(piece))).collect())
    }

    /// Computes the pieces that failed, and returns all wanted ones.
    async fn compute(
        &self,
        stripe: u32,
        wanted: Range<usize>,
        mut found: Found,
        failed: BTreeMap<usize, Error>,
    ) -> Vec<Result<Buffer, Error>> {
        let (data, chunks) = (self.stripes.scheme().data(), self.stripes.chunks(stripe));
        let pieces: Vec<(usize, u32)> =
            failed.keys().map(|piece| (*piece, self.layout.chunk_len(chunks[*piece]))).collect();
        let code = self.code.clone();
        let empty = chunks.len()..data;
        let decode = move || {
            let mut rooms: Vec<Buffer> =
                pieces.iter().map(|(_, bytes)| Buffer::zeroed(*bytes as usize)).collect();
            let used = found.iter().map(|(piece, bytes)| (*piece, &bytes[..]));
            let used: Vec<(usize, &[u8])> =
                used.take(data - empty.len()).chain(empty.map(|piece| (piece, &[][..]))).collect();
            let sources: Vec<usize> = used.iter().map(|(piece, _)| *piece).collect();
            let names: Vec<usize> = pieces.iter().map(|(piece, _)| *piece).collect();
            let decoder = code.decoder(&sources, &names).expect("n different pieces");
            let bytes: Vec<&[u8]> = used.iter().map(|(_, bytes)| *bytes).collect();
            let mut slices: Vec<&mut [u8]> = rooms.iter_mut().map(|room| &mut room[..]).collect();
            decoder.decode(&bytes, &mut slices).expect("a room for every piece");
            found.extend(names.into_iter().zip(rooms));
            found
        };
        let Ok(mut found) = compute_fn(Class::Foreground, 0, decode).await else {
            return wanted.map(|_| Err(Error::ComputeThread)).collect();
        };
        for error in failed.values() {
            *self.computed.borrow_mut().entry(reason(error)).or_default() += 1;
        }
        let result = |piece: usize| {
            let bytes = found.remove(&piece).expect("read or computed");
            let is_right = self.entry.sum(chunks[piece]) == Some(crc32c::crc32c(&bytes));
            let wrong =
                || self.lost(stripe, piece, vec!["the digest of the result differs".to_owned()]);
            if is_right { Ok(bytes) } else { Err(wrong()) }
        };
        wanted.map(result).collect()
    }

    /// Returns the error of a chunk that cannot be computed.
    fn lost(&self, stripe: u32, piece: usize, why: Vec<String>) -> Error {
        let chunk = self.stripes.chunks(stripe)[piece];
        let (name, ranges) = (self.entry.name.clone(), vec![self.layout.bytes_of(chunk)]);
        Error::Protection(ProtectionError::Lost { name, ranges, why })
    }
}

/// Returns the reason of a loss without the number of the chunk.
fn reason(error: &Error) -> String {
    match error {
        Error::Drive(DriveError::Corrupt { drive, .. }) => {
            format!("drive {drive} has damaged or missing pieces")
        }
        error => error.to_string(),
    }
}

/// Returns one piece of a protected object as it is stored, compared with its digest.
///
/// # Errors
/// [`ProtectionError::Impossible`] if there is no such piece; the reason why it cannot be read.
pub async fn read_piece(
    array: &Array,
    entry: &Entry,
    stripe: u32,
    piece: usize,
) -> Result<Buffer, Error> {
    let name = &entry.name;
    let Some(pieces) = Pieces::new(array, &Rc::new(entry.clone())) else {
        let why = format!("object {name:?} is not protected: it has no pieces");
        return Err(Error::Protection(ProtectionError::Impossible { why }));
    };
    if stripe >= pieces.stripes.count() || pieces.stripes.drive(stripe, piece).is_none() {
        let why = format!("object {name:?} has no piece {stripe}:{piece}: see `csd stat --pieces`");
        return Err(Error::Protection(ProtectionError::Impossible { why }));
    }
    pieces.piece(stripe, piece).await
}
