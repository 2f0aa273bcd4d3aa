//! Put: staged entry, then chunks, then the sealed entry.
//!
//! A put that is interrupted leaves a staged entry and chunks that are not visible; the next put or
//! remove of the name deletes them. A put that fails while it runs cleans up after itself. A put
//! whose name another writer has taken notices this with its next chunk after [`CHECK_INTERVAL`].

use std::cell::RefCell;
use std::rc::Rc;

use csd_reactor::{Buffer, Class, Instant, Semaphore, SemaphorePermit, compute_fn, now, spawn};

use super::cut::{Arrange, Cutter, Packed, Packer, Read};
use super::draft::{Draft, Shape};
use super::{CHECK_INTERVAL, Error, Progress, WINDOW};
use crate::array::{Array, Drive};
use crate::catalogue::{self, Entry, On, Placement};
use crate::extent::{Claimer, UNIT_BYTES};
use crate::layout::{self, Parts};
use crate::room;
use crate::source::Source;

/// Most chunks whose digests an entry holds, so that it stays far below the largest value.
const SUMS_MAX: usize = 1 << 20;

/// Options of a put.
#[derive(Clone, Debug)]
pub struct PutOptions {
    /// The object's name.
    pub name: String,
    /// Kind of namespace for the chunks.
    pub on: On,
    /// Chunk size, bytes; `None` for [`layout::CHUNK_BYTES`], or the largest that the drives allow.
    pub chunk_bytes: Option<u64>,
    /// Rule for cutting it.
    pub arrange: Arrange,
    /// Object whose drives, chunk size and cuts the new one shares, so that kernels with two inputs
    /// find matching data on one drive.
    pub align: Option<Entry>,
}

/// Result of a put.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The sealed entry.
    pub entry: Entry,
    /// Drives that are down or failed, in words; a majority holds the sealed entry nevertheless.
    pub warnings: Vec<String>,
}

/// Stores `source` as a new object.
///
/// # Errors
/// [`Error::Exists`] when the name is taken; an error of the source, the drives or the network.
pub async fn put(
    array: &Array,
    source: Source,
    options: &PutOptions,
    progress: &Progress,
) -> Result<Stored, Error> {
    // Checked before the limits of the drives are computed: there may be no drive.
    array.require_majority()?;
    let shape = shape(array, &source, options)?;
    let mut draft = Draft::begin(array, &options.name, shape.clone()).await?;
    let cutter = Cutter::new(&options.arrange, options.align.as_ref(), &shape, &source)?;
    // The first chunk is read before anything is written: it reveals most bad inputs.
    let mut reader = Reader { source, cutter, hasher: blake3::Hasher::new() };
    let first;
    (reader, first) = reader.next(shape.chunk_bytes).await?;
    draft.write(array).await?;
    match fill(array, &mut draft.entry, reader, first, progress).await {
        Ok(()) => draft.seal(array).await,
        Err(error) => {
            // The user must see the put's own error, not one of the clean-up.
            draft.abandon(array).await;
            Err(room::explain(array, options.on, error).await)
        }
    }
}

/// Returns the properties of the object: those of the object it is aligned to, or those in the
/// options.
fn shape(array: &Array, source: &Source, options: &PutOptions) -> Result<Shape, Error> {
    let (element, on) = (source.element(), options.on);
    if let Some(to) = &options.align {
        if options.chunk_bytes.is_some_and(|bytes| bytes != u64::from(to.chunk_bytes)) {
            let why = format!("{:?} has chunks of {} bytes", to.name, to.chunk_bytes);
            return Err(Error::Input { name: options.name.clone(), why });
        }
        let (chunk_bytes, offset, members) = (to.chunk_bytes, to.offset, to.members.clone());
        return Ok(Shape { element, on, chunk_bytes, offset: Some(offset), members });
    }
    let value_bytes_max = array.drives().map(|drive| drive.value_bytes_max).min().unwrap_or(0);
    let block_bytes = array.drives().map(|drive| drive.block.block_bytes()).max().unwrap_or(0);
    let chunk_bytes = layout::chunk_bytes(options.chunk_bytes, value_bytes_max)?;
    if on == On::Block && !chunk_bytes.is_multiple_of(block_bytes.max(1)) {
        let chunk_bytes = chunk_bytes.into();
        return Err(layout::Error::ChunkBytes { chunk_bytes, largest: value_bytes_max }.into());
    }
    let members = array.drives().map(|drive| small(drive.index)).collect();
    let spread = matches!(options.arrange, Arrange::Spread);
    let offset = if spread { None } else { Some(0) };
    Ok(Shape { element, on, chunk_bytes, offset, members })
}

fn small(index: usize) -> u16 {
    u16::try_from(index).expect("an array has at most 1024 drives")
}

/// Writes all chunks, and completes the entry accordingly.
async fn fill(
    array: &Array,
    entry: &mut Entry,
    reader: Reader,
    first: Read,
    progress: &Progress,
) -> Result<(), Error> {
    let mut writer = Writer::new(array, entry).await?;
    let sent = send_all(&mut writer, reader, first, progress).await;
    let finished = writer.finish().await;
    let (reader, packed) = sent?;
    if let (Placement::Block(all), Some(extents)) = (&mut entry.placement, finished?) {
        *all = extents;
    }
    entry.bytes = packed.bytes;
    entry.shape = reader.source.shape();
    entry.digest = *reader.hasher.finalize().as_bytes();
    if packed.sums.len() <= SUMS_MAX {
        entry.sums = packed.sums;
    }
    let members = small(entry.members.len());
    entry.parts = match reader.cutter.kind() {
        Some(kind) => Parts::new(kind, entry.chunk_bytes, members, packed.parts)?,
        None => None,
    };
    Ok(())
}

/// Sends `first` and all following chunks; returns the reader and the layout of the chunks.
async fn send_all(
    writer: &mut Writer<'_>,
    mut reader: Reader,
    first: Read,
    progress: &Progress,
) -> Result<(Reader, Packed), Error> {
    let chunk_bytes = writer.entry.chunk_bytes;
    let mut packer = Packer::new(&writer.entry, reader.cutter.kind().is_some());
    let mut read = first;
    while !read.bytes.is_empty() {
        let length = read.bytes.len() as u64;
        for (member, number, chunk) in packer.pack(read)? {
            writer.send(member, number, chunk).await?;
        }
        progress(length);
        if length < u64::from(chunk_bytes) {
            break;
        }
        (reader, read) = reader.next(chunk_bytes).await?;
    }
    let (rest, packed) = packer.finish(reader.cutter.finish())?;
    for (member, number, chunk) in rest {
        writer.send(member, number, chunk).await?;
    }
    Ok((reader, packed))
}

/// Reads and hashes on the compute thread: reading blocks, and hashing takes long.
struct Reader {
    source: Source,
    cutter: Cutter,
    hasher: blake3::Hasher,
}

impl Reader {
    async fn next(mut self, chunk_bytes: u32) -> Result<(Self, Read), Error> {
        // Allocated on the thread that frees the chunks after sending: a thread reuses memory that
        // it has freed itself, and new memory costs a page fault each 4 KiB.
        let mut bytes = Buffer::with_room(0, chunk_bytes as usize, 0);
        let read = compute_fn(Class::Foreground, 0, move || {
            let filled = self.source.fill(&mut bytes)?;
            bytes.truncate(filled);
            self.hasher.update(&bytes);
            let sum = self.cutter.kind().is_none().then(|| crc32c::crc32c(&bytes));
            let cuts = self.cutter.cut(&bytes)?;
            Ok::<_, Error>((self, Read { bytes, sum, cuts }))
        });
        read.await.map_err(|_| Error::Lane)?
    }
}

/// Sends chunks to the drives, at most [`WINDOW`] of each drive at once.
struct Writer<'a> {
    array: &'a Array,
    entry: Entry,
    lanes: Vec<Member>,
    failure: Rc<RefCell<Option<Error>>>,
    /// Time of the last check that this put owns the name.
    checked: Instant,
}

struct Member {
    drive: Rc<Drive>,
    window: Semaphore,
    claimer: Option<Claimer>,
    /// Bytes of records that it may still store, as far as is known.
    records: u64,
    /// Unit for the member's next chunks, and the number of its bytes in use.
    unit: (u32, u64),
}

impl<'a> Writer<'a> {
    async fn new(array: &'a Array, entry: &Entry) -> Result<Self, Error> {
        let mut lanes = Vec::new();
        for &member in &entry.members {
            let drive = array.drive(member.into())?;
            let key = catalogue::key(&entry.name);
            let claimer = match entry.placement {
                Placement::Kv => None,
                Placement::Block(_) => Some(Claimer::new(drive, entry.id, key).await?),
            };
            let (drive, window) = (Rc::clone(drive), Semaphore::new(WINDOW));
            lanes.push(Member { drive, window, claimer, records: 0, unit: (0, UNIT_BYTES) });
        }
        Ok(Self { array, entry: entry.clone(), lanes, failure: Rc::default(), checked: now() })
    }

    /// Checks from time to time that this put still owns the name: if not, its units of the block
    /// namespace soon belong to another object.
    async fn check(&mut self) -> Result<(), Error> {
        let seen = now();
        if seen.since(self.checked) < CHECK_INTERVAL {
            return Ok(());
        }
        let (key, name) = (catalogue::key(&self.entry.name), &self.entry.name);
        let found = catalogue::read(self.array, &key, name).await?;
        self.checked = seen;
        match found.newest() {
            Some(newest) if newest.writer == self.entry.writer => Ok(()),
            _ => Err(Error::Overtaken { name: name.clone() }),
        }
    }

    /// Sends a chunk once its drive's window has room. An error of an earlier chunk is returned
    /// here or by [`Writer::finish`].
    async fn send(&mut self, member: usize, number: u32, chunk: Buffer) -> Result<(), Error> {
        let permit = self.lanes[member].window.acquire(1).await;
        self.check().await?;
        let member = &mut self.lanes[member];
        if let Some(error) = self.failure.borrow_mut().take() {
            return Err(error);
        }
        let place = match &mut member.claimer {
            None => {
                member.take(room::record_bytes(chunk.len() as u64)).await?;
                Place::Value(csd_nvme::execute::chunk_key(&self.entry.id.0, number))
            }
            Some(claimer) => {
                let (unit, used) = member.unit;
                let (unit, used) = match used < UNIT_BYTES {
                    true => (unit, used),
                    false => (claimer.claim(self.array).await?, 0),
                };
                member.unit = (unit, used + u64::from(self.entry.chunk_bytes));
                Place::Blocks(u64::from(unit) * UNIT_BYTES + used)
            }
        };
        let (drive, failure) = (Rc::clone(&member.drive), Rc::clone(&self.failure));
        drop(spawn(Class::Foreground, store_chunk(drive, place, chunk, failure, permit)));
        Ok(())
    }

    /// Waits for all chunks in flight; returns the extents of a block placement.
    async fn finish(self) -> Result<Option<Vec<catalogue::Extents>>, Error> {
        let mut extents = Vec::new();
        for member in self.lanes {
            let _all: SemaphorePermit = member.window.acquire(WINDOW).await;
            // Writes to a block namespace are durable only after a flush; a sealed object must be
            // durable.
            if let Some(claimer) = member.claimer {
                let flushed = member.drive.block.flush().await;
                flushed.map_err(|error| Error::command(&member.drive, error))?;
                extents.push(claimer.into_extents());
            }
        }
        match self.failure.borrow_mut().take() {
            Some(error) => Err(error),
            None => Ok((!extents.is_empty()).then_some(extents)),
        }
    }
}

impl Member {
    /// Reserves space for a record. The rest is left to the catalogue, so that a full drive still
    /// accepts names, and objects on blocks. The caller holds one permit of the window.
    async fn take(&mut self, bytes: u64) -> Result<(), Error> {
        if self.records < bytes {
            // Once all chunks are acknowledged, the drive's usage includes them.
            let _sent = self.window.acquire(WINDOW - 1).await;
            self.records = room::records_left(&self.drive).await?;
        }
        let left = self.records.checked_sub(bytes).ok_or_else(|| Error::Full {
            drive: self.drive.name.clone(),
            what: "key-value part",
            room: None,
        })?;
        self.records = left;
        Ok(())
    }
}

enum Place {
    Value(csd_nvme::kv::Key),
    Blocks(u64),
}

async fn store_chunk(
    drive: Rc<Drive>,
    place: Place,
    mut chunk: Buffer,
    failure: Rc<RefCell<Option<Error>>>,
    _permit: SemaphorePermit,
) {
    let stored = match place {
        Place::Value(key) => drive.objects.store(&key, vec![chunk], 0).await,
        Place::Blocks(offset) => {
            let block_bytes = drive.block.block_bytes() as usize;
            let padding = chunk.len().next_multiple_of(block_bytes) - chunk.len();
            chunk.append(padding).fill(0);
            drive.block.write(offset, vec![chunk], false).await
        }
    };
    if let Err(error) = stored {
        failure.borrow_mut().get_or_insert_with(|| Error::command(&drive, error));
    }
}
