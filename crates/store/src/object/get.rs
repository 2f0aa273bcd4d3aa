//! Get: chunks from all drives at once, written in order, hashed against the entry's digest.
//!
//! Chunks of a protected object that are lost are computed ([`Pieces`]). Once bytes cannot be
//! computed either, nothing more is written, and the rest is read only to name all such bytes;
//! unless a part of the object is wanted: then zeros stand for them.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write};
use std::ops::Range;
use std::rc::Rc;

use csd_reactor::{Buffer, Class, Compute, Job, JoinHandle, compute_fn, spawn};

use super::after_move;
use super::chunk::{not_stored, read_chunk, read_front};
use super::pieces::Pieces;
use super::{Error, Progress, WINDOW};
use crate::array::Array;
use crate::catalogue::Entry;
use crate::error::ProtectionError;
use crate::layout::Layout;
use crate::link::{Links, Persistence};
use crate::source::npy_header;

/// Destination of an object's bytes.
pub type Sink = Box<dyn Write + Send>;

/// Output format of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its bytes.
    Raw,
    /// A `.npy` file: a header with its type and shape, and its bytes.
    Npy,
}

/// Options of a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetOptions {
    /// Output format.
    pub form: Form,
    /// True to write zeros for bytes that cannot be read, instead of failing.
    pub partial: bool,
}

impl GetOptions {
    /// Returns the options of a get of the whole object.
    #[must_use]
    pub fn whole(form: Form) -> Self {
        Self { form, partial: false }
    }
}

/// Result of a get.
pub struct Got {
    /// The object's entry.
    pub entry: Entry,
    /// The sink, with its buffers flushed.
    pub sink: Sink,
    /// Bytes for which zeros were written.
    pub lost: Vec<Range<u64>>,
    /// Drives that are down or failed, in words.
    pub warnings: Vec<String>,
}

/// Writes the object that `entry` describes to `sink`.
///
/// # Errors
/// [`NameError::Removed`](crate::error::NameError::Removed) or
/// [`NameError::Moved`](crate::error::NameError::Moved) when it was in the meantime, in the second
/// case if it cannot be read where it is now either; [`ProtectionError::Lost`] when more of it is
/// lost than its parity covers; [`Error::Digest`] when the content differs from that of the put;
/// [`Error::Input`] when elements without a `.npy` type are requested as an array; an error of the
/// drives or the sink.
pub async fn get(
    array: &Array,
    entry: Entry,
    options: GetOptions,
    sink: Sink,
    progress: &Progress,
) -> Result<Got, Error> {
    let entry = Rc::new(entry);
    let header = header(&entry, options.form)?;
    let reader = Reader::new(array, &entry, options.partial);
    let copied = match copy(&reader, (header, sink), progress).await {
        Ok((sink, lost)) if lost.is_empty() || options.partial => Ok((sink, lost)),
        Ok((_, ranges)) => {
            let why = reader.losses.take().into_iter().collect();
            Err(Error::Protection(ProtectionError::Lost { name: entry.name.clone(), ranges, why }))
        }
        Err(error) => Err(error),
    };
    let warnings = reader.warnings();
    drop(reader);
    match copied {
        Ok((sink, lost)) => Ok(Got { entry: Rc::unwrap_or_clone(entry), sink, lost, warnings }),
        Err(error) => Err(after_move::removed_or_moved(array, &entry, error).await),
    }
}

/// Returns the bytes before the object's own.
fn header(entry: &Entry, form: Form) -> Result<Vec<u8>, Error> {
    if form == Form::Raw {
        return Ok(Vec::new());
    }
    npy_header(entry.element, &entry.shape).ok_or_else(|| Error::Input {
        name: entry.name.clone(),
        why: format!("elements of type {} have no place in a .npy file", entry.element),
    })
}

/// Chunks of an object from its drives, in units that are read together: chunks, or stripes of a
/// protected object whose stripes are consecutive chunks.
pub(super) struct Reader<'a> {
    array: &'a Array,
    entry: Rc<Entry>,
    layout: Layout,
    pieces: Option<Rc<Pieces>>,
    /// Drives of an object without protection.
    links: Links,
    /// Chunks of a unit.
    unit: u32,
    /// True if zeros may stand for lost bytes.
    is_partial: bool,
    /// Reasons why chunks can neither be read nor computed.
    losses: RefCell<BTreeSet<String>>,
    /// The object where it was moved to meanwhile, once it was looked for.
    moved: OnceCell<Option<Moved>>,
}

/// An object that was moved while it was read, with its pieces if it is protected.
type Moved = (Rc<Entry>, Option<Rc<Pieces>>);

/// A unit that is being read.
pub(super) type Reading = JoinHandle<Vec<Result<Buffer, Error>>>;

impl<'a> Reader<'a> {
    /// Returns a reader; if it `is_partial`, zeros may stand for lost bytes.
    pub(super) fn new(array: &'a Array, entry: &Rc<Entry>, is_partial: bool) -> Self {
        let (layout, pieces) = (entry.layout(), Pieces::new(array, entry));
        let unit = match (&pieces, &layout) {
            (Some(pieces), Layout::Spread(_)) if pieces.stripes().count() > 0 => {
                u32::try_from(pieces.stripes().chunks(0).len()).expect("at most 32")
            }
            _ => 1,
        };
        let (entry, losses, moved) = (Rc::clone(entry), RefCell::default(), OnceCell::new());
        let links = Links::new(Persistence::long());
        Self { array, entry, layout, pieces, links, unit, is_partial, losses, moved }
    }

    /// Returns the number of units.
    pub(super) fn units(&self) -> u32 {
        self.layout.chunks().div_ceil(self.unit)
    }

    /// Returns the chunks of a unit.
    pub(super) fn chunks(&self, unit: u32) -> Range<u32> {
        let first = unit * self.unit;
        first..self.layout.chunks().min(first + self.unit)
    }

    /// Returns the number of units that are read ahead.
    pub(super) fn ahead(&self) -> usize {
        (WINDOW * self.entry.members.len()).div_ceil(self.unit as usize)
    }

    /// Begins to read a unit. The caller compares chunks of an object without protection with their
    /// digests.
    pub(super) fn begin(&self, unit: u32) -> Result<Reading, Error> {
        if let Some(pieces) = &self.pieces {
            let (pieces, is_stripe) = (Rc::clone(pieces), self.unit > 1);
            return Ok(spawn(Class::Foreground, async move {
                if is_stripe { pieces.stripe(unit).await } else { vec![pieces.chunk(unit).await] }
            }));
        }
        let member = self.entry.members[self.layout.member(unit)];
        let (link, entry) = (self.links.get(self.array, member), Rc::clone(&self.entry));
        let link = match link {
            Err(error) if !self.is_partial => return Err(error.into()),
            link => link,
        };
        let bytes = self.is_partial.then(|| self.layout.bytes_of(unit));
        Ok(spawn(Class::Foreground, async move {
            let read = async {
                link?.run(async |drive| read_front(drive, &entry, unit, u32::MAX).await).await
            };
            vec![read.await.map_err(|error| match bytes {
                Some(bytes) if error.is_of_piece() => {
                    let (name, why) = (entry.name.clone(), vec![error.to_string()]);
                    Error::Protection(ProtectionError::Lost { name, ranges: vec![bytes], why })
                }
                _ => error,
            })]
        }))
    }

    /// Returns the chunks of a unit, those that could not be read from where the object is now.
    pub(super) async fn read(&self, unit: u32, reading: Reading) -> Vec<Result<Buffer, Error>> {
        let mut read = reading.await;
        for (chunk, read) in self.chunks(unit).zip(&mut read) {
            if let Err(error) = read
                && let Some(moved) = self.moved(error).await
            {
                *read = self.read_moved(moved, chunk).await;
            }
        }
        read
    }

    /// Returns the object where it was moved to, if the first such error shows that it was.
    async fn moved(&self, error: &Error) -> Option<&Moved> {
        if self.moved.get().is_none() {
            let entry = after_move::after(self.array, &self.entry, error).await.map(Rc::new);
            let moved = entry.map(|entry| (Rc::clone(&entry), Pieces::new(self.array, &entry)));
            let _another = self.moved.set(moved);
        }
        self.moved.get()?.as_ref()
    }

    async fn read_moved(&self, (entry, pieces): &Moved, chunk: u32) -> Result<Buffer, Error> {
        match pieces {
            Some(pieces) => pieces.chunk(chunk).await,
            None => {
                let member = entry.members[entry.layout().member(chunk)];
                read_chunk(&**self.array.drive(member)?, entry, chunk).await
            }
        }
    }

    /// Returns the CRC-32C with which a chunk is still to be compared.
    fn sum(&self, chunk: u32) -> Option<u32> {
        let is_open = self.array.guards().digests && self.pieces.is_none();
        self.entry.sum(chunk).filter(|_| is_open)
    }

    /// Returns true if a chunk is among the lost bytes.
    fn is_in(&self, lost: &[Range<u64>], chunk: u32) -> bool {
        lost.iter().any(|bytes| bytes.contains(&self.layout.bytes_of(chunk).start))
    }

    fn warnings(&self) -> Vec<String> {
        self.pieces.as_ref().map_or_else(Vec::new, |pieces| pieces.warnings())
    }

    /// Returns the chunks of a unit, zeros for those that are lost. Adds these to `lost`.
    fn admit(
        &self,
        read: Vec<Result<Buffer, Error>>,
        lost: &mut Vec<Range<u64>>,
    ) -> Result<Vec<Buffer>, Error> {
        let admit = |chunk: Result<Buffer, Error>| match chunk {
            Err(Error::Protection(ProtectionError::Lost { ranges, why, .. })) => {
                self.losses.borrow_mut().extend(why);
                let bytes = ranges.iter().map(|bytes| bytes.end - bytes.start).sum::<u64>();
                ranges.into_iter().for_each(|bytes| add_range(lost, bytes));
                Ok(Buffer::zeroed(usize::try_from(bytes).expect("at most a chunk")))
            }
            chunk => chunk,
        };
        read.into_iter().map(admit).collect()
    }
}

/// Adds a range behind the others.
fn add_range(ranges: &mut Vec<Range<u64>>, bytes: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == bytes.start => last.end = bytes.end,
        _ => ranges.push(bytes),
    }
}

/// Writes the object to `sink`; returns the sink, and the ranges that could not be read.
async fn copy(
    reader: &Reader<'_>,
    (header, sink): (Vec<u8>, Sink),
    progress: &Progress,
) -> Result<(Sink, Vec<Range<u64>>), Error> {
    let entry = &reader.entry;
    let writer = Writer { sink, hasher: blake3::Hasher::new(), is_open: true };
    let mut writing = write(writer, header, Vec::new(), Vec::new());
    let mut pending: VecDeque<Reading> = VecDeque::new();
    let (ahead, mut lost) = (reader.ahead(), Vec::new());
    // The next unit to read, the next one that arrives, and the next chunk to write.
    let (mut next, mut unit, mut written) = (0, 0, 0);
    loop {
        let mut top_up = |pending: &mut VecDeque<_>| {
            while next < reader.units() && pending.len() < ahead {
                pending.push_back(reader.begin(next)?);
                next += 1;
            }
            Ok::<_, Error>(())
        };
        top_up(&mut pending)?;
        let first = match pending.pop_front() {
            Some(read) => Some(reader.admit(reader.read(unit, read).await, &mut lost)?),
            None => None,
        };
        unit += 1;
        // Drives have sent more during this write; everything that has arrived is written at once.
        let outcome = writing.await.map_err(|_| Error::ComputeThread)?;
        // The chunks' memory is freed on this thread, which receives the next ones: a thread reuses
        // memory that it has freed itself, and new memory costs a page fault each 4 KiB.
        let (mut writer, done) = outcome.map_err(|refused| match refused {
            Refused::Sink(source) => Error::Write { source },
            Refused::Sum(index) => {
                let chunk = written + index;
                let member = entry.members[reader.layout.member(chunk)];
                not_stored(&reader.array.slots()[member].name, entry, chunk)
            }
        })?;
        written += u32::try_from(done.len()).expect("a few chunks of each drive");
        drop(done);
        let Some(mut arrived) = first else {
            let sink = end(entry, writer, lost.is_empty()).await?;
            return Ok((sink, lost));
        };
        let mut units = 1;
        while units < ahead
            && pending.front().is_some_and(JoinHandle::is_finished)
            && let Some(read) = pending.pop_front()
        {
            arrived.extend(reader.admit(reader.read(unit, read).await, &mut lost)?);
            (unit, units) = (unit + 1, units + 1);
        }
        top_up(&mut pending)?;
        progress.add(arrived.iter().map(|chunk| chunk.len() as u64).sum());
        let sum = |chunk| reader.sum(chunk).filter(|_| !reader.is_in(&lost, chunk));
        let sums = (written..).zip(&arrived).map(|(chunk, _)| sum(chunk)).collect();
        writer.is_open = reader.is_partial || lost.is_empty();
        writing = write(writer, Vec::new(), arrived, sums);
    }
}

/// Compares digests if the object `is_complete`, and returns the sink with its buffers flushed.
async fn end(entry: &Entry, writer: Writer, is_complete: bool) -> Result<Sink, Error> {
    let (mut sink, hash) = (writer.sink, writer.hasher.finalize());
    if is_complete && entry.has_digest() && hash != entry.digest {
        return Err(Error::Digest { name: entry.name.clone() });
    }
    let flushed = compute_fn(Class::Foreground, 0, move || sink.flush().map(|()| sink));
    let sink = flushed.await.map_err(|_| Error::ComputeThread)?;
    sink.map_err(|source| Error::Write { source })
}

/// Sink and hasher of all bytes so far.
struct Writer {
    sink: Sink,
    hasher: blake3::Hasher,
    /// False once bytes are lost that must not be replaced by zeros.
    is_open: bool,
}

/// Reason why chunks were not written.
enum Refused {
    /// The sink failed.
    Sink(io::Error),
    /// The chunk of this index differs from its digest.
    Sum(u32),
}

/// Writes `header`, which the digest does not cover, then checks, hashes and writes `chunks`, and
/// returns them. A chunk that differs from its sum is not written. Starts at once, on the compute
/// thread: hashing takes long, and writing blocks.
fn write(
    mut writer: Writer,
    header: Vec<u8>,
    chunks: Vec<Buffer>,
    sums: Vec<Option<u32>>,
) -> Compute<impl Job<Output = Result<(Writer, Vec<Buffer>), Refused>>> {
    compute_fn(Class::Foreground, 0, move || {
        writer.sink.write_all(&header).map_err(Refused::Sink)?;
        for (index, (chunk, sum)) in (0..).zip(chunks.iter().zip(sums)) {
            if sum.is_some_and(|sum| sum != crc32c::crc32c(chunk)) {
                return Err(Refused::Sum(index));
            }
            if !writer.is_open {
                continue;
            }
            writer.hasher.update(chunk);
            writer.sink.write_all(chunk).map_err(Refused::Sink)?;
        }
        Ok((writer, chunks))
    })
}
