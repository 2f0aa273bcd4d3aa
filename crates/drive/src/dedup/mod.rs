//! Dedup, counting: a service that hashes each value in chunks and counts those that were there
//! before, so that its user knows what sharing them would save. Nothing is shared.
//!
//! This is the background task of Park et al., *BTS: Exploring Effects of Background Task-Aware
//! Scheduling for Key-Value CSDs*, section IV.B: fixed chunks of 128 B and more, SHA-1, and a table
//! of reference counts. A value is counted once for each time that it was stored; that it was
//! deleted or replaced since subtracts nothing. Counts begin anew with each start of the drive.

mod job;
pub mod table;

use std::rc::Rc;
use std::sync::Arc;

use csd_kvlog::new_values::NewValues;
use csd_kvlog::service::{Pending, Service, Step};
use csd_reactor::{Class, compute};

use crate::drive::Core;
use job::Count;
use table::{Counted, Table};

/// Shortest chunk in bytes.
pub const CHUNK_BYTES_MIN: u32 = 128;
/// Longest chunk in bytes.
pub const CHUNK_BYTES_MAX: u32 = 64 << 10;
/// Most memory of a core for the buffers of Stores whose values are not counted yet, bytes.
const AT_HAND_BYTES: u64 = 8 << 20;

/// Returns true if chunks may have this length in bytes.
pub fn is_chunk(bytes: u32) -> bool {
    bytes.is_power_of_two() && (CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&bytes)
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Length of a chunk in bytes, see [`is_chunk`]. The last chunk of a value may be shorter.
    pub chunk_bytes: u32,
    /// Most memory of the table in bytes.
    pub memory_bytes: u64,
}

/// The chunks of a drive's values, as all of its cores count them.
#[derive(Debug)]
pub struct Dedup {
    options: Options,
    table: Arc<Table>,
}

impl Dedup {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, table: Arc::new(Table::new(options.memory_bytes)) }
    }

    /// Returns what is counted.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the counts so far.
    pub fn counted(&self) -> Counted {
        self.table.counted()
    }

    /// Says how much is counted twice, in words.
    pub(crate) fn words(&self) -> String {
        let counted = self.counted();
        let sampled = match counted.sampling {
            1 => String::new(),
            of => format!(", 1 of {of} sampled"),
        };
        let (share, chunk) = (100.0 * counted.duplicate_share(), self.options.chunk_bytes);
        format!("{share:.1} % duplicate in chunks of {chunk} B{sampled}")
    }
}

/// Returns the part of a core in the counting.
///
/// # Panics
/// If the drive does not count.
pub(crate) fn begin(core: &Rc<Core>) -> Box<dyn Service> {
    let dedup = core.shared.dedup.as_ref().expect("a row only of a drive that counts");
    let (chunk_bytes, table) = (dedup.options.chunk_bytes as usize, Arc::clone(&dedup.table));
    Box::new(Counting { values: core.kv.new_values(AT_HAND_BYTES), chunk_bytes, table })
}

/// The counting of a core. A step is the values of a group commit, or one value of the medium.
struct Counting {
    values: NewValues,
    chunk_bytes: usize,
    table: Arc<Table>,
}

impl Counting {
    async fn count(&mut self) -> Step {
        let batch = match self.values.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => return Step::Idle,
            Err(error) => return Step::Failed(format!("a value cannot be read: {error}")),
        };
        let bytes = batch.value_bytes();
        let job = Count::new(batch, self.chunk_bytes, Arc::clone(&self.table));
        match compute(Class::Service, job).await {
            Ok(()) => Step::Worked { bytes },
            Err(error) => Step::Failed(format!("values cannot be hashed: {error}")),
        }
    }
}

impl Service for Counting {
    fn step(&mut self) -> Pending<'_, Step> {
        Box::pin(self.count())
    }

    fn wait(&mut self) -> Pending<'_, ()> {
        Box::pin(self.values.arrived())
    }
}
