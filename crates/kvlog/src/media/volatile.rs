//! A simulated disk with a volatile cache: writes stay in memory until a sync, and a power cut
//! lets any subset of the others through, torn at 512 bytes.
//!
//! For tests only. Invariants: a sync makes durable exactly the writes completed before it began
//! (and perhaps more); a read sees every completed write.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csd_reactor::{Buffer, random_u64, sleep};

use super::{Failures, Memory, Returned};
use crate::error::MediaError;

/// A write tears at multiples of this many bytes.
pub const TORN_BYTES: u64 = 512;

/// Latencies of the simulated disk.
#[derive(Clone, Debug)]
pub struct VolatileConfig {
    /// Latency of a read or a write in microseconds, drawn for each access.
    pub access_us: Range<u64>,
    /// Latency of a sync in microseconds.
    pub sync_us: Range<u64>,
}

impl Default for VolatileConfig {
    fn default() -> Self {
        Self { access_us: 5..200, sync_us: 50..2000 }
    }
}

#[derive(Debug)]
struct Pending {
    offset: u64,
    bytes: Vec<u8>,
    completed: bool,
    // True if it failed on its way to the disk: it can be read until the power cut, and no sync
    // covers it.
    lost: bool,
}

#[derive(Debug)]
struct State {
    durable: Memory,
    // By order of submission.
    pending: BTreeMap<u64, Pending>,
    next: u64,
    power: bool,
    losses: Losses,
    read_bytes: u64,
}

/// Results of power cuts, for writes that were submitted and not yet durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of power cuts.
    pub cuts: u64,
    /// Number of writes of which a part landed.
    pub torn_writes: u64,
    /// Number of sectors of 512 bytes that landed.
    pub landed_sectors: u64,
    /// Number of sectors that did not.
    pub lost_sectors: u64,
}

impl Losses {
    /// Adds the losses of another disk.
    pub fn add(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.torn_writes += other.torn_writes;
        self.landed_sectors += other.landed_sectors;
        self.lost_sectors += other.lost_sectors;
    }
}

/// A simulated disk.
#[derive(Debug)]
pub struct Volatile {
    config: VolatileConfig,
    bytes: u64,
    state: Mutex<State>,
    failures: Failures,
}

impl Volatile {
    /// Makes an empty disk of `bytes` bytes.
    pub fn new(bytes: u64, config: VolatileConfig) -> Self {
        let durable = Memory::new(bytes);
        let state = State {
            durable,
            pending: BTreeMap::new(),
            next: 0,
            power: true,
            losses: Losses::default(),
            read_bytes: 0,
        };
        Self { config, bytes, state: Mutex::new(state), failures: Failures::default() }
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the failures, of which it has none of its own.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Returns another disk, under power, with what is durable on this one.
    pub fn copied(&self) -> Self {
        let copy = Self::new(self.bytes, self.config.clone());
        copy.state().durable = self.state().durable.copied();
        copy
    }

    /// Returns the bytes written and not yet durable.
    pub fn pending_bytes(&self) -> u64 {
        self.state().pending.values().map(|write| write.bytes.len() as u64).sum()
    }

    /// Calls `look` with the offset and the bytes of each write that is not durable, in the order
    /// of submission.
    pub fn each_pending(&self, mut look: impl FnMut(u64, &[u8])) {
        self.state().pending.values().for_each(|write| look(write.offset, &write.bytes));
    }

    /// Loses every completed write that is not durable, as a page cache does when the disk fails
    /// it: the bytes can be read until the power cut. Returns true if there were any.
    pub fn lose_unsynced(&self) -> bool {
        let mut state = self.state();
        let open = state.pending.values_mut().filter(|write| write.completed && !write.lost);
        open.map(|write| write.lost = true).count() > 0
    }

    /// Cuts the power: each 512-byte piece of each write that was not flushed lands or is lost, as
    /// `draw` says (even numbers land). Accesses fail until [`Self::power_on`].
    pub fn power_cut(&self, mut draw: impl FnMut() -> u64) {
        let mut state = self.state();
        state.power = false;
        let pending = std::mem::take(&mut state.pending);
        for write in pending.into_values().filter(|write| !write.lost) {
            // Whole writes land or vanish as often as they tear.
            let mode = draw() % 3;
            let (mut landed, mut lost) = (0, 0);
            for (at, piece) in torn(write.offset, &write.bytes) {
                if mode == 0 || (mode == 2 && draw().is_multiple_of(2)) {
                    state.durable.write(at, piece);
                    landed += 1;
                } else {
                    lost += 1;
                }
            }
            state.losses.landed_sectors += landed;
            state.losses.lost_sectors += lost;
            state.losses.torn_writes += u64::from(landed > 0 && lost > 0);
        }
        state.losses.cuts += 1;
    }

    /// Losses in all power cuts so far.
    pub fn losses(&self) -> Losses {
        self.state().losses
    }

    /// Calls `look` with what is durable, which it may damage.
    pub fn at_rest<T>(&self, look: impl FnOnce(&Memory) -> T) -> T {
        look(&self.state().durable)
    }

    /// Returns the number of bytes that were read.
    pub fn read_bytes(&self) -> u64 {
        self.state().read_bytes
    }

    /// Restores the power. The disk then has what was durable.
    pub fn power_on(&self) {
        self.state().power = true;
    }

    /// Fills `buffer` from `offset` on.
    pub async fn read(&self, offset: u64, mut buffer: Buffer) -> Returned<Buffer> {
        self.wait(&self.config.access_us).await;
        let mut state = self.state();
        if !state.power {
            return (Err(MediaError::PowerCut), buffer);
        }
        state.read_bytes += buffer.len() as u64;
        state.durable.read(offset, &mut buffer);
        for write in state.pending.values().filter(|write| write.completed) {
            overlay(&mut buffer, offset, write);
        }
        drop(state);
        (Ok(()), buffer)
    }

    /// Writes the buffers one behind the other from `offset` on.
    pub async fn write(&self, offset: u64, buffers: Vec<Buffer>) -> Returned<Vec<Buffer>> {
        let parts: Vec<&[u8]> = buffers.iter().map(|buffer| &buffer[..]).collect();
        let bytes = parts.concat();
        let number = {
            let mut state = self.state();
            let number = state.next;
            state.next += 1;
            // From its submission on a write may land in a power cut.
            if state.power {
                state
                    .pending
                    .insert(number, Pending { offset, bytes, completed: false, lost: false });
            }
            number
        };
        let submitted = Submitted { disk: self, number };
        self.wait(&self.config.access_us).await;
        let result = if submitted.complete() { Ok(()) } else { Err(MediaError::PowerCut) };
        (result, buffers)
    }

    /// Makes completed writes durable.
    ///
    /// # Errors
    /// When the power is cut meanwhile.
    pub async fn sync(&self) -> Result<(), MediaError> {
        let covered: Vec<u64> = {
            let state = self.state();
            let completed = |write: &Pending| write.completed && !write.lost;
            let covered = state.pending.iter().filter(|(_, write)| completed(write));
            covered.map(|(number, _)| *number).collect()
        };
        self.wait(&self.config.sync_us).await;
        let mut state = self.state();
        if !state.power {
            return Err(MediaError::PowerCut);
        }
        for number in covered {
            if state.pending.get(&number).is_none_or(|write| write.lost) {
                continue;
            }
            let write = state.pending.remove(&number).expect("seen just now");
            state.durable.write(write.offset, &write.bytes);
            // Lost bytes are no longer visible.
            for older in state.pending.range_mut(..number).map(|(_, older)| older) {
                if older.lost {
                    let at = older.offset;
                    overlay(&mut older.bytes, at, &write);
                }
            }
        }
        Ok(())
    }

    async fn wait(&self, range: &Range<u64>) {
        let span = (range.end - range.start).max(1);
        sleep(Duration::from_micros(range.start + random_u64() % span)).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write that the disk has accepted. It completes even if its core is gone.
struct Submitted<'a> {
    disk: &'a Volatile,
    number: u64,
}

impl Submitted<'_> {
    /// Completes the write; false when the power went in between.
    fn complete(&self) -> bool {
        let mut state = self.disk.state();
        let write = state.pending.get_mut(&self.number).filter(|write| !write.completed);
        write.map(|write| write.completed = true).is_some()
    }
}

impl Drop for Submitted<'_> {
    fn drop(&mut self) {
        self.complete();
    }
}

/// Splits a write into the pieces that a power cut may separate.
fn torn(offset: u64, bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut pieces = Vec::new();
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let to_boundary = TORN_BYTES - at % TORN_BYTES;
        let count = rest.len().min(usize::try_from(to_boundary).expect("at most 512"));
        let (piece, tail) = rest.split_at(count);
        pieces.push((at, piece));
        at += count as u64;
        rest = tail;
    }
    pieces
}

fn overlay(buffer: &mut [u8], offset: u64, write: &Pending) {
    let start = write.offset.max(offset);
    let end = (write.offset + write.bytes.len() as u64).min(offset + buffer.len() as u64);
    if start >= end {
        return;
    }
    let index = |at: u64, base: u64| usize::try_from(at - base).expect("within one access");
    buffer[index(start, offset)..index(end, offset)]
        .copy_from_slice(&write.bytes[index(start, write.offset)..index(end, write.offset)]);
}
