//! The memory namespace (SLM): bytes in the drive's RAM that programs and hosts share.
//!
//! Every core reads and writes it in place, so no byte moves between cores. Pages of 64 KiB are
//! allocated when they are first written. Each has a lock that is held for one copy within the
//! page, a few microseconds, never across an await, and never by a compute thread, which may be
//! descheduled for long: a core that finds a page locked waits for another core's memcpy only. The
//! contents are lost when the drive stops. Invariants: a page that does not exist reads as zeros;
//! concurrent writes of one page are serialised; ranges of several pages are not atomic.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};

use csd_nvme::memory::Range;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, worked, yield_now};

use csd_kvlog::media::{COPY_BYTES, in_turns};
use csd_nvme::vendor::NSID_MEMORY;

/// Bytes of a page.
const PAGE_BYTES: usize = 64 << 10;

type Page = Option<Box<[u8]>>;

/// The memory of a drive, shared by its cores.
#[derive(Debug)]
pub struct LocalMemory {
    pages: Vec<RwLock<Page>>,
    bytes: u64,
    allocated_bytes: AtomicU64,
}

impl LocalMemory {
    /// Makes a memory of `bytes` bytes, all zero and none allocated.
    pub fn new(bytes: u64) -> Self {
        let count = usize::try_from(bytes.div_ceil(PAGE_BYTES as u64)).unwrap_or(usize::MAX);
        let pages = std::iter::repeat_with(RwLock::default).take(count).collect();
        Self { pages, bytes, allocated_bytes: AtomicU64::new(0) }
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the allocated bytes.
    pub fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes.load(Relaxed)
    }

    /// Checks that a range of namespace `nsid` is in this memory.
    ///
    /// # Errors
    /// [`Status::INVALID_MEMORY_NAMESPACE`], [`Status::LBA_OUT_OF_RANGE`] beyond the end.
    pub fn check_of(&self, nsid: u32, range: Range) -> Result<(), Status> {
        if nsid != NSID_MEMORY || self.bytes == 0 {
            return Err(Status::INVALID_MEMORY_NAMESPACE);
        }
        self.check(range)
    }

    /// Checks that a range lies in this memory.
    ///
    /// # Errors
    /// [`Status::LBA_OUT_OF_RANGE`].
    pub fn check(&self, range: Range) -> Result<(), Status> {
        match range.start.checked_add(range.length) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(Status::LBA_OUT_OF_RANGE),
        }
    }

    /// Reads `out.len()` bytes from `start` on, a range that [`Self::check`] has passed.
    pub fn read(&self, start: u64, out: &mut [u8]) {
        worked(out.len() as u64);
        let mut done = 0;
        for (page, at, length) in parts(start, out.len()) {
            let part = &mut out[done..done + length];
            match &*self.pages[page].read().unwrap_or_else(PoisonError::into_inner) {
                Some(bytes) => part.copy_from_slice(&bytes[at..at + length]),
                None => part.fill(0),
            }
            done += length;
        }
    }

    /// Writes `data` from `start` on, a range that [`Self::check`] has passed.
    pub fn write(&self, start: u64, data: &[u8]) {
        worked(data.len() as u64);
        let mut done = 0;
        for (page, at, length) in parts(start, data.len()) {
            let mut page = self.pages[page].write().unwrap_or_else(PoisonError::into_inner);
            let bytes = page.get_or_insert_with(|| {
                self.allocated_bytes.fetch_add(PAGE_BYTES as u64, Relaxed);
                vec![0; PAGE_BYTES].into_boxed_slice()
            });
            bytes[at..at + length].copy_from_slice(&data[done..done + length]);
            done += length;
        }
    }

    /// As [`Self::read`], with regular yields to other tasks.
    pub async fn read_in_turns(&self, start: u64, out: &mut [u8]) {
        in_turns(start, out.chunks_mut(COPY_BYTES), |at, piece| self.read(at, piece)).await;
    }

    /// As [`Self::write`], with regular yields to other tasks.
    pub async fn write_in_turns(&self, start: u64, data: &[u8]) {
        in_turns(start, data.chunks(COPY_BYTES), |at, piece| self.write(at, piece)).await;
    }

    /// Makes a range that [`Self::check`] has passed zero, and frees whole pages.
    fn zero(&self, start: u64, length: usize) {
        for (page, at, length) in parts(start, length) {
            let mut page = self.pages[page].write().unwrap_or_else(PoisonError::into_inner);
            if length < PAGE_BYTES {
                if let Some(bytes) = &mut *page {
                    bytes[at..at + length].fill(0);
                }
            } else if page.take().is_some() {
                self.allocated_bytes.fetch_sub(PAGE_BYTES as u64, Relaxed);
            }
        }
    }

    /// Makes a range zero.
    ///
    /// # Errors
    /// [`Status::LBA_OUT_OF_RANGE`].
    pub async fn fill(&self, range: Range) -> Result<(), Status> {
        self.check(range)?;
        for (start, length) in turns(range) {
            self.zero(start, length);
            yield_now().await;
        }
        Ok(())
    }

    /// Copies ranges one behind the other to `to`. Changes nothing when one of them is not in
    /// memory or shares a byte with the destination.
    ///
    /// # Errors
    /// [`Status::LBA_OUT_OF_RANGE`], [`Status::OVERLAPPING_RANGE`].
    pub async fn copy(&self, sources: &[Range], to: Range) -> Result<(), Status> {
        self.check(to)?;
        for source in sources {
            self.check(*source)?;
            if source.overlaps(to) {
                return Err(Status::OVERLAPPING_RANGE);
            }
        }
        let mut at = to.start;
        let mut bounce = Buffer::with_room(0, PAGE_BYTES, 0);
        for source in sources {
            for (start, length) in turns(*source) {
                bounce.set_len(length);
                self.read(start, &mut bounce);
                self.write(at, &bounce);
                at += bounce.len() as u64;
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Reads the bytes of a range that [`Self::check`] has passed, in buffers of at most `piece`
    /// bytes.
    pub async fn collect(&self, range: Range, piece: usize) -> Vec<Buffer> {
        let mut pieces = Vec::new();
        let mut done = 0;
        while done < range.length {
            let left = usize::try_from(range.length - done).unwrap_or(usize::MAX);
            let mut buffer = Buffer::with_room(0, piece.min(left), 0);
            self.read_in_turns(range.start + done, &mut buffer).await;
            done += buffer.len() as u64;
            pieces.push(buffer);
            yield_now().await;
        }
        pieces
    }
}

/// Splits a range by page: page, first byte in it, number of bytes.
fn parts(start: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let page_bytes = PAGE_BYTES as u64;
    let mut page = usize::try_from(start / page_bytes).unwrap_or(usize::MAX);
    let mut at = usize::try_from(start % page_bytes).expect("below a page");
    let mut left = length;
    std::iter::from_fn(move || {
        let part = (page, at, left.min(PAGE_BYTES - at));
        (page, at, left) = (page + 1, 0, left - part.2);
        (part.2 > 0).then_some(part)
    })
}

/// Splits a range at the bounds of pages, so that whole pages stay whole.
fn turns(range: Range) -> impl Iterator<Item = (u64, usize)> {
    let end = range.start + range.length;
    let mut at = range.start;
    std::iter::from_fn(move || {
        let next = (at / PAGE_BYTES as u64 + 1).saturating_mul(PAGE_BYTES as u64).min(end);
        let turn = (at, usize::try_from(next - at).expect("at most a page"));
        at = next;
        (turn.1 > 0).then_some(turn)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 3 * PAGE_BYTES as u64 + 4096;

    fn run<T: Send + 'static, F: Future<Output = T> + 'static>(
        main: impl FnOnce() -> F + Send + 'static,
    ) -> T {
        csd_reactor::block_on(&csd_reactor::Config::default(), main).expect("a core")
    }

    fn range(start: u64, length: u64) -> Range {
        Range { start, length }
    }

    fn pattern(length: usize, seed: usize) -> Vec<u8> {
        (0..length).map(|at| ((at * 7 + seed * 31) % 251 + 1).to_le_bytes()[0]).collect()
    }

    #[test]
    fn bytes_read_back_across_pages_and_the_rest_is_zero() {
        let memory = LocalMemory::new(SIZE);
        let data = pattern(PAGE_BYTES + 100, 1);
        memory.write(PAGE_BYTES as u64 - 50, &data);
        let mut all = vec![9; usize::try_from(SIZE).unwrap()];
        memory.read(0, &mut all);
        assert_eq!(&all[PAGE_BYTES - 50..][..data.len()], data);
        assert!(all[..PAGE_BYTES - 50].iter().all(|byte| *byte == 0));
        assert!(all[PAGE_BYTES - 50 + data.len()..].iter().all(|byte| *byte == 0));
        assert_eq!(memory.allocated_bytes(), 3 * PAGE_BYTES as u64);
    }

    #[test]
    fn ranges_end_where_the_memory_does() {
        let memory = LocalMemory::new(SIZE);
        assert_eq!(memory.check(range(0, SIZE)), Ok(()));
        for wrong in [range(SIZE, 4), range(4, SIZE), range(u64::MAX - 3, 4), range(4, u64::MAX)] {
            assert_eq!(memory.check(wrong), Err(Status::LBA_OUT_OF_RANGE));
        }
        let elsewhere = memory.check_of(NSID_MEMORY + 1, range(0, 4));
        assert_eq!(elsewhere, Err(Status::INVALID_MEMORY_NAMESPACE));
        let none = LocalMemory::new(0).check_of(NSID_MEMORY, range(0, 4));
        assert_eq!(none, Err(Status::INVALID_MEMORY_NAMESPACE));
    }

    #[test]
    fn a_filled_range_is_zero_and_whole_pages_are_given_back() {
        run(|| async {
            let memory = LocalMemory::new(SIZE);
            memory.write(0, &vec![7; usize::try_from(SIZE).unwrap()]);
            memory.fill(range(4, 2 * PAGE_BYTES as u64)).await.unwrap();
            let mut all = vec![9; usize::try_from(SIZE).unwrap()];
            memory.read(0, &mut all);
            let zeros = 4..4 + 2 * PAGE_BYTES;
            let right = |(at, byte): (usize, &u8)| (*byte == 0) == zeros.contains(&at);
            assert!(all.iter().enumerate().all(right));
            assert_eq!(memory.allocated_bytes(), 3 * PAGE_BYTES as u64, "one of four");
            assert!(memory.fill(range(0, SIZE + 4)).await.is_err());
        });
    }

    /// Compares with a plain vector, for sources and destinations in every relative position.
    #[test]
    fn copies_are_whole_or_refused_when_they_overlap() {
        run(|| async {
            let page = PAGE_BYTES as u64;
            let places = [0, 4, page - 4, page, page + 8, 2 * page, SIZE - 8];
            let lengths = [4, 8, page, page + 4];
            let mut refused = 0;
            for (from, to, length) in places.iter().flat_map(|from| {
                let all = move |to| lengths.map(|length| (*from, to, length));
                places.into_iter().flat_map(all)
            }) {
                let memory = LocalMemory::new(SIZE);
                let mut model = pattern(usize::try_from(SIZE).unwrap(), 3);
                memory.write(0, &model);
                let (source, target) = (range(from, length), range(to, length));
                let copied = memory.copy(&[source], target).await;
                if from + length > SIZE || to + length > SIZE {
                    assert_eq!(copied, Err(Status::LBA_OUT_OF_RANGE));
                } else if from < to + length && to < from + length {
                    assert_eq!(copied, Err(Status::OVERLAPPING_RANGE));
                    refused += 1;
                } else {
                    assert_eq!(copied, Ok(()));
                    let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
                    model.copy_within(from..from + usize::try_from(length).unwrap(), to);
                }
                let mut found = vec![0; model.len()];
                memory.read(0, &mut found);
                assert!(found == model, "{from} {to} {length}");
            }
            assert!(refused > 20);
        });
    }

    #[test]
    fn turns_are_whole_and_within_their_bounds() {
        let page = PAGE_BYTES as u64;
        let all: Vec<_> = turns(range(page - 8, page + 16)).collect();
        assert_eq!(all, [(page - 8, 8), (page, PAGE_BYTES), (2 * page, 8)]);
        assert_eq!(turns(range(4, 0)).count(), 0);
    }
}
