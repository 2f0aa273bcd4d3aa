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

/// Where the bytes of an object go.
pub type Sink = Box<dyn Write + Send>;

/// What an object is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its bytes.
    Raw,
    /// A `.npy` file: a header with its type and shape, and its bytes.
    Npy,
}

/// Writes the object that `entry` describes to `sink`, and gives the entry and the sink back.
///
/// # Errors
/// [`Error::Removed`] when it was removed meanwhile; [`Error::Digest`] when what was written is not
/// what was put; [`Error::Input`] when bytes are to be an array; what the drives or the sink did.
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
        // What is missing or overwritten may be so because the object is gone.
        Err(error @ (Error::Corrupt { .. } | Error::Digest { .. })) => {
            match lookup(array, &entry.name).await {
                Ok(now) if now.id == entry.id => Err(error),
                Ok(_) | Err(Error::Missing { .. }) => {
                    Err(Error::Removed { name: entry.name.clone() })
                }
                Err(_) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// What comes before the object's own bytes.
fn header(entry: &Entry, form: Form) -> Result<Vec<u8>, Error> {
    if form == Form::Raw {
        return Ok(Vec::new());
    }
    npy_header(entry.element, &entry.shape).ok_or_else(|| Error::Input {
        name: entry.name.clone(),
        why: format!("elements of type {} have no place in a .npy file", entry.element),
    })
}

/// Writes what `entry` describes to `sink`, and gives the sink back.
async fn copy(
    array: &Array,
    entry: &Rc<Entry>,
    (header, sink): (Vec<u8>, Sink),
    progress: &Progress,
) -> Result<Sink, Error> {
    let layout = entry.layout();
    let writer = Writer { sink, hasher: blake3::Hasher::new() };
    let mut writing = write(writer, header, Vec::new());
    let mut pending: VecDeque<JoinHandle<Result<Buffer, Error>>> = VecDeque::new();
    let ahead = WINDOW * entry.members.len();
    let mut next = 0;
    loop {
        let mut top_up = |pending: &mut VecDeque<_>| {
            while next < layout.chunks() && pending.len() < ahead {
                let member = entry.members[layout.member(next)];
                let drive = Rc::clone(array.drive(member.into())?);
                let (entry, chunk) = (Rc::clone(entry), next);
                pending.push_back(spawn(Class::Foreground, async move {
                    read_chunk(&drive, &entry, chunk).await
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
        // Drives sent while this was written; all that has arrived is written in one go, while
        // they send more.
        let written = writing.await.map_err(|_| Error::Lane)?;
        // The chunks' memory is freed here, where the next ones are received: a thread uses again
        // what it has freed itself, and new memory costs a page fault each 4 KiB.
        let (writer, _) = written.map_err(|source| Error::Write { source })?;
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
        writing = write(writer, Vec::new(), arrived);
    }
}

/// Compares digests, and gives the sink back with nothing left in its buffers.
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
    read_front(drive, entry, chunk, u32::MAX).await
}

/// Reads the first bytes of one chunk, as many as it has and at most `most`.
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

/// What has seen all bytes so far.
struct Writer {
    sink: Sink,
    hasher: blake3::Hasher,
}

/// Writes `header`, which has no part in the digest, then hashes and writes `chunks`, and gives
/// them back. Begins now, on the compute lane: both block, or take long.
fn write(
    mut writer: Writer,
    header: Vec<u8>,
    chunks: Vec<Buffer>,
) -> Compute<impl Job<Output = io::Result<(Writer, Vec<Buffer>)>>> {
    compute_fn(Class::Foreground, 0, move || {
        writer.sink.write_all(&header)?;
        for chunk in &chunks {
            writer.hasher.update(chunk);
            writer.sink.write_all(chunk)?;
        }
        Ok((writer, chunks))
    })
}
