//! Cores of a run: the time that they work, and the bytes that cross the wire meanwhile.

use std::rc::Rc;

use csd_reactor::{Config, CoreId, Instant, now};
use csd_store::array::{Array, Drive, DriveIndex};

use crate::link::Link;
use crate::{Error, Failed};

/// Contribution of one core to an outcome.
pub(crate) struct CorePart {
    begin: Instant,
    end: Instant,
    crossed_bytes: u64,
}

impl CorePart {
    /// Begins to measure the work of this core.
    pub(crate) fn begin(links: &[Link]) -> Self {
        Self { begin: now(), end: now(), crossed_bytes: crossed_bytes(links) }
    }

    /// Ends the measurement.
    pub(crate) fn end(self, links: &[Link]) -> Self {
        let crossed_bytes = crossed_bytes(links) - self.crossed_bytes;
        Self { end: now(), crossed_bytes, ..self }
    }

    /// Adds the traffic of drives that have only pieces, and no chunks of their own in the run.
    pub(crate) fn with(self, others: &[Rc<Drive>]) -> Self {
        let crossed: u64 = others.iter().map(|drive| drive.wire_bytes()).sum();
        Self { crossed_bytes: self.crossed_bytes + crossed, ..self }
    }
}

/// Returns the drives that are no members.
pub(crate) fn others(array: &Array, members: &[DriveIndex]) -> Vec<Rc<Drive>> {
    array.drives().filter(|drive| !members.contains(&drive.index)).cloned().collect()
}

fn crossed_bytes(links: &[Link]) -> u64 {
    links.iter().map(|link| link.crossed_bytes()).sum()
}

/// Time and traffic of a run.
pub(crate) struct Spent {
    /// Wall time from the last connection to the last answer, seconds.
    pub(crate) wall_s: f64,
    /// Bytes on the wire between drives and host in that time, in both directions.
    pub(crate) crossed_bytes: u64,
}

/// Runs `main` on each of `cores` cores until all have ended.
pub(crate) fn run<F>(
    config: &Config,
    cores: usize,
    main: impl Fn(CoreId) -> F + Send + Sync + 'static,
) -> Result<Spent, Failed>
where
    F: Future<Output = Result<CorePart, Error>> + 'static,
{
    let config = Config { cores, ..config.clone() };
    let parts = csd_reactor::run(&config, main)?.into_iter().collect::<Result<Vec<_>, _>>()?;
    let begin = parts.iter().map(|part| part.begin).min().unwrap_or(Instant::ZERO);
    let end = parts.iter().map(|part| part.end).max().unwrap_or(Instant::ZERO);
    Ok(Spent {
        wall_s: seconds(end.ns().saturating_sub(begin.ns())),
        crossed_bytes: parts.iter().map(|part| part.crossed_bytes).sum(),
    })
}

#[allow(clippy::cast_precision_loss)] // a run of 2^53 ns takes 104 days
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
