//! Contents of one file on a disk and in the page cache over it, in sectors of 512 bytes.
//!
//! Descriptors, faults and waiting are in `medium`.

use std::collections::BTreeMap;

use crate::Numbers;

/// A write tears at multiples of this many bytes.
pub(crate) const SECTOR_BYTES: usize = 512;
/// First bytes of a kv segment in use.
pub(crate) const SEGMENT_MAGIC: &[u8] = b"CSEG";
/// Place of the shard in a segment's header; all bits are set in that of a free segment.
const SHARD: std::ops::Range<usize> = 32..36;
/// The disk writes some sectors back by itself, at one write of this many.
const WRITE_BACK_IN: u64 = 32;

/// Sector that is in the cache and not on the disk.
pub(crate) struct Unsynced {
    /// Number of the write that it belongs to.
    pub(crate) write: u64,
    /// Its place in that write, in sectors.
    pub(crate) index: u64,
    bytes: [u8; SECTOR_BYTES],
    /// True after a failed sync: readers see the sector, but it will not be written.
    dropped: bool,
}

/// Fates of sectors, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Landed {
    /// Lost in a cut.
    pub(crate) lost: u64,
    /// Written back before a sync asked for it.
    pub(crate) early: u64,
    /// Cuts in which some landed and some were lost.
    pub(crate) torn_cuts: u64,
    /// Segment headers replaced by one that says that its segment is free, or by zeros: segments
    /// that were cleaned.
    pub(crate) segments_freed: u64,
}

/// Contents of the file.
pub(crate) struct Cache {
    durable: Vec<u8>,
    unsynced: BTreeMap<u64, Unsynced>,
    numbers: Numbers,
    /// Length of the file in bytes.
    pub(crate) length: u64,
    /// Writes so far.
    pub(crate) writes: u64,
    /// Syncs under way.
    pub(crate) syncing: u64,
    pub(crate) landed: Landed,
}

impl Cache {
    /// Returns an empty file with room for `bytes`.
    pub(crate) fn new(bytes: usize, numbers: Numbers) -> Self {
        Self {
            durable: vec![0; bytes],
            unsynced: BTreeMap::new(),
            numbers,
            length: 0,
            writes: 0,
            syncing: 0,
            landed: Landed::default(),
        }
    }

    /// Returns the largest length of the file, bytes.
    pub(crate) fn room(&self) -> u64 {
        self.durable.len() as u64
    }

    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.numbers.next().expect("endless") % below
    }

    /// Returns true one time in `one_in`, and false for 0.
    pub(crate) fn happens(&mut self, one_in: u64) -> bool {
        one_in > 0 && self.draw(one_in) == 0
    }

    /// Returns the number of sectors that are not on the disk, by number of their write.
    pub(crate) fn unsynced_writes(&self) -> BTreeMap<u64, u64> {
        let mut writes = BTreeMap::new();
        for sector in self.unsynced.values() {
            *writes.entry(sector.write).or_default() += 1;
        }
        writes
    }

    /// Returns true if a sync has something to write.
    pub(crate) fn is_dirty(&self) -> bool {
        self.unsynced.values().any(|sector| !sector.dropped)
    }

    pub(crate) fn set_length(&mut self, length: u64) {
        let end = usize::try_from(length).expect("fits in memory");
        self.unsynced.retain(|sector, _| *sector < length.div_ceil(SECTOR_BYTES as u64));
        self.durable[end..].fill(0);
        self.length = length;
    }

    /// Cuts the power and restores it: a sector that was not synced is on the disk afterwards if
    /// `lands` returns true for it.
    pub(crate) fn cut(&mut self, mut lands: impl FnMut(&Unsynced) -> bool) {
        let (mut landed, mut lost) = (0, 0);
        for (sector, unsynced) in std::mem::take(&mut self.unsynced) {
            if !unsynced.dropped && lands(&unsynced) {
                landed += 1;
                self.put(sector, &unsynced.bytes);
            } else {
                lost += 1;
            }
        }
        self.landed.lost += lost;
        self.landed.torn_cuts += u64::from(landed > 0 && lost > 0);
    }

    /// Cuts the power; each write lands, vanishes, or tears at one place or at any, at random.
    pub(crate) fn cut_at_random(&mut self) {
        let mut numbers = crate::seeded(self.draw(u64::MAX));
        let mut draw = move || numbers.next().expect("endless");
        let whole = draw() % 6;
        let mut last = None;
        let (mut mode, mut first) = (0, 0);
        self.cut(|unsynced| {
            if last != Some(unsynced.write) {
                last = Some(unsynced.write);
                (mode, first) = (draw() % 6, 1 << (draw() % 8));
            }
            match (whole, mode) {
                (0, _) | (_, 0) => false,
                (1, _) | (_, 1) => true,
                (_, 2 | 3) => unsynced.index < first,
                _ => draw() % 2 == 0,
            }
        });
    }

    /// Returns the bytes that readers see.
    pub(crate) fn content(&self, at: u64, length: usize) -> Vec<u8> {
        let start = usize::try_from(at).expect("fits in memory");
        let mut bytes = self.durable[start..start + length].to_vec();
        let sectors = at / SECTOR_BYTES as u64..(at + length as u64).div_ceil(SECTOR_BYTES as u64);
        for (sector, unsynced) in self.unsynced.range(sectors) {
            let from = *sector * SECTOR_BYTES as u64;
            for (place, byte) in (from..).zip(unsynced.bytes) {
                if (at..at + length as u64).contains(&place) {
                    bytes[usize::try_from(place - at).expect("within")] = byte;
                }
            }
        }
        bytes
    }

    /// Writes bytes into the cache, sector by sector.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) {
        let write = self.writes;
        self.writes += 1;
        self.length = self.length.max(at + bytes.len() as u64);
        let first = at / SECTOR_BYTES as u64;
        let mut done = 0;
        while done < bytes.len() {
            let place = at + done as u64;
            let sector = place / SECTOR_BYTES as u64;
            let within = usize::try_from(place % SECTOR_BYTES as u64).expect("less than a sector");
            let count = (SECTOR_BYTES - within).min(bytes.len() - done);
            let mut whole = [0; SECTOR_BYTES];
            whole.copy_from_slice(&self.content(sector * SECTOR_BYTES as u64, SECTOR_BYTES));
            let freed = within == 0 && is_in_use(&whole) && !is_in_use(&bytes[done..]);
            self.landed.segments_freed += u64::from(freed);
            whole[within..within + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
            let new = Unsynced { write, index: sector - first, bytes: whole, dropped: false };
            if let Some(old) = self.unsynced.insert(sector, new)
                && !old.dropped
                // A sync in progress may be for the content before.
                && (self.syncing > 0 || self.happens(4))
            {
                self.put(sector, &old.bytes);
            }
        }
        if self.happens(WRITE_BACK_IN) {
            self.write_back();
        }
    }

    /// Writes some sectors back, as a disk does by itself.
    fn write_back(&mut self) {
        let dirty = self.unsynced.iter().filter(|(_, unsynced)| !unsynced.dropped);
        let sectors: Vec<u64> = dirty.map(|(sector, _)| *sector).collect();
        for sector in sectors {
            if self.draw(4) == 0
                && let Some(unsynced) = self.unsynced.remove(&sector)
            {
                self.landed.early += 1;
                self.put(sector, &unsynced.bytes);
            }
        }
    }

    fn put(&mut self, sector: u64, bytes: &[u8]) {
        let start = usize::try_from(sector).expect("fits in memory") * SECTOR_BYTES;
        self.durable[start..start + SECTOR_BYTES].copy_from_slice(bytes);
    }

    /// Writes back everything that was written before write number `covered`.
    pub(crate) fn land(&mut self, covered: u64) {
        let mut landing = Vec::new();
        self.unsynced.retain(|sector, unsynced| {
            let stays = unsynced.write >= covered || unsynced.dropped;
            if !stays {
                landing.push((*sector, unsynced.bytes));
            }
            stays
        });
        for (sector, bytes) in landing {
            self.put(sector, &bytes);
        }
    }

    /// Fails a sync: some of the sectors written before write number `covered` are on the disk, and
    /// the rest will never be.
    pub(crate) fn drop_dirty(&mut self, covered: u64) {
        let dirty = self.unsynced.iter();
        let dirty = dirty.filter(|(_, old)| old.write < covered && !old.dropped);
        let sectors: Vec<u64> = dirty.map(|(sector, _)| *sector).collect();
        for sector in sectors {
            let lands = self.draw(4) == 0;
            let Some(unsynced) = self.unsynced.get_mut(&sector) else { continue };
            unsynced.dropped = !lands;
            if lands {
                let bytes = unsynced.bytes;
                self.unsynced.remove(&sector);
                self.put(sector, &bytes);
            }
        }
    }
}

/// Returns true for the first bytes of a segment that has records.
fn is_in_use(header: &[u8]) -> bool {
    header.starts_with(SEGMENT_MAGIC) && header.get(SHARD) != Some(&[0xFF; 4])
}
