//! [`Count`]: hashes the chunks of a batch of values on the compute thread, in steps.

use std::sync::Arc;

use csd_kvlog::new_values::Batch;
use csd_reactor::{Job, Progress};
use sha1::{Digest, Sha1};

use super::table::{Chunk, Table};

/// Bytes that a step hashes: at most 0.3 ms of a slow core in short chunks.
const STEP_BYTES: usize = 64 << 10;

/// Returns the time that counting takes, as modelled: 1 ns a byte.
pub(crate) fn cost_ns(bytes: u64) -> u64 {
    bytes
}

/// Counts the chunks of a batch.
pub(crate) struct Count {
    batch: Batch,
    chunk_bytes: usize,
    table: Arc<Table>,
    /// Value that is hashed next, and where in it.
    value: usize,
    done: usize,
    chunks: Vec<Chunk>,
}

impl Count {
    pub(super) fn new(batch: Batch, chunk_bytes: usize, table: Arc<Table>) -> Self {
        Self { batch, chunk_bytes, table, value: 0, done: 0, chunks: Vec::new() }
    }
}

impl Job for Count {
    type Output = ();

    fn step(&mut self) -> Progress<()> {
        let mut bytes = 0;
        while bytes < STEP_BYTES
            && let Some(value) = self.batch.values().get(self.value)
        {
            let start = value.start + self.done;
            let end = value.end.min(start + self.chunk_bytes);
            let length = u32::try_from(end - start).expect("a chunk has at most 64 KiB");
            self.chunks.push((hash(self.batch.pieces(start..end)), length));
            bytes += end - start;
            self.done += end - start;
            if end == value.end {
                (self.value, self.done) = (self.value + 1, 0);
            }
        }
        self.table.count(&mut self.chunks);
        self.chunks.clear();
        let cost_ns = cost_ns(bytes as u64);
        match self.value < self.batch.values().len() {
            true => Progress::More { cost_ns },
            false => Progress::Done { cost_ns, output: () },
        }
    }
}

/// Returns the first 64 bits of a chunk's SHA-1.
fn hash<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = Sha1::new();
    pieces.for_each(|piece| hasher.update(piece));
    let digest = hasher.finalize();
    u64::from_be_bytes(std::array::from_fn(|at| digest[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix A.1.
    #[test]
    fn a_chunk_is_known_by_its_sha_1_however_it_lies_in_memory() {
        let whole = hash([&b"abc"[..]].into_iter());
        assert_eq!(whole, 0xA999_3E36_4706_816A);
        assert_eq!(hash([&b"a"[..], b"", b"bc"].into_iter()), whole);
    }
}
