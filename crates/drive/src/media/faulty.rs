//! A medium that misbehaves as told, around any other: late, failing, torn, flipped.
//!
//! Used by tests. Never in a served drive. Everything is drawn from one seed, so a run repeats.
//! Invariants: a write that is answered with success is on the medium, whole; a torn write is
//! answered with an error; after a failed sync the medium takes no more writes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csd_reactor::{Buffer, sleep};

use super::{Media, Returned, TORN_BYTES};
use crate::error::MediaError;

/// How often what goes wrong: chances out of a million for each access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultConfig {
    /// Latency added to each access, microseconds; an empty range adds none.
    pub latency_us: Range<u64>,
    /// Reads that fail.
    pub failed_reads_ppm: u32,
    /// Reads that return one wrong bit as if nothing had happened.
    pub flipped_reads_ppm: u32,
    /// Writes that fail and leave the medium as it was.
    pub failed_writes_ppm: u32,
    /// Writes that fail after a part of them has reached the medium.
    pub torn_writes_ppm: u32,
    /// Syncs that fail.
    pub failed_syncs_ppm: u32,
}

/// How often something went wrong.
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
}

/// The medium.
#[derive(Debug)]
pub struct Faulty {
    inner: Media,
    config: Mutex<FaultConfig>,
    seed: AtomicU64,
    read_only: AtomicBool,
    /// What went wrong so far.
    pub injected: Injected,
}

impl Faulty {
    /// `inner`, without faults until [`Self::set`].
    pub fn new(inner: Media, seed: u64) -> Self {
        Self {
            inner,
            config: Mutex::default(),
            seed: AtomicU64::new(seed),
            read_only: AtomicBool::new(false),
            injected: Injected::default(),
        }
    }

    /// The medium below, without its faults.
    pub fn inner(&self) -> &Media {
        &self.inner
    }

    /// Changes what goes wrong from now on.
    pub fn set(&self, config: FaultConfig) {
        *self.config() = config;
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    /// True once a sync has failed.
    pub fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Acquire) || self.inner.is_read_only()
    }

    /// Fills `buffer` from `offset` on, perhaps with a wrong bit.
    pub async fn read(&self, offset: u64, buffer: Buffer) -> Returned<Buffer> {
        self.wait().await;
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
        self.wait().await;
        if self.is_read_only() {
            return (Err(MediaError::ReadOnly), buffers);
        }
        if self.hits(|config| config.failed_writes_ppm, &self.injected.failed_writes) {
            return (Err(failed("write")), buffers);
        }
        if self.hits(|config| config.torn_writes_ppm, &self.injected.torn_writes) {
            let whole: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
            let pieces = self.draw(whole.len() as u64 / TORN_BYTES + 1);
            let length = usize::try_from(pieces * TORN_BYTES).expect("a part of a buffer");
            let part = vec![Buffer::from_slice(&whole[..length])];
            // Whatever becomes of the part, the answer is that the write failed.
            let _ = self.inner.write(offset, part).await;
            return (Err(failed("torn write")), buffers);
        }
        self.inner.write(offset, buffers).await
    }

    /// Makes completed writes durable, or fails and takes no more.
    ///
    /// # Errors
    /// As told; [`MediaError::ReadOnly`] after the first.
    pub async fn sync(&self) -> Result<(), MediaError> {
        self.wait().await;
        if self.is_read_only() {
            return Err(MediaError::ReadOnly);
        }
        if self.hits(|config| config.failed_syncs_ppm, &self.injected.failed_syncs) {
            self.read_only.store(true, Ordering::Release);
            return Err(failed("sync"));
        }
        self.inner.sync().await
    }

    async fn wait(&self) {
        let range = self.config().latency_us.clone();
        if !range.is_empty() {
            let latency_us = range.start + self.draw(range.end - range.start);
            sleep(Duration::from_micros(latency_us)).await;
        }
    }

    fn hits(&self, chance_ppm: impl Fn(&FaultConfig) -> u32, counter: &AtomicU64) -> bool {
        let chance_ppm = chance_ppm(&self.config());
        let hit = chance_ppm > 0 && self.draw(1_000_000) < u64::from(chance_ppm);
        if hit {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        hit
    }

    /// A number below `limit`, from the seed (SplitMix64).
    fn draw(&self, limit: u64) -> u64 {
        let state = self.seed.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mut z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }

    fn config(&self) -> MutexGuard<'_, FaultConfig> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(what: &str) -> MediaError {
    MediaError::Io(format!("{what} failed as it was told to"))
}
