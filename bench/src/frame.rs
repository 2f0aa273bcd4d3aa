//! [`Frame`]: alternates runs of two sides, reports progress and can be interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::Error;

/// Flag that ends a measurement early; clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks the measurement to end.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Returns an error once the measurement is asked to end.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<(), Error> {
        if self.0.load(Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// Progress of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Number of pairs measured so far.
    pub done: usize,
    /// Number of pairs in all.
    pub of: usize,
    /// Name of the comparison under way.
    pub what: &'a str,
}

/// Alternates runs of two sides.
pub struct Frame<'a> {
    pairs: usize,
    stop: Stop,
    progress: &'a dyn Fn(Step<'_>),
    done: usize,
    of: usize,
}

impl<'a> Frame<'a> {
    /// Makes a frame for so many comparisons of `pairs` pairs each.
    ///
    /// # Errors
    /// [`Error::Usage`] without pairs.
    pub fn new(
        pairs: usize,
        comparisons: usize,
        stop: &Stop,
        progress: &'a dyn Fn(Step<'_>),
    ) -> Result<Self, Error> {
        if pairs == 0 {
            return Err(Error::Usage("at least one pair of runs is needed".to_owned()));
        }
        let of = pairs * comparisons;
        Ok(Self { pairs, stop: stop.clone(), progress, done: 0, of })
    }

    /// Runs both sides in turns and returns their results in pairs.
    ///
    /// # Errors
    /// The first error of a run, or [`Error::Interrupted`].
    pub fn compare<T>(
        &mut self,
        what: &str,
        mut first: impl FnMut() -> Result<T, Error>,
        mut second: impl FnMut() -> Result<T, Error>,
    ) -> Result<Vec<(T, T)>, Error> {
        let mut results = Vec::with_capacity(self.pairs);
        for _ in 0..self.pairs {
            (self.progress)(Step { done: self.done, of: self.of, what });
            let pair = (self.run(&mut first)?, self.run(&mut second)?);
            results.push(pair);
            self.done += 1;
        }
        (self.progress)(Step { done: self.done, of: self.of, what });
        Ok(results)
    }

    fn run<T>(&self, side: &mut impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        self.stop.check()?;
        let result = side();
        // An interrupted run may fail in another way first, such as with a closed connection.
        self.stop.check()?;
        result
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn sides_alternate_and_progress_ends_at_the_whole() {
        let (order, steps) = (RefCell::new(String::new()), RefCell::new(Vec::new()));
        let note = |side: char| {
            order.borrow_mut().push(side);
            Ok(order.borrow().len())
        };
        let progress = |step: Step<'_>| steps.borrow_mut().push((step.done, step.of));
        let mut frame = Frame::new(2, 2, &Stop::default(), &progress).unwrap();
        let pairs = frame.compare("x", || note('a'), || note('b')).unwrap();
        assert_eq!(pairs, [(1, 2), (3, 4)]);
        frame.compare("y", || note('a'), || note('b')).unwrap();
        assert_eq!(*order.borrow(), "abababab");
        assert_eq!(*steps.borrow(), [(0, 4), (1, 4), (2, 4), (2, 4), (3, 4), (4, 4)]);
    }

    #[test]
    fn an_interruption_goes_before_the_error_that_it_causes() {
        let stop = Stop::default();
        let mut frame = Frame::new(1, 1, &stop, &|_| ()).unwrap();
        let failed = frame.compare(
            "x",
            || {
                stop.set();
                Err::<(), _>(Error::Server("closed".to_owned()))
            },
            || panic!("it ran after the interruption"),
        );
        assert!(matches!(failed, Err(Error::Interrupted)));
    }

    #[test]
    fn no_pairs_are_refused() {
        assert!(matches!(Frame::new(0, 1, &Stop::default(), &|_| ()), Err(Error::Usage(_))));
    }
}
