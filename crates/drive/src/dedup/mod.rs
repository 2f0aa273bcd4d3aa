//! Dedup: a service that hashes each value in chunks and counts those that were there before, so
//! that its user knows what sharing them would save. If its user says so, values share them
//! (`share_chunks.rs`).
//!
//! This is the background task of Park et al., *BTS: Exploring Effects of Background Task-Aware
//! Scheduling for Key-Value CSDs*, section IV.B: fixed chunks of 128 B and more, SHA-1, and a table
//! of reference counts. A value is counted once for each time that it was stored; that it was
//! deleted or replaced since subtracts nothing. Counts begin at zero with each start of the drive.

pub(crate) mod holders;
pub(crate) mod job;
pub mod table;

use std::sync::Arc;

use csd_kvlog::new_values::Batch;
use csd_kvlog::sharing::Sharing;
use holders::Holders;
use job::Count;
use table::{Counted, Table};

/// Shortest chunk in bytes.
pub const CHUNK_BYTES_MIN: u32 = 128;
/// Shortest chunk that values share, in bytes.
pub const SHARED_BYTES_MIN: u32 = 4 << 10;
/// Longest chunk in bytes.
pub const CHUNK_BYTES_MAX: u32 = 64 << 10;

/// Returns true if chunks may have this length in bytes.
pub fn is_chunk(bytes: u32) -> bool {
    bytes.is_power_of_two() && (CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&bytes)
}

/// Settings of the counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Length of a chunk in bytes, see [`is_chunk`]. The last chunk of a value may be shorter.
    pub chunk_bytes: u32,
    /// Most memory of the table in bytes, and of that of chunks that values may share.
    pub memory_bytes: u64,
    /// True if values share chunks. These have [`SHARED_BYTES_MIN`] at least.
    pub share: bool,
}

/// The chunks of a drive's values, as all of its cores count them.
#[derive(Debug)]
pub struct Dedup {
    options: Options,
    table: Arc<Table>,
    shared: Option<Shared>,
}

/// State of sharing.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) sharing: Arc<Sharing>,
    pub(crate) holders: Arc<Holders>,
}

impl Dedup {
    pub(crate) fn new(options: Options) -> Self {
        let shared = options.share.then(|| Shared {
            sharing: Arc::default(),
            holders: Arc::new(Holders::new(options.memory_bytes)),
        });
        Self { options, table: Arc::new(Table::new(options.memory_bytes)), shared }
    }

    /// Returns what sharing needs; `None` if values share nothing.
    pub(crate) fn shared(&self) -> Option<&Shared> {
        self.shared.as_ref()
    }

    /// Returns the state of sharing in the log; `None` if values share nothing.
    pub fn sharing(&self) -> Option<&Arc<Sharing>> {
        self.shared.as_ref().map(|shared| &shared.sharing)
    }

    /// Returns how values are counted.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the counts so far.
    pub fn counted(&self) -> Counted {
        self.table.counted()
    }

    /// Returns the job that counts the chunks of values.
    pub(crate) fn job(&self, batch: Batch) -> Count {
        let holders = self.shared.as_ref().map(|shared| Arc::clone(&shared.holders));
        let chunk_bytes = self.options.chunk_bytes as usize;
        Count::new(batch, chunk_bytes, Arc::clone(&self.table), holders)
    }

    /// Says how much is counted twice, in words.
    pub(crate) fn words(&self) -> String {
        let counted = self.counted();
        let sampled = match counted.sampling {
            1 => String::new(),
            of => format!(", 1 of {of} sampled"),
        };
        let (share, chunk) = (100.0 * counted.duplicate_share(), self.options.chunk_bytes);
        let shared = match self.shared.as_ref().map(|shared| shared.holders.left_out()) {
            None => "",
            Some(0) => ", shared",
            Some(_) => ", shared but for those that --dedup-memory has no room for",
        };
        format!("{share:.1} % duplicate in chunks of {chunk} B{sampled}{shared}")
    }
}
