//! [`Pace`]: the rate at which a command uses each drive.

use std::cell::Cell;

use csd_reactor::{Instant, now, sleep_until};

use crate::piece::read_by;

/// Times from which drives may be used again, by index.
pub(crate) struct Pace {
    free_at: Vec<Cell<Instant>>,
    bytes_per_s: Option<u64>,
}

impl Pace {
    /// Returns the pace of so many drives, `None` for no limit.
    pub(crate) fn new(drives: usize, bytes_per_s: Option<u64>) -> Self {
        Self { free_at: (0..drives).map(|_| Cell::new(now())).collect(), bytes_per_s }
    }

    /// Returns true if there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.bytes_per_s.is_some()
    }

    /// Waits until a drive may read or write so many bytes more.
    pub(crate) async fn wait(&self, index: usize, bytes: u64) {
        let Some((rate, free_at)) = self.bytes_per_s.zip(self.free_at.get(index)) else { return };
        let begin = free_at.get().max(now());
        free_at.set(read_by(begin, bytes, rate));
        sleep_until(begin).await;
    }
}
