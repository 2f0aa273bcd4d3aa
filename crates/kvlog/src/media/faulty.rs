//! A medium with injected faults, around any other medium: late, failing, torn, flipped.
//!
//! For tests only. All faults are drawn from one seed, so a run repeats. Invariants: a write that
//! is answered with success can be read, whole; a torn write is answered with an error; a write
//! that is lost between cache and disk fails exactly one sync, the first that ends after it, as
//! Linux reports it for an open file; after a failed sync the medium takes no more writes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csd_reactor::{Buffer, sleep};

use super::single::Accesses;
use super::{Access, Failures, Fault, Media, Operation, Returned, TORN_BYTES};
use crate::error::MediaError;

/// Rates of faults: chances out of a million for each access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultConfig {
    /// Latency added to each access, microseconds; an empty range adds none.
    pub latency_us: Range<u64>,
    /// Reads that fail.
    pub failed_reads_ppm: u32,
    /// Reads that return one wrong bit without an error.
    pub flipped_reads_ppm: u32,
    /// Writes that fail and leave the medium as it was.
    pub failed_writes_ppm: u32,
    /// Writes that fail after a part of them has reached the medium.
    pub torn_writes_ppm: u32,
    /// Syncs that fail.
    pub failed_syncs_ppm: u32,
    /// Syncs that lose everything written and not durable; the sync that ends next fails. Only for
    /// a simulated disk with a volatile cache.
    pub failed_writebacks_ppm: u32,
}

/// Numbers of injected faults.
#[derive(Debug, Default)]
pub struct Injected {
    /// Failed reads.
    pub failed_reads: AtomicU64,
    /// Flipped reads.
    pub flipped_reads: AtomicU64,
    /// Failed writes.
    pub failed_writes: AtomicU64,
    /// Torn writes.
    pub torn_writes: AtomicU64,
    /// Failed syncs.
    pub failed_syncs: AtomicU64,
    /// Syncs that lost something.
    pub failed_writebacks: AtomicU64,
    /// Accesses that took longer.
    pub delays: AtomicU64,
    /// Syncs that began while another one was running.
    pub overlapping_syncs: AtomicU64,
}

/// A medium with injected faults.
#[derive(Debug)]
pub struct Faulty {
    inner: Media,
    config: Mutex<FaultConfig>,
    seed: AtomicU64,
    read_only: AtomicBool,
    // True if something was lost, and no sync has reported it.
    unreported: AtomicBool,
    syncing: AtomicU64,
    writing_at: Mutex<Vec<u64>>,
    accesses: Mutex<Accesses>,
    gone: Mutex<Option<String>>,
    failures: Failures,
    /// Bytes of writes that run.
    pub writing_bytes: AtomicU64,
    /// Largest value of these bytes.
    pub writing_bytes_most: AtomicU64,
    /// Faults so far.
    pub injected: Injected,
}

impl Faulty {
    /// Makes a medium around `inner`, without faults until [`Self::set`].
    pub fn new(inner: Media, seed: u64) -> Self {
        Self {
            inner,
            config: Mutex::default(),
            seed: AtomicU64::new(seed),
            read_only: AtomicBool::new(false),
            unreported: AtomicBool::new(false),
            syncing: AtomicU64::new(0),
            writing_at: Mutex::default(),
            accesses: Mutex::default(),
            gone: Mutex::default(),
            failures: Failures::default(),
            writing_bytes: AtomicU64::new(0),
            writing_bytes_most: AtomicU64::new(0),
            injected: Injected::default(),
        }
    }

    /// Returns the medium below, which has no faults.
    pub fn inner(&self) -> &Media {
        &self.inner
    }

    /// Changes the rates of faults.
    pub fn set(&self, config: FaultConfig) {
        *self.config() = config;
    }

    /// Makes the access of this number fail, counted from 0 since the medium was made.
    pub fn fail_once(&self, number: usize, fault: Fault) {
        self.accesses().chosen = Some((number, fault));
    }

    /// Returns all accesses so far.
    pub fn begun(&self) -> Vec<Access> {
        self.accesses().begun.clone()
    }

    /// Makes the medium one that is no longer what was opened, for this reason.
    pub fn lose(&self, reason: &str) {
        *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
    }

    /// Checks that the medium is still what was opened.
    ///
    /// # Errors
    /// [`MediaError::Gone`] after [`Self::lose`].
    pub fn check_presence(&self) -> Result<(), MediaError> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner).clone();
        gone.map_or(Ok(()), |reason| Err(MediaError::Gone(reason)))
    }

    /// Takes no more writes.
    pub fn refuse_writes(&self) {
        self.read_only.store(true, Ordering::Release);
    }

    /// Returns the accesses that failed.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Returns the offsets of writes that run.
    pub fn writes_under_way(&self) -> Vec<u64> {
        self.writing_at.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    /// Returns true once a sync has failed.
    pub fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Acquire) || self.inner.is_read_only()
    }

    /// Fills `buffer` from `offset` on, perhaps with a wrong bit.
    pub async fn read(&self, offset: u64, buffer: Buffer) -> Returned<Buffer> {
        let fault = self.begin(Operation::Read, offset, buffer.len() as u64);
        self.wait().await;
        if let Some(fault) = fault {
            return (Err(fault.error()), buffer);
        }
        if self.hits(|config| config.failed_reads_ppm, &self.injected.failed_reads) {
            return (Err(failed("read")), buffer);
        }
        let (result, mut buffer) = self.inner.read(offset, buffer).await;
        let flips = self.hits(|config| config.flipped_reads_ppm, &self.injected.flipped_reads);
        if flips && !buffer.is_empty() {
            let bit = self.draw(buffer.len() as u64 * 8);
            let byte = usize::try_from(bit / 8).expect("within the buffer");
            buffer[byte] ^= 1 << (bit % 8);
        }
        (result, buffer)
    }

    /// Writes the buffers one behind the other from `offset` on, or a part of them, or nothing.
    pub async fn write(&self, offset: u64, buffers: Vec<Buffer>) -> Returned<Vec<Buffer>> {
        let bytes = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        let fault = self.begin(Operation::Write, offset, bytes);
        let _under_way = UnderWay::new(&self.writing_bytes, bytes);
        let _at = WritingAt::new(&self.writing_at, offset);
        self.writing_bytes_most.fetch_max(self.writing_bytes.load(Relaxed), Relaxed);
        self.wait().await;
        if self.is_read_only() {
            return (Err(MediaError::ReadOnly), buffers);
        }
        if self.hits(|config| config.failed_writes_ppm, &self.injected.failed_writes) {
            return (Err(failed("write")), buffers);
        }
        let is_torn = self.hits(|config| config.torn_writes_ppm, &self.injected.torn_writes);
        if is_torn || fault == Some(Fault::Short) {
            let pieces = self.draw(bytes / TORN_BYTES + 1);
            self.write_part(offset, &buffers, pieces * TORN_BYTES).await;
        }
        if fault == Some(Fault::Whole) {
            self.write_part(offset, &buffers, bytes).await;
        }
        match fault {
            Some(fault) => (Err(fault.error()), buffers),
            None if is_torn => (Err(failed("torn write")), buffers),
            None => self.inner.write(offset, buffers).await,
        }
    }

    /// Writes the first bytes of a write that fails even if this succeeds.
    async fn write_part(&self, offset: u64, buffers: &[Buffer], bytes: u64) {
        let mut whole: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
        whole.truncate(usize::try_from(bytes).expect("a part of the buffers"));
        let _ = self.inner.write(offset, vec![Buffer::from_slice(&whole)]).await;
    }

    /// Makes completed writes durable, or fails and takes no more.
    ///
    /// # Errors
    /// An injected failure; [`MediaError::ReadOnly`] after the first.
    pub async fn sync(&self) -> Result<(), MediaError> {
        let fault = self.begin(Operation::Sync, 0, 0);
        let _under_way = UnderWay::new(&self.syncing, 1);
        if self.syncing.load(Relaxed) > 1 {
            self.injected.overlapping_syncs.fetch_add(1, Relaxed);
        }
        self.wait().await;
        if self.is_read_only() {
            return Err(MediaError::ReadOnly);
        }
        if let Some(fault) = fault {
            self.refuse_writes();
            return Err(fault.error());
        }
        if self.hits(|config| config.failed_syncs_ppm, &self.injected.failed_syncs) {
            self.refuse_writes();
            return Err(failed("sync"));
        }
        if let Media::Volatile(disk) = &self.inner
            && self.chance(|config| config.failed_writebacks_ppm)
            && disk.lose_unsynced()
        {
            self.injected.failed_writebacks.fetch_add(1, Relaxed);
            self.unreported.store(true, Ordering::Release);
        }
        let result = self.inner.sync().await;
        if self.unreported.swap(false, Ordering::AcqRel) {
            self.refuse_writes();
            return Err(failed("writeback"));
        }
        result
    }

    async fn wait(&self) {
        let range = self.config().latency_us.clone();
        if !range.is_empty() {
            let latency_us = range.start + self.draw(range.end - range.start);
            self.injected.delays.fetch_add(1, Relaxed);
            sleep(Duration::from_micros(latency_us)).await;
        }
    }

    fn chance(&self, chance_ppm: impl Fn(&FaultConfig) -> u32) -> bool {
        let chance_ppm = chance_ppm(&self.config());
        chance_ppm > 0 && self.draw(1_000_000) < u64::from(chance_ppm)
    }

    fn hits(&self, chance_ppm: impl Fn(&FaultConfig) -> u32, counter: &AtomicU64) -> bool {
        let hit = self.chance(chance_ppm);
        if hit {
            counter.fetch_add(1, Relaxed);
        }
        hit
    }

    /// Draws a number below `limit` from the seed (SplitMix64).
    fn draw(&self, limit: u64) -> u64 {
        let state = self.seed.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
        let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }

    fn begin(&self, operation: Operation, offset: u64, bytes: u64) -> Option<Fault> {
        self.accesses().begin(Access { operation, offset, bytes })
    }

    fn accesses(&self) -> MutexGuard<'_, Accesses> {
        self.accesses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn config(&self) -> MutexGuard<'_, FaultConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that counts an operation until it is dropped.
struct UnderWay<'a>(&'a AtomicU64, u64);

impl<'a> UnderWay<'a> {
    fn new(counter: &'a AtomicU64, amount: u64) -> Self {
        counter.fetch_add(amount, Relaxed);
        Self(counter, amount)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Relaxed);
    }
}

/// A guard that notes the offset of a write until it is dropped.
struct WritingAt<'a>(&'a Mutex<Vec<u64>>, u64);

impl<'a> WritingAt<'a> {
    fn new(offsets: &'a Mutex<Vec<u64>>, offset: u64) -> Self {
        offsets.lock().unwrap_or_else(PoisonError::into_inner).push(offset);
        Self(offsets, offset)
    }
}

impl Drop for WritingAt<'_> {
    fn drop(&mut self) {
        let mut offsets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = offsets.iter().position(|offset| *offset == self.1) {
            offsets.swap_remove(index);
        }
    }
}

fn failed(what: &str) -> MediaError {
    MediaError::Io(format!("{what} failed as it was told to"))
}
