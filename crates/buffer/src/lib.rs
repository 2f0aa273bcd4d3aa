//! [`Buffer`]: owned bytes, aligned for direct I/O, with room to grow at both ends.
//!
//! Memory is always initialised: zeroed when it comes from the allocator, with its last user's
//! bytes when it comes from the free list. Invariants: the block's address is a multiple of
//! [`ALIGNMENT`]; `start <= end <= capacity`; each thread holds at most `SHORT_KEPT_BYTES` of free
//! blocks of up to `SHORT_BYTES`, and the process at most `LONG_KEPT_BYTES` of longer ones.
#![allow(unsafe_code)]

mod work;

pub use work::{ITEM, work, worked};

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Alignment of a buffer's payload, bytes: the largest logical block size of disks.
pub const ALIGNMENT: usize = 4096;

/// Maximum size of a block that the thread which freed it reuses, bytes. The thread that frees a
/// chunk of an object is often not the one that needs the next.
const SHORT_BYTES: usize = 256 << 10;
/// Maximum size of such blocks that a thread holds while they are free, bytes.
const SHORT_KEPT_BYTES: usize = 32 << 20;
/// Maximum size of a block that any thread reuses, bytes; larger ones go back to the allocator. A
/// value of 16 MiB and its header are shorter.
const LONG_BYTES: usize = 20 << 20;
/// Maximum size of longer blocks that the process holds while they are free, bytes: 8 values of
/// 16 MiB. The allocator would return each of them to the kernel, and a page fault for every page
/// of a new one costs more than the copy of its bytes.
const LONG_KEPT_BYTES: usize = 160 << 20;

/// Owned bytes; see the module's text. Dereferences to the live range, which may grow into the
/// headroom before it and the tailroom after it.
#[derive(Default)]
pub struct Buffer {
    block: Option<Block>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// Returns a buffer of `len` zero bytes.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let (block, is_zero) = take_block(len);
        let mut buffer = Self { block, start: 0, end: len };
        if !is_zero {
            buffer.fill(0);
        }
        worked(len as u64);
        buffer
    }

    /// Returns a buffer of `len` bytes with unspecified contents, at least `head` bytes of headroom
    /// and `tail` of tailroom. The live range starts at a multiple of [`ALIGNMENT`].
    #[must_use]
    pub fn with_room(head: usize, len: usize, tail: usize) -> Self {
        let start = head.next_multiple_of(ALIGNMENT);
        let (block, _) = take_block(start + len + tail);
        Self { block, start, end: start + len }
    }

    /// Returns a copy of `bytes`.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Self {
        let mut buffer = Self::with_room(0, bytes.len(), 0);
        buffer.copy_from_slice(bytes);
        worked(bytes.len() as u64);
        buffer
    }

    /// Returns the length of the live range, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns true if the live range is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the number of bytes before the live range.
    #[must_use]
    pub fn headroom(&self) -> usize {
        self.start
    }

    /// Returns the number of bytes after the live range.
    #[must_use]
    pub fn tailroom(&self) -> usize {
        self.capacity() - self.end
    }

    /// Returns the size of the whole block, bytes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.len)
    }

    /// Grows the live range by `count` bytes into the headroom; returns them, with unspecified
    /// contents.
    ///
    /// # Panics
    /// If there is less headroom.
    pub fn prepend(&mut self, count: usize) -> &mut [u8] {
        assert!(count <= self.start, "prepend {count} into headroom of {}", self.start);
        self.start -= count;
        &mut self[..count]
    }

    /// Grows the live range by `count` bytes into the tailroom; returns them, with unspecified
    /// contents.
    ///
    /// # Panics
    /// If there is less tailroom.
    pub fn append(&mut self, count: usize) -> &mut [u8] {
        assert!(count <= self.tailroom(), "append {count} into tailroom of {}", self.tailroom());
        let old_len = self.len();
        self.end += count;
        &mut self[old_len..]
    }

    /// Cuts the live range to its first `len` bytes. A shorter range stays as it is.
    pub fn truncate(&mut self, len: usize) {
        self.end = self.end.min(self.start + len);
    }

    /// Removes the first `count` bytes from the live range; they become headroom.
    ///
    /// # Panics
    /// If the live range is shorter.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "advance {count} in {} bytes", self.len());
        self.start += count;
    }

    /// Sets the live range's length. Bytes that it gains are unspecified.
    ///
    /// # Panics
    /// If the capacity is too small.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity() - self.start, "set_len {len} beyond the capacity");
        self.end = self.start + len;
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], |block| &block.bytes()[self.start..self.end])
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.block {
            Some(block) => &mut block.bytes_mut()[self.start..self.end],
            None => &mut [],
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, headroom, tailroom) = (self.len(), self.headroom(), self.tailroom());
        write!(f, "Buffer({headroom}..{len}..{tailroom})")
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            free_block(block);
        }
    }
}

/// An aligned, initialised allocation of whole pages.
struct Block {
    bytes: NonNull<u8>,
    len: usize,
}

// SAFETY: a block owns its memory alone, as a `Box<[u8]>` would.
unsafe impl Send for Block {}
// SAFETY: shared references only read.
unsafe impl Sync for Block {}

impl Block {
    /// Allocates `len` bytes, a multiple of [`ALIGNMENT`] and not 0.
    fn new(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout's size is not 0.
        let bytes = unsafe { alloc_zeroed(layout) };
        let Some(bytes) = NonNull::new(bytes) else { handle_alloc_error(layout) };
        Self { bytes, len }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, ALIGNMENT).expect("a length that fits in memory")
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes, borrowed with the block.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` initialised bytes, borrowed exclusively with the block.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not freed before.
        unsafe { dealloc(self.bytes.as_ptr(), Self::layout(self.len)) }
    }
}

/// Free blocks by size class.
#[derive(Default)]
struct FreeList {
    classes: Vec<Vec<Block>>,
    kept_bytes: usize,
}

thread_local! {
    /// Short blocks that this thread freed.
    static SHORT: RefCell<FreeList> = RefCell::default();
}

/// Long blocks that any thread freed: often another one than the next that needs one.
static LONG: Mutex<FreeList> = Mutex::new(FreeList { classes: Vec::new(), kept_bytes: 0 });

/// Locks the list of long blocks. Its code does not panic while it changes the list.
fn long() -> MutexGuard<'static, FreeList> {
    LONG.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FreeList {
    fn take(&mut self, class: usize) -> Option<Block> {
        let block = self.classes.get_mut(class)?.pop()?;
        self.kept_bytes -= block.len;
        Some(block)
    }

    /// Keeps a block if at most `most` bytes are kept then, else returns it.
    fn put(&mut self, block: Block, most: usize) -> Option<Block> {
        if self.kept_bytes + block.len > most {
            return Some(block);
        }
        let (class, _) = size_class(block.len);
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Vec::new);
        }
        self.kept_bytes += block.len;
        self.classes[class].push(block);
        None
    }
}

/// Returns a block of at least `len` bytes, and true if it is known to be all zero.
fn take_block(len: usize) -> (Option<Block>, bool) {
    if len == 0 {
        return (None, true);
    }
    let (class, class_len) = size_class(len);
    let recycled = if class_len <= SHORT_BYTES {
        SHORT.try_with(|free| free.borrow_mut().take(class)).ok().flatten()
    } else if class_len <= LONG_BYTES {
        long().take(class)
    } else {
        None
    };
    match recycled {
        Some(block) => (Some(block), false),
        None => (Some(Block::new(class_len)), true),
    }
}

/// Keeps a block for reuse, or returns it to the allocator.
fn free_block(block: Block) {
    // The allocator gets the block after the lock is released.
    let _not_kept = if block.len <= SHORT_BYTES {
        // After the thread's locals are gone the block goes straight to the allocator.
        SHORT.try_with(|free| free.borrow_mut().put(block, SHORT_KEPT_BYTES)).ok().flatten()
    } else if block.len <= LONG_BYTES {
        long().put(block, LONG_KEPT_BYTES)
    } else {
        None
    };
}

/// Returns number and size of the smallest class that holds `len` bytes: whole pages, four classes
/// for each doubling, so that at most a fifth of a block of more than 4 pages is waste.
fn size_class(len: usize) -> (usize, usize) {
    let pages = len.div_ceil(ALIGNMENT).max(1);
    if pages <= 4 {
        return (pages - 1, pages * ALIGNMENT);
    }
    // 4 * 2^shift < pages <= 8 * 2^shift
    let shift = (pages - 1).ilog2() as usize - 2;
    let quarters = pages.div_ceil(1 << shift);
    (4 * shift + quarters - 1, (quarters << shift) * ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_hold_what_they_are_asked_for_and_round_trip() {
        let mut last = (0, 0);
        for pages in 1..5000 {
            let (class, bytes) = size_class(pages * ALIGNMENT);
            assert!(bytes >= pages * ALIGNMENT && bytes <= pages * ALIGNMENT * 5 / 4);
            assert_eq!(size_class(bytes), (class, bytes));
            assert!((class, bytes) == last || (class > last.0 && bytes > last.1) || pages == 1);
            last = (class, bytes);
        }
    }

    #[test]
    fn free_memory_is_bounded() {
        let buffers: Vec<_> = (0..140).map(|_| Buffer::zeroed(SHORT_BYTES)).collect();
        drop(buffers);
        SHORT.with(|free| {
            let free = free.borrow();
            let kept: usize = free.classes.iter().flatten().map(|block| block.len).sum();
            assert_eq!(kept, free.kept_bytes);
            assert_eq!(kept, SHORT_KEPT_BYTES);
        });
    }

    /// The only test here that uses long blocks: they belong to the process.
    #[test]
    fn free_long_blocks_are_bounded() {
        let long_len = 16 << 20;
        let buffers: Vec<_> = (0..12).map(|_| Buffer::with_room(0, long_len, 0)).collect();
        drop(buffers);
        assert_eq!(long().kept_bytes, LONG_KEPT_BYTES / long_len * long_len);
        drop(Buffer::with_room(0, LONG_BYTES + 1, 0));
        assert_eq!(long().kept_bytes, LONG_KEPT_BYTES / long_len * long_len);
    }
}
