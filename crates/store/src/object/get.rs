//! Get: chunks from all drives at once, written in order, hashed against the entry's digest.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;

use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, Compute, Job, JoinHandle, compute_fn, spawn};

use super::{Error, Progress, WINDOW, lookup};
use crate::array::{Array, Drive};
use crate::catalogue::{Entry, Placement};
use crate::extent::byte_ranges;
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

/// Writes the object that `entry` describes to `sink`, and returns the entry and the sink.
///
/// # Errors
/// [`Error::Removed`] when it was removed in the meantime; [`Error::Digest`] when the content
/// differs from that of the put; [`Error::Input`] when elements without a `.npy` type are requested
/// as an array; an error of the drives or the sink.
pub async fn get(
    array: &Array,
    entry: Entry,
    form: Form,
    sink: Sink,
    progress: &Progress,
) -> Result<(Entry, Sink), Error> {
    let entry = Rc::new(entry);
    let header = header(&entry, form)?;
    match copy(array, &entry, (header, sink), progress).await {
        Ok(sink) => Ok((Rc::unwrap_or_clone(entry), sink)),
        Err(error) => Err(or_removed(array, &entry, error).await),
    }
}

/// Returns [`Error::Removed`] if the object was removed, and `error` otherwise: its chunks may be
/// missing or overwritten because of that.
pub(crate) async fn or_removed(array: &Array, entry: &Entry, error: Error) -> Error {
    if !matches!(error, Error::Corrupt { .. } | Error::Digest { .. }) {
        return error;
    }
    match lookup(array, &entry.name).await {
        Ok(now) if now.id == entry.id => error,
        Ok(_) | Err(Error::Missing { .. }) => Error::Removed { name: entry.name.clone() },
        Err(_) => error,
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

/// Writes the object that `entry` describes to `sink`, and returns the sink.
async fn copy(
    array: &Array,
    entry: &Rc<Entry>,
    (header, sink): (Vec<u8>, Sink),
    progress: &Progress,
) -> Result<Sink, Error> {
    let layout = entry.layout();
    let writer = Writer { sink, hasher: blake3::Hasher::new() };
    let guarded = array.guards().digests;
    let sum_of = |chunk| entry.sum(chunk).filter(|_| guarded);
    let mut writing = write(writer, header, Vec::new(), Vec::new());
    let mut pending: VecDeque<JoinHandle<Result<Buffer, Error>>> = VecDeque::new();
    let ahead = WINDOW * entry.members.len();
    // The next chunk to read, and the next to write.
    let (mut next, mut written) = (0, 0);
    loop {
        let mut top_up = |pending: &mut VecDeque<_>| {
            while next < layout.chunks() && pending.len() < ahead {
                let member = entry.members[layout.member(next)];
                let drive = Rc::clone(array.drive(member.into())?);
                let (entry, chunk) = (Rc::clone(entry), next);
                pending.push_back(spawn(Class::Foreground, async move {
                    read_front(&drive, &entry, chunk, u32::MAX).await
                }));
                next += 1;
            }
            Ok::<_, Error>(())
        };
        top_up(&mut pending)?;
        let first = match pending.pop_front() {
            Some(read) => Some(read.await?),
            None => None,
        };
        // Drives have sent more during this write; everything that has arrived is written at once.
        let outcome = writing.await.map_err(|_| Error::Lane)?;
        // The chunks' memory is freed on this thread, which receives the next ones: a thread reuses
        // memory that it has freed itself, and new memory costs a page fault each 4 KiB.
        let (writer, done) = outcome.map_err(|refused| match refused {
            Refused::Sink(source) => Error::Write { source },
            Refused::Sum(index) => {
                let chunk = written + index;
                let member = entry.members[layout.member(chunk)];
                not_stored(&array.slots()[usize::from(member)].name, entry, chunk)
            }
        })?;
        written += small(done.len());
        drop(done);
        let Some(first) = first else { return end(entry, writer).await };
        let mut arrived = vec![first];
        while arrived.len() < ahead
            && pending.front().is_some_and(JoinHandle::is_finished)
            && let Some(read) = pending.pop_front()
        {
            arrived.push(read.await?);
        }
        top_up(&mut pending)?;
        progress(arrived.iter().map(|chunk| chunk.len() as u64).sum());
        let sums = (written..).zip(&arrived).map(|(chunk, _)| sum_of(chunk)).collect();
        writing = write(writer, Vec::new(), arrived, sums);
    }
}

fn small(chunks: usize) -> u32 {
    u32::try_from(chunks).expect("a few chunks of each drive")
}

/// Returns the error of a chunk that is sound and not the one that was put: an older one, or
/// another's.
fn not_stored(drive: &str, entry: &Entry, chunk: u32) -> Error {
    let why = format!("chunk {chunk} is not the one that was stored: its digest differs");
    Error::Corrupt { drive: drive.to_owned(), object: entry.name.clone(), why }
}

/// Compares digests, and returns the sink with its buffers flushed.
async fn end(entry: &Entry, writer: Writer) -> Result<Sink, Error> {
    let (mut sink, hash) = (writer.sink, writer.hasher.finalize());
    if entry.has_digest() && hash != entry.digest {
        return Err(Error::Digest { name: entry.name.clone() });
    }
    let flushed = compute_fn(Class::Foreground, 0, move || sink.flush().map(|()| sink));
    let sink = flushed.await.map_err(|_| Error::Lane)?;
    sink.map_err(|source| Error::Write { source })
}

/// Reads one chunk of a sealed object from the drive that holds it.
///
/// # Errors
/// [`Error::Corrupt`] when it is missing, damaged or has another length; a failed command.
pub(crate) async fn read_chunk(drive: &Drive, entry: &Entry, chunk: u32) -> Result<Buffer, Error> {
    let bytes = read_front(drive, entry, chunk, u32::MAX).await?;
    match entry.sum(chunk).is_some_and(|sum| sum != crc32c::crc32c(&bytes)) {
        true => Err(not_stored(&drive.name, entry, chunk)),
        false => Ok(bytes),
    }
}

/// Reads the first bytes of one chunk: `most`, or all if it is shorter.
///
/// # Errors
/// As [`read_chunk`].
pub(crate) async fn read_front(
    drive: &Drive,
    entry: &Entry,
    chunk: u32,
    most: u32,
) -> Result<Buffer, Error> {
    let layout = entry.layout();
    let length = layout.chunk_len(chunk);
    let corrupt = |why: String| Error::Corrupt {
        drive: drive.name.clone(),
        object: entry.name.clone(),
        why: format!("chunk {chunk} {why}"),
    };
    let failed = |error: csd_initiator::Error| match error.status() {
        Some(Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR) => {
            corrupt(format!("cannot be read: {}", crate::array::words(&error)))
        }
        _ => Error::command(drive, error),
    };
    let Placement::Block(extents) = &entry.placement else {
        let key = csd_nvme::execute::chunk_key(&entry.id.0, layout.number(chunk));
        let front = drive.objects.front(&key, length.min(most)).await.map_err(failed)?;
        return match front {
            Some((front, whole)) if whole == u64::from(length) => Ok(front),
            Some((_, whole)) => Err(corrupt(format!("has {whole} bytes, not {length}"))),
            None => Err(corrupt("is missing".to_owned())),
        };
    };
    let start = u64::from(layout.local(chunk)) * u64::from(entry.chunk_bytes);
    // A chunk never crosses a unit, so there is one range.
    let ranges = byte_ranges(&extents[layout.member(chunk)], start, length.into());
    let length = length.min(most);
    let whole = length.next_multiple_of(drive.block.block_bytes());
    let mut value = drive.block.read(ranges[0].0, whole as usize).await.map_err(failed)?;
    value.truncate(length as usize);
    Ok(value)
}

/// Sink and hasher of all bytes so far.
struct Writer {
    sink: Sink,
    hasher: blake3::Hasher,
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
            writer.hasher.update(chunk);
            writer.sink.write_all(chunk).map_err(Refused::Sink)?;
        }
        Ok((writer, chunks))
    })
}
