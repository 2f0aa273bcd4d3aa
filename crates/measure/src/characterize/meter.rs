//! Energy of measurements, by a counter that the caller knows how to read.
//!
//! A counter counts all energy of its machine, so the power at rest is measured first and
//! subtracted. Opens no file, and does not know which component is counted. Invariant: without a
//! readable counter the energy is `None`, not 0.

use std::sync::Arc;
use std::time::Duration;

use csd_reactor::{Instant, now, sleep};

use super::Error;

/// Function that returns a growing total of the energy drawn, J; `None` when it cannot be read.
pub type Counter = Arc<dyn Fn() -> Option<f64> + Send + Sync>;

/// Time of rest for measuring the power at rest.
const REST: Duration = Duration::from_secs(1);

/// A counter, and the power without a measurement.
#[derive(Clone)]
pub struct Meter {
    counter: Counter,
    /// Power at rest, W.
    pub rest_watts: f64,
}

/// Reading of a counter at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    joules: f64,
    at: Instant,
}

impl Meter {
    /// Measures the power at rest for a second; returns `None` when the counter cannot be read.
    ///
    /// # Errors
    /// [`Error::Runtime`].
    pub fn new(runtime: &csd_reactor::Config, counter: Counter) -> Result<Option<Self>, Error> {
        let meter = Self { counter, rest_watts: 0.0 };
        let own = meter.clone();
        let rested = csd_reactor::block_on(runtime, move || async move {
            let before = own.mark();
            sleep(REST).await;
            (before, own.mark())
        });
        let (before, after) = rested.map_err(Error::Runtime)?;
        let Some((before, after)) = before.zip(after) else { return Ok(None) };
        let rest_watts = (after.joules - before.joules) / after.at.since(before.at).as_secs_f64();
        Ok(Some(Self { rest_watts, ..meter }))
    }

    /// Reads the counter now.
    pub(super) fn mark(&self) -> Option<Mark> {
        Some(Mark { joules: (self.counter)()?, at: now() })
    }

    /// Returns the energy from the first to the last of `spans`, J, above that of the machine at
    /// rest; `None` when one of them could not be read.
    pub(super) fn beyond_rest(&self, spans: &[Option<(Mark, Mark)>]) -> Option<f64> {
        let spans: Vec<_> = spans.iter().copied().collect::<Option<_>>()?;
        let first = spans.iter().map(|(begin, _)| *begin).min_by_key(|mark| mark.at)?;
        let last = spans.iter().map(|(_, end)| *end).max_by_key(|mark| mark.at)?;
        let seconds = last.at.since(first.at).as_secs_f64();
        Some((last.joules - first.joules - self.rest_watts * seconds).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn mark(joules: f64, ms: u64) -> Mark {
        Mark { joules, at: Instant::from_ns(ms * 1_000_000) }
    }

    fn meter(rest_watts: f64) -> Meter {
        Meter { counter: Arc::new(|| None), rest_watts }
    }

    #[test]
    fn energy_is_from_the_first_begin_to_the_last_end_without_rest() {
        let spans =
            [Some((mark(11.0, 20), mark(15.0, 300))), Some((mark(10.0, 10), mark(19.0, 510)))];
        assert_eq!(meter(0.0).beyond_rest(&spans), Some(9.0));
        assert_eq!(meter(4.0).beyond_rest(&spans), Some(7.0), "4 W for half a second");
        assert_eq!(meter(100.0).beyond_rest(&spans), Some(0.0), "noise is no gain of energy");
        assert_eq!(meter(0.0).beyond_rest(&[spans[0], None]), None);
        assert_eq!(meter(0.0).beyond_rest(&[]), None);
    }

    #[test]
    fn rest_is_measured_first_and_a_counter_that_cannot_be_read_is_none() {
        let reads = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&reads);
        let counter: Counter =
            Arc::new(move || Some(f64::from(count.fetch_add(1, Ordering::SeqCst))));
        let runtime = csd_reactor::Config::default();
        let meter = Meter::new(&runtime, counter).unwrap().unwrap();
        // A joule between two reads that are a second apart, or a little more.
        assert!(meter.rest_watts > 0.0 && meter.rest_watts <= 1.0, "{}", meter.rest_watts);
        assert_eq!(reads.load(Ordering::SeqCst), 2);
        assert!(Meter::new(&runtime, Arc::new(|| None)).unwrap().is_none());
    }
}
