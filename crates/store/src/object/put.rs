//! Put: staged entry, then chunks, then the sealed entry.
//!
//! A put that is cut off leaves a staged entry and chunks that nobody can see; the next put or
//! remove of the name deletes them. A put that fails while it runs cleans up after itself.

use std::cell::RefCell;
use std::rc::Rc;

use csd_reactor::{Buffer, Class, Permit, Semaphore, compute_fn, random_bytes, spawn};

use super::{Error, Progress, WINDOW, check_name, remove};
use crate::array::{Array, Drive};
use crate::catalogue::{self, Entry, Found, ObjectId, Placement, State};
use crate::extent::{Claimer, UNIT_BYTES};
use crate::layout;
use crate::source::{self, Source};

/// Where chunks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// As values; the drive allocates.
    Kv,
    /// As blocks; the catalogue holds the extents.
    Block,
}

/// How to put.
#[derive(Clone, Debug)]
pub struct PutOptions {
    /// The object's name.
    pub name: String,
    /// Where its chunks are kept.
    pub on: On,
    /// Chunk size, bytes; `None` for [`layout::CHUNK_BYTES`], or what the drives allow.
    pub chunk_bytes: Option<u64>,
}

/// What a put did.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The sealed entry.
    pub entry: Entry,
    /// Drives that are down or failed, in words; the object is sealed on a majority all the same.
    pub warnings: Vec<String>,
}

/// Stores `source` as a new object.
///
/// # Errors
/// [`Error::Exists`] when the name is taken; what the source, the drives or the network did.
pub async fn put(
    array: &Array,
    source: Source,
    options: &PutOptions,
    progress: &Progress,
) -> Result<Stored, Error> {
    check_name(&options.name)?;
    let found = catalogue::read(array, &catalogue::key(&options.name), &options.name).await?;
    let before = found.newest().cloned();
    if before.as_ref().is_some_and(|entry| entry.state == State::Sealed) {
        return Err(Error::Exists { name: options.name.clone() });
    }
    let mut entry = stage(array, source.element(), options, before.as_ref())?;
    // The first chunk comes before anything is written: most bad inputs show in it.
    let mut reader = Reader { source, hasher: blake3::Hasher::new() };
    let first;
    (reader, first) = reader.next(entry.chunk_bytes).await?;
    let mut warnings = array.down();
    warnings.extend(catalogue::write(array, &entry, &found).await?);
    let stored = fill_and_seal(array, &mut entry, reader, first, before, options, progress).await;
    match stored {
        Ok(more) => {
            warnings.extend(more);
            warnings.dedup();
            Ok(Stored { entry, warnings })
        }
        Err(error) => {
            // The put's own error is what the user must see, whatever the clean-up meets.
            let _cleaned = remove::abandon(array, &entry).await;
            Err(error)
        }
    }
}

fn stage(
    array: &Array,
    element: csd_kernels::ElementType,
    options: &PutOptions,
    before: Option<&Entry>,
) -> Result<Entry, Error> {
    let value_bytes_max = array.drives().map(|drive| drive.value_bytes_max).min().unwrap_or(0);
    let block_bytes = array.drives().map(|drive| drive.block.block_bytes()).max().unwrap_or(0);
    let chunk_bytes = layout::chunk_bytes(options.chunk_bytes, value_bytes_max)?;
    if options.on == On::Block && !chunk_bytes.is_multiple_of(block_bytes.max(1)) {
        let chunk_bytes = chunk_bytes.into();
        return Err(layout::Error::ChunkBytes { chunk_bytes, largest: value_bytes_max }.into());
    }
    let (mut id, mut writer) = ([0; 12], [0; 16]);
    random_bytes(&mut id);
    random_bytes(&mut writer);
    let members: Vec<u16> = array.drives().map(|drive| small(drive.index)).collect();
    // Small objects begin on different drives.
    let offset = u16::from_le_bytes([id[10], id[11]]) % small(members.len());
    let extents = members.iter().map(|_| catalogue::Extents::new()).collect();
    Ok(Entry {
        name: options.name.clone(),
        id: ObjectId::from_random(id),
        writer,
        epoch: before.map_or(0, |entry| entry.epoch) + 1,
        state: State::Staged,
        element,
        shape: Vec::new(),
        chunk_bytes,
        bytes: 0,
        offset,
        members,
        placement: match options.on {
            On::Kv => Placement::Kv,
            On::Block => Placement::Block(extents),
        },
        digest: [0; 32],
    })
}

fn small(index: usize) -> u16 {
    u16::try_from(index).expect("an array has at most 1024 drives")
}

async fn fill_and_seal(
    array: &Array,
    entry: &mut Entry,
    reader: Reader,
    first: Buffer,
    before: Option<Entry>,
    options: &PutOptions,
    progress: &Progress,
) -> Result<Vec<String>, Error> {
    catalogue::confirm(array, entry).await?;
    if let Some(before) = before.filter(|before| !remove::is_spent(before)) {
        remove::sweep(array, before.id).await?;
    }
    let mut writer = Writer::new(array, entry, options.on, Rc::new(RefCell::new(None))).await?;
    let sent = send_all(&mut writer, reader, first, progress).await;
    let finished = writer.finish().await;
    let (reader, bytes) = sent?;
    if let (Placement::Block(all), Some(extents)) = (&mut entry.placement, finished?) {
        *all = extents;
    }
    entry.bytes = bytes;
    entry.shape = reader.source.shape();
    entry.digest = *reader.hasher.finalize().as_bytes();
    entry.spread().checked_chunks()?;
    let found: Found = catalogue::confirm(array, entry).await?;
    let mut sealed = entry.clone();
    sealed.state = State::Sealed;
    let warnings = catalogue::write(array, &sealed, &found).await?;
    *entry = sealed;
    Ok(warnings)
}

/// Sends `first` and all that follows; gives back the reader and the number of bytes.
async fn send_all(
    writer: &mut Writer<'_>,
    mut reader: Reader,
    first: Buffer,
    progress: &Progress,
) -> Result<(Reader, u64), Error> {
    let chunk_bytes = writer.entry.chunk_bytes;
    let (mut chunk, mut number, mut bytes) = (first, 0u32, 0u64);
    while !chunk.is_empty() {
        let length = chunk.len() as u64;
        writer.send(number, chunk).await?;
        bytes += length;
        progress(length);
        if length < u64::from(chunk_bytes) {
            break;
        }
        number = number.checked_add(1).ok_or(layout::Error::TooManyChunks { bytes })?;
        (reader, chunk) = reader.next(chunk_bytes).await?;
    }
    Ok((reader, bytes))
}

/// Reads and hashes, on the compute lane: both block, or take long.
struct Reader {
    source: Source,
    hasher: blake3::Hasher,
}

impl Reader {
    async fn next(mut self, chunk_bytes: u32) -> Result<(Self, Buffer), Error> {
        let read = compute_fn(Class::Foreground, 0, move || {
            let mut chunk = Buffer::with_room(0, chunk_bytes as usize, 0);
            let filled = self.source.fill(&mut chunk)?;
            chunk.truncate(filled);
            self.hasher.update(&chunk);
            Ok::<_, source::Error>((self, chunk))
        });
        read.await.map_err(|_| Error::Lane)?.map_err(Error::Source)
    }
}

/// Chunks on their way to the drives, at most [`WINDOW`] of each drive at once.
struct Writer<'a> {
    array: &'a Array,
    entry: Entry,
    lanes: Vec<Member>,
    failure: Rc<RefCell<Option<Error>>>,
}

struct Member {
    drive: Rc<Drive>,
    window: Semaphore,
    claimer: Option<Claimer>,
    /// Unit that the member's next chunks go to, and how many bytes of it are used.
    unit: (u32, u64),
}

impl<'a> Writer<'a> {
    async fn new(
        array: &'a Array,
        entry: &Entry,
        on: On,
        failure: Rc<RefCell<Option<Error>>>,
    ) -> Result<Self, Error> {
        let mut lanes = Vec::new();
        for &member in &entry.members {
            let drive = array.drive(member.into())?;
            let key = catalogue::key(&entry.name);
            let claimer = match on {
                On::Kv => None,
                On::Block => Some(Claimer::new(drive, entry.id, key).await?),
            };
            let (drive, window) = (Rc::clone(drive), Semaphore::new(WINDOW));
            lanes.push(Member { drive, window, claimer, unit: (0, UNIT_BYTES) });
        }
        Ok(Self { array, entry: entry.clone(), lanes, failure })
    }

    /// Sends a chunk once its drive has room in its window. An earlier chunk's failure comes out
    /// here or in [`Writer::finish`].
    async fn send(&mut self, number: u32, chunk: Buffer) -> Result<(), Error> {
        let spread = self.entry.spread();
        let index = layout::member(number, spread.offset, spread.members);
        let member = &mut self.lanes[index];
        let permit = member.window.acquire(1).await;
        if let Some(error) = self.failure.borrow_mut().take() {
            return Err(error);
        }
        let place = match &mut member.claimer {
            None => Place::Value(csd_nvme::execute::chunk_key(&self.entry.id.0, number)),
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

    /// Waits for all chunks in flight; gives the extents of a block placement.
    async fn finish(self) -> Result<Option<Vec<catalogue::Extents>>, Error> {
        let mut extents = Vec::new();
        for member in self.lanes {
            let _all: Permit = member.window.acquire(WINDOW).await;
            // Writes to a block namespace are durable after a flush; a sealed object must be.
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

enum Place {
    Value(csd_nvme::kv::Key),
    Blocks(u64),
}

async fn store_chunk(
    drive: Rc<Drive>,
    place: Place,
    mut chunk: Buffer,
    failure: Rc<RefCell<Option<Error>>>,
    _permit: Permit,
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
