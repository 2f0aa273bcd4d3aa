//! [`Count`]: hashes the chunks of a batch of values on the compute thread, in steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use csd_kvlog::new_values::Batch;
use csd_kvlog::parts::POOL;
use csd_kvlog::record::EntryKey;
use csd_reactor::{Job, Progress};
use sha1::{Digest, Sha1};

use super::holders::{Holders, Met};
use super::table::{Chunk, Table};

/// Bytes that a step hashes: at most 0.3 ms of a slow core in short chunks.
const STEP_BYTES: usize = 64 << 10;
/// Bytes that a look at a shared chunk costs as much as.
const CHUNK_COST_BYTES: usize = 128;

/// Returns the time that counting takes, as modelled: 1 ns a byte.
pub(crate) fn cost_ns(bytes: u64) -> u64 {
    bytes
}

/// Counts the chunks of a batch. Its outcome is the values with chunks that other values have, too,
/// and the batch: its buffers are freed where they are needed again.
pub(crate) struct Count {
    batch: Batch,
    chunk_bytes: usize,
    table: Arc<Table>,
    /// Values of chunks, if values share them.
    holders: Option<Arc<Holders>>,
    /// Values with chunks that other values have, too.
    alike: BTreeSet<EntryKey>,
    /// Value that is hashed next, and where in it.
    value: usize,
    done: usize,
    chunks: Vec<Chunk>,
}

impl Count {
    pub(super) fn new(
        batch: Batch,
        chunk_bytes: usize,
        table: Arc<Table>,
        holders: Option<Arc<Holders>>,
    ) -> Self {
        let (alike, chunks) = (BTreeSet::new(), Vec::new());
        Self { batch, chunk_bytes, table, holders, alike, value: 0, done: 0, chunks }
    }

    /// Notes a whole chunk of a value that may share it.
    fn meet(&mut self, digest: &ChunkDigest, entry: EntryKey) {
        let Some(holders) = &self.holders else { return };
        match holders.meet(digest.in_namespace(entry.0), entry) {
            Met::New => {}
            Met::Often => drop(self.alike.insert(entry)),
            Met::In(other) => self.alike.extend([entry, other]),
        }
    }
}

impl Job for Count {
    type Output = (BTreeSet<EntryKey>, Batch);

    fn step(&mut self) -> Progress<Self::Output> {
        let mut bytes = 0;
        while bytes < STEP_BYTES
            && let Some(value) = self.batch.values().get(self.value).cloned()
        {
            let entry = self.batch.keys()[self.value];
            if entry.0 & POOL != 0 {
                // A shared chunk was counted with the values that have it.
                let digest = ChunkDigest(*entry.1.padded());
                let holders = self.holders.iter();
                holders.for_each(|it| it.meet_shared(digest.in_namespace(entry.0 & !POOL)));
                (self.value, bytes) = (self.value + 1, bytes + CHUNK_COST_BYTES);
                continue;
            }
            let start = value.start + self.done;
            let end = value.end.min(start + self.chunk_bytes);
            let length = u32::try_from(end - start).expect("a chunk has at most 64 KiB");
            let digest = ChunkDigest::of(self.batch.pieces(start..end));
            self.chunks.push((digest.hash(), length));
            if end - start == self.chunk_bytes {
                self.meet(&digest, entry);
            }
            bytes += end - start;
            self.done += end - start;
            if end == value.end {
                (self.value, self.done) = (self.value + 1, 0);
            }
        }
        self.table.count(&mut self.chunks);
        self.chunks.clear();
        let cost_ns = cost_ns(bytes as u64);
        if self.value < self.batch.values().len() {
            return Progress::More { cost_ns };
        }
        let output = (std::mem::take(&mut self.alike), std::mem::take(&mut self.batch));
        Progress::Done { cost_ns, output }
    }
}

/// The first 128 bits of a chunk's SHA-1, which are its key once it is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChunkDigest(pub(crate) [u8; 16]);

impl ChunkDigest {
    /// Hashes a chunk.
    pub(crate) fn of<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha1::new();
        pieces.for_each(|piece| hasher.update(piece));
        let digest = hasher.finalize();
        Self(std::array::from_fn(|at| digest[at]))
    }

    /// Returns the first 64 bits.
    fn hash(&self) -> u64 {
        u64::from_be_bytes(std::array::from_fn(|at| self.0[at]))
    }

    /// Returns a hash that differs for chunks of other namespaces, which are not shared with this
    /// one.
    pub(crate) fn in_namespace(&self, nsid: u16) -> u64 {
        self.hash() ^ u64::from(nsid).rotate_right(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix A.1.
    #[test]
    fn a_chunk_is_known_by_its_sha_1_however_it_lies_in_memory() {
        let whole = ChunkDigest::of([&b"abc"[..]].into_iter());
        assert_eq!(whole.hash(), 0xA999_3E36_4706_816A);
        assert_eq!(ChunkDigest::of([&b"a"[..], b"", b"bc"].into_iter()), whole);
        assert_ne!(whole.in_namespace(2), whole.in_namespace(3));
    }
}
