//! Put: staged entry, then chunks, then the sealed entry.
//!
//! A put that is interrupted leaves a staged entry and chunks that are not visible; the next put or
//! remove of the name deletes them. A put that fails while it runs cleans up after itself. A put
//! whose name another writer has taken notices this with its next chunk after [`CHECK_INTERVAL`].

use csd_reactor::{Buffer, Class, compute_fn, random_u64};

use super::arrange::Arrange;
use super::cut::{Cutter, Packed, Packer, Read};
use super::draft::{Shape, Stored};
use super::encode::Encoder;
use super::encoding::Piece;
use super::flow::Flow;
use super::naming::Naming;
use super::writer::Writer;
use super::{Error, Progress, parity};
use crate::array::Array;
use crate::catalogue::{Entry, On};
use crate::layout::{self, Parts, Scheme};
use crate::room;
use crate::source::Source;
use crate::steady::steadily;

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
    /// Protection against the loss of drives.
    pub protect: Option<Scheme>,
    /// Size of the pages that get checksums of their own, bytes: a power of two from 4,096 to
    /// 8 MiB. `None` if none get one.
    pub page_bytes: Option<u32>,
    /// Time at which the content was put, milliseconds since 1970; `None` if
    /// that is this put.
    pub stored_unix_ms: Option<u64>,
}

impl PutOptions {
    /// Returns the options of an object of values that is spread over the drives, without
    /// protection and checksums of pages.
    #[must_use]
    pub fn new(name: String) -> Self {
        Self {
            name,
            on: On::Kv,
            chunk_bytes: None,
            arrange: Arrange::Spread,
            align: None,
            protect: None,
            page_bytes: None,
            stored_unix_ms: None,
        }
    }
}

/// Stores `source` as a new object.
///
/// # Errors
/// [`NameError::Exists`](crate::error::NameError::Exists) when the name is taken; an error
/// of the source, the drives or the network.
pub async fn put(
    array: &Array,
    source: Source,
    options: &PutOptions,
    progress: &Progress,
) -> Result<Stored, Error> {
    put_under(array, source, options, false, progress).await
}

/// Stores `source` in place of the object of this name, which stays until the new one is whole; as
/// a new object if there is none.
///
/// # Errors
/// Those of [`put`].
pub async fn replace(
    array: &Array,
    source: Source,
    options: &PutOptions,
    progress: &Progress,
) -> Result<Stored, Error> {
    put_under(array, source, options, true, progress).await
}

async fn put_under(
    array: &Array,
    source: Source,
    options: &PutOptions,
    replaces: bool,
    progress: &Progress,
) -> Result<Stored, Error> {
    // Checked before the limits of the drives are computed: there may be no drive.
    array.require_majority()?;
    let shape = shape(array, &source, options)?;
    let begin = async || Naming::begin(array, &options.name, shape.clone(), replaces).await;
    let mut naming = steadily(array, begin).await?;
    let cutter = Cutter::new(&options.arrange, options.align.as_ref(), &shape, &source)?;
    // The first chunk is read before anything is written: it reveals most bad inputs.
    let encoder = Encoder::of(naming.entry(), cutter.kind().is_none());
    let (hasher, ready) = (blake3::Hasher::new(), Vec::new());
    let mut reader = Reader { source, cutter, hasher, encoder, ready };
    let first;
    (reader, first) = reader.next(shape.chunk_bytes).await?;
    naming.write(array).await?;
    match fill(array, naming.entry(), (reader, first), options.page_bytes, progress).await {
        Ok(()) => naming.seal(array).await,
        Err(error) => {
            // The user must see the put's own error, not one of the clean-up.
            naming.abandon(array).await;
            Err(room::explain(array, options.on, error).await)
        }
    }
}

/// Returns the properties of the object: those of the object it is aligned to, or those in the
/// options.
fn shape(array: &Array, source: &Source, options: &PutOptions) -> Result<Shape, Error> {
    let (element, on) = (source.element(), options.on);
    let stored_unix_ms = options.stored_unix_ms;
    if let Some(to) = &options.align {
        if options.chunk_bytes.is_some_and(|bytes| bytes != u64::from(to.chunk_bytes)) {
            let why = format!("{:?} has chunks of {} bytes", to.name, to.chunk_bytes);
            return Err(Error::Input { name: options.name.clone(), why });
        }
        let (chunk_bytes, offset, members) = (to.chunk_bytes, to.offset, to.members.clone());
        let protection = parity::plan(array, &members, options.protect)?;
        let whole = to.whole && protection.is_none();
        let offset = Some(offset);
        return Ok(Shape {
            element,
            on,
            chunk_bytes,
            offset,
            members,
            whole,
            protection,
            stored_unix_ms,
        });
    }
    let value_bytes_max = array.drives().map(|drive| drive.value_bytes_max).min().unwrap_or(0);
    let block_bytes = array.drives().map(|drive| drive.block.block_bytes()).max().unwrap_or(0);
    let chunk_bytes = layout::chunk_bytes(options.chunk_bytes, value_bytes_max)?;
    if on == On::Block && !chunk_bytes.is_multiple_of(block_bytes.max(1)) {
        let chunk_bytes = chunk_bytes.into();
        return Err(layout::Error::ChunkBytes { chunk_bytes, largest: value_bytes_max }.into());
    }
    // A drive without a vote may belong to another array.
    let mut members = array.voting();
    // A protected object is never whole: each piece of a stripe needs a drive of its own.
    let whole = matches!(options.arrange, Arrange::Whole) && options.protect.is_none();
    if whole {
        let drawn = usize::try_from(random_u64() % members.len().max(1) as u64);
        members = vec![members[drawn.expect("fewer drives than bytes")]];
    }
    let spread = matches!(options.arrange, Arrange::Spread | Arrange::Whole);
    let offset = if spread && !whole { None } else { Some(0) };
    let protection = parity::plan(array, &members, options.protect)?;
    Ok(Shape { element, on, chunk_bytes, offset, members, whole, protection, stored_unix_ms })
}

/// Writes all chunks, and completes the entry accordingly.
async fn fill(
    array: &Array,
    entry: &mut Entry,
    (reader, first): (Reader, Read),
    page_bytes: Option<u32>,
    progress: &Progress,
) -> Result<(), Error> {
    let is_striped = reader.encoder.is_some();
    let begin = async || Writer::new(array, entry, is_striped, page_bytes).await;
    let mut writer = steadily(array, begin).await?;
    let sent = send_all(&mut writer, reader, first, progress).await;
    let finished = writer.finish().await;
    let (reader, packed) = sent?;
    let finished = finished?;
    // The rest goes to all drives that are up.
    array.renew().await;
    entry.bytes = packed.bytes;
    entry.shape = reader.source.shape();
    entry.digest = *reader.hasher.finalize().as_bytes();
    if packed.sums.len() <= SUMS_MAX {
        entry.sums = packed.sums;
    }
    let members = entry.member_count();
    entry.parts = match reader.cutter.kind() {
        Some(kind) => Parts::new(kind, entry.chunk_bytes, members, packed.parts)?,
        None => None,
    };
    // The bytes of a put count once.
    let flow = Flow::free(array, &Progress::none());
    parity::complete(array, entry, finished, page_bytes, &flow).await
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
        writer.send_parity(std::mem::take(&mut reader.ready)).await?;
        progress.add(length);
        if length < u64::from(chunk_bytes) {
            break;
        }
        (reader, read) = reader.next(chunk_bytes).await?;
    }
    let (rest, packed) = packer.finish(reader.cutter.finish())?;
    for (member, number, chunk) in rest {
        writer.send(member, number, chunk).await?;
    }
    let last = reader.encoder.as_mut().map_or_else(Vec::new, Encoder::finish);
    writer.send_parity(last).await?;
    Ok((reader, packed))
}

/// Reads and hashes on the compute thread: reading blocks, and hashing takes long.
struct Reader {
    source: Source,
    cutter: Cutter,
    hasher: blake3::Hasher,
    /// Computes parity, if the object is protected and its stripes are consecutive chunks.
    encoder: Option<Encoder>,
    /// Parity of the stripe that the last chunk has completed.
    ready: Vec<Piece>,
}

impl Reader {
    async fn next(mut self, chunk_bytes: u32) -> Result<(Self, Read), Error> {
        // Allocated on the thread that frees the chunks after sending: a thread reuses memory that
        // it has freed itself, and new memory costs a page fault each 4 KiB.
        let mut bytes = Buffer::with_room(0, chunk_bytes as usize, 0);
        self.encoder.iter_mut().for_each(Encoder::prepare);
        let read = compute_fn(Class::Foreground, 0, move || {
            let filled = self.source.fill(&mut bytes)?;
            bytes.truncate(filled);
            self.hasher.update(&bytes);
            let sum = self.cutter.kind().is_none().then(|| crc32c::crc32c(&bytes));
            let cuts = self.cutter.cut(&bytes)?;
            if let Some(encoder) = self.encoder.as_mut().filter(|_| !bytes.is_empty()) {
                self.ready = encoder.add(&bytes);
            }
            Ok::<_, Error>((self, Read { bytes, sum, cuts }))
        });
        read.await.map_err(|_| Error::ComputeThread)?
    }
}
