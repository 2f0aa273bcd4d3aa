//! [`Pace`]: the rate at which a command uses each drive.

use std::cell::Cell;

use csd_reactor::{Pacer, sleep_until};

use crate::array::DriveIndex;

/// Pacers of drives, by index; `None` for no limit.
pub(crate) struct Pace(Option<Vec<Cell<Pacer>>>);

impl Pace {
    /// Returns the pace of so many drives, `None` for no limit.
    pub(crate) fn new(drives: usize, bytes_per_s: Option<u64>) -> Self {
        Self(bytes_per_s.map(|rate| vec![Cell::new(Pacer::new(rate)); drives]))
    }

    /// Returns true if there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until a drive may read or write so many bytes more.
    pub(crate) async fn wait(&self, index: DriveIndex, bytes: u64) {
        let Some(cell) = self.0.as_ref().and_then(|pacers| pacers.get(usize::from(index))) else {
            return;
        };
        let mut pacer = cell.get();
        let begin = pacer.due();
        pacer.reserve(bytes);
        cell.set(pacer);
        sleep_until(begin).await;
    }
}
