//! [`Runner`]: who runs the plan of a scan over the row groups of a table.

use std::fmt;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::plan::Plan;
use crate::table::{Reading, Table};

/// Answers that may wait for the host's part of the query.
const AHEAD: usize = 16;

/// A scan that begins.
#[derive(Clone, Debug)]
pub struct ScanJob {
    /// The table.
    pub table: Arc<Table>,
    /// Row groups that it reads.
    pub reading: Reading,
    /// The plan.
    pub plan: Arc<Plan>,
    /// The plan as bytes for drives, or the reason why it has none, in words.
    pub bytes: Result<Vec<u8>, String>,
    /// Parts of the query that the host does because no plan has them, in words.
    pub refused: Vec<String>,
}

/// Answers of row groups in their order, each a stream of Arrow IPC; or the reason why there is
/// none.
pub type Answers = mpsc::Receiver<Result<Vec<u8>, String>>;

/// The other end of [`Answers`]. A query that needs no more closes it.
pub type Sender = mpsc::Sender<Result<Vec<u8>, String>>;

/// Returns both ends.
#[must_use]
pub fn answers() -> (Sender, Answers) {
    mpsc::channel(AHEAD)
}

/// Runs plans of scans.
pub trait Runner: fmt::Debug + Send + Sync {
    /// Starts a scan; it ends when all row groups have been answered, or the answers are dropped.
    fn start(&self, job: ScanJob) -> Answers;
}
