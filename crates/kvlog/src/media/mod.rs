//! Media: memory, a file or block device, or a simulated disk that loses unflushed writes on a
//! power cut. Tests can add faults to any of them.
//!
//! Invariants: a read returns the last completed write; after [`Media::sync`] every write completed
//! before it began is durable; after a failed sync the medium takes no more writes, and neither
//! once it is no longer what was opened.

mod device;
mod failures;
mod faulty;
mod file;
mod memory;
mod presence;
mod reserve;
mod single;
mod sync;
mod volatile;

pub use device::require_device;
pub use failures::{Failure, Failures, Operation};
pub use faulty::{FaultConfig, Faulty, Injected};
pub use file::{Direct, FileMedia};
pub use memory::Memory;
pub use reserve::OnZeros;
pub use single::{Access, Fault};
pub use sync::Syncer;
pub use volatile::{Losses, TORN_BYTES, Volatile, VolatileConfig};

use std::sync::Arc;

use csd_reactor::{Buffer, Class, JoinHandle, spawn, yield_now};

use crate::error::MediaError;

/// Unit in which a medium is split, and size of the superblock.
pub const PAGE_BYTES: u64 = 4096;
/// Space before the first namespace: two copies of the superblock, and reserve. A medium must be
/// empty there to be formatted.
pub const HEAD_BYTES: u64 = 1 << 20;
/// Length of the pieces in which zeros are written.
const ZERO_BYTES: u64 = 1 << 20;
/// Bytes copied from or to memory between two yields to other tasks: a few microseconds.
pub const COPY_BYTES: usize = 16 << 10;
/// Bytes of memory freed between two yields.
const DISCARD_BYTES: u64 = 256 << 10;

/// Result of an access that returns its buffer.
pub type Returned<T> = (Result<(), MediaError>, T);

/// A medium. Clones are the same medium, usable from every core.
#[derive(Clone, Debug)]
pub enum Media {
    /// Memory, which is lost with the process.
    Memory(Arc<Memory>),
    /// A plain file or a block device.
    File(FileMedia),
    /// Simulated disk, which loses unflushed writes on a power cut.
    Volatile(Arc<Volatile>),
    /// Another medium, with faults.
    Faulty(Arc<Faulty>),
}

impl Media {
    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Memory(memory) => memory.bytes(),
            Self::File(file) => file.bytes(),
            Self::Volatile(volatile) => volatile.bytes(),
            Self::Faulty(faulty) => faulty.bytes(),
        }
    }

    /// Returns true when a sync costs nothing because nothing outlives the process.
    pub fn is_volatile(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Returns true when a sync has failed, so that no write can succeed.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Memory(_) | Self::Volatile(_) => false,
            Self::File(file) => file.is_read_only(),
            Self::Faulty(faulty) => faulty.is_read_only(),
        }
    }

    /// Returns the accesses that failed.
    pub fn failures(&self) -> &Failures {
        match self {
            Self::Memory(memory) => memory.failures(),
            Self::File(file) => file.failures(),
            Self::Volatile(volatile) => volatile.failures(),
            Self::Faulty(faulty) => faulty.failures(),
        }
    }

    /// Returns where it lies: a path, or what it is else.
    pub fn place(&self) -> String {
        match self {
            Self::Memory(_) => "memory".to_owned(),
            Self::File(file) => file.path().display().to_string(),
            Self::Volatile(_) | Self::Faulty(_) => "simulated".to_owned(),
        }
    }

    /// Checks that a program that opens the medium again finds what is written now, as far as that
    /// is seen without waiting.
    ///
    /// # Errors
    /// [`MediaError::Gone`].
    fn check_presence(&self) -> Result<(), MediaError> {
        match self {
            Self::Memory(_) | Self::Volatile(_) => Ok(()),
            Self::File(file) => file.check_presence(),
            Self::Faulty(faulty) => faulty.check_presence(),
        }
    }

    /// Takes no more writes.
    fn refuse_writes(&self) {
        match self {
            Self::Memory(_) | Self::Volatile(_) => {}
            Self::File(file) => file.refuse_writes(),
            Self::Faulty(faulty) => faulty.refuse_writes(),
        }
    }

    /// Notes an access that failed.
    fn noted<T>(&self, operation: Operation, at: (u64, u64), result: &Result<T, MediaError>) {
        if let Err(error) = result {
            self.failures().note_error(operation, at, error);
        }
    }

    /// Returns a description for the log of the start.
    pub fn note(&self) -> &str {
        match self {
            Self::Memory(_) => "in memory, lost when the drive stops",
            Self::File(file) => file.note(),
            Self::Volatile(_) | Self::Faulty(_) => "simulated",
        }
    }

    /// Fills `buffer` from `offset` on. May return another buffer of the same length, with at least
    /// the headroom and tailroom of the given one.
    pub async fn read(&self, offset: u64, mut buffer: Buffer) -> Returned<Buffer> {
        if !self.holds(offset, buffer.len()) {
            return (Err(MediaError::OutOfRange), buffer);
        }
        let bytes = buffer.len() as u64;
        let returned = match self {
            Self::Memory(memory) => {
                let pieces = buffer.chunks_mut(COPY_BYTES);
                in_turns(offset, pieces, |at, piece| memory.read(at, piece)).await;
                (Ok(()), buffer)
            }
            Self::File(file) => file.read(offset, buffer).await,
            Self::Volatile(volatile) => volatile.read(offset, buffer).await,
            Self::Faulty(faulty) => Box::pin(faulty.read(offset, buffer)).await,
        };
        self.noted(Operation::Read, (offset, bytes), &returned.0);
        returned
    }

    /// Returns true when [`Self::read_now`] and [`Self::write_now`] work on this medium.
    pub fn is_synchronous(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Fills `into` from `offset` on, without waiting; false when that cannot be done.
    pub fn read_now(&self, offset: u64, into: &mut [u8]) -> bool {
        match self {
            Self::Memory(memory) if self.holds(offset, into.len()) => {
                memory.read(offset, into);
                true
            }
            _ => false,
        }
    }

    /// Writes `from` at `offset`, without waiting; false when that cannot be done.
    pub fn write_now(&self, offset: u64, from: &[u8]) -> bool {
        match self {
            Self::Memory(memory) if self.holds(offset, from.len()) => {
                memory.write(offset, from);
                true
            }
            _ => false,
        }
    }

    /// Writes the buffers one after another from `offset` on.
    pub async fn write(&self, offset: u64, buffers: Vec<Buffer>) -> Returned<Vec<Buffer>> {
        let bytes = buffers.iter().map(|buffer| buffer.len()).sum();
        if !self.holds(offset, bytes) {
            return (Err(MediaError::OutOfRange), buffers);
        }
        let returned = match self {
            Self::Memory(memory) => {
                let pieces = buffers.iter().flat_map(|buffer| buffer.chunks(COPY_BYTES));
                in_turns(offset, pieces, |at, piece| memory.write(at, piece)).await;
                (Ok(()), buffers)
            }
            Self::File(file) => file.write(offset, buffers).await,
            Self::Volatile(volatile) => {
                let volatile = Arc::clone(volatile);
                on_its_own(async move { volatile.write(offset, buffers).await }).await
            }
            Self::Faulty(faulty) => {
                let faulty = Arc::clone(faulty);
                on_its_own(async move { faulty.write(offset, buffers).await }).await
            }
        };
        self.noted(Operation::Write, (offset, bytes as u64), &returned.0);
        returned
    }

    /// Makes a range read as zeros, and frees its space where the medium can. Like a write it is
    /// durable after the next sync, and may tear at 512 bytes.
    ///
    /// # Errors
    /// As a write. The range then has zeros in part and its old bytes in part.
    pub async fn discard(&self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes()) {
            return Err(MediaError::OutOfRange);
        }
        match self {
            Self::Memory(memory) => {
                discard(memory, offset, bytes).await;
                Ok(())
            }
            Self::File(file) => {
                let punched = file.punch(offset, bytes).await;
                self.noted(Operation::Discard, (offset, bytes), &punched);
                if punched? { Ok(()) } else { self.zero(offset, bytes).await }
            }
            Self::Volatile(_) | Self::Faulty(_) => self.zero(offset, bytes).await,
        }
    }

    /// Writes zeros, and keeps the range's space.
    ///
    /// # Errors
    /// As a write. The range then has zeros in part and its old bytes in part.
    pub async fn zero(&self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        if let Self::Memory(memory) = self {
            // Freed memory can always be written again, so nothing has to keep its space.
            return match offset.checked_add(bytes) {
                Some(end) if end <= self.bytes() => {
                    discard(memory, offset, bytes).await;
                    Ok(())
                }
                _ => Err(MediaError::OutOfRange),
            };
        }
        let mut done = 0;
        let mut zeros = Vec::new();
        while done < bytes {
            let length = (bytes - done).min(ZERO_BYTES);
            let size = usize::try_from(length).expect("at most a mebibyte");
            if zeros.first().is_none_or(|buffer: &Buffer| buffer.len() != size) {
                zeros = vec![Buffer::zeroed(size)];
            }
            let (result, back) = self.write(offset + done, zeros).await;
            result?;
            zeros = back;
            done += length;
        }
        Ok(())
    }

    /// Makes every completed write durable. While a drive runs only [`Syncer`] calls this, because
    /// only one of two overlapping syncs of a file reports a lost write.
    ///
    /// # Errors
    /// When the medium cannot promise it. It is read-only then.
    pub async fn sync(&self) -> Result<(), MediaError> {
        let result = match self {
            Self::Memory(_) => Ok(()),
            Self::File(file) => file.sync().await,
            Self::Volatile(volatile) => {
                let volatile = Arc::clone(volatile);
                on_its_own(async move { volatile.sync().await }).await
            }
            Self::Faulty(faulty) => {
                let faulty = Arc::clone(faulty);
                on_its_own(async move { faulty.sync().await }).await
            }
        };
        self.noted(Operation::Sync, (0, 0), &result);
        result
    }

    fn holds(&self, offset: u64, length: usize) -> bool {
        offset.checked_add(length as u64).is_some_and(|end| end <= self.bytes())
    }
}

/// Runs an access of a simulated medium to its end, even when its caller is gone, as an operating
/// system does for a file.
fn on_its_own<T: 'static>(access: impl Future<Output = T> + 'static) -> JoinHandle<T> {
    spawn(Class::Foreground, access)
}

/// Makes a range of memory zeros, and yields to other tasks regularly.
async fn discard(memory: &Memory, offset: u64, bytes: u64) {
    let (mut at, end) = (offset, offset + bytes);
    while at < end {
        // Whole pieces, so that their stripes are freed.
        let next = (at + 1).next_multiple_of(DISCARD_BYTES).min(end);
        memory.discard(at, next - at);
        at = next;
        if at < end {
            yield_now().await;
        }
    }
}

/// Calls `copy` with each piece and its offset, and yields to other tasks after every
/// [`COPY_BYTES`] bytes: small pieces are copied together.
pub async fn in_turns<P: AsRef<[u8]>>(
    start: u64,
    pieces: impl Iterator<Item = P>,
    mut copy: impl FnMut(u64, P),
) {
    let (mut at, mut copied) = (start, 0);
    for piece in pieces {
        let bytes = piece.as_ref().len();
        if copied > 0 && copied + bytes > COPY_BYTES {
            yield_now().await;
            copied = 0;
        }
        copy(at, piece);
        at += bytes as u64;
        copied += bytes;
    }
}
