//! [`Growth`]: how much a counter has grown, whatever becomes of what it counts.
//!
//! Counters of the machine belong to something: a process, a control group, a drive. That may end,
//! and another may take its place and count from 0. Invariant: nothing is counted twice, and
//! what was read before an end stays counted.

/// Reading of a counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Name of what it counts. Another name has a counter of its own, from 0 on.
    pub of: String,
    /// Value, in the counter's unit.
    pub value: f64,
}

/// Growth of a counter since its first reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Growth {
    last: Option<Reading>,
    total: f64,
    began: bool,
    changes: u32,
    is_gone: bool,
}

impl Growth {
    /// Takes over a reading; `None` if there is nothing that counts, or it cannot be read. A
    /// counter that is there at the first call has counted before; one that comes later counts
    /// from 0.
    pub fn read(&mut self, reading: Option<Reading>) {
        let began = std::mem::replace(&mut self.began, true);
        self.is_gone = reading.is_none() && (self.is_gone || self.last.is_some());
        let Some(now) = reading else { return };
        let same = self.last.as_ref().filter(|last| last.of == now.of && last.value <= now.value);
        match same {
            Some(last) => self.total += now.value - last.value,
            None if began => {
                self.changes += u32::from(self.last.is_some());
                self.total += now.value;
            }
            None => {}
        }
        self.last = Some(now);
    }

    /// Returns the growth.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Says what became of the counter, where the total may lack something; `None` if it was read
    /// from the first to the last time.
    #[must_use]
    pub fn gap(&self) -> Option<&'static str> {
        match self {
            Self { is_gone: true, .. } => Some("went away: counted until it was last read"),
            Self { changes: 1.., .. } => {
                Some("began anew: what it counted between the last reading and its end is missing")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(readings: &[Option<(&str, f64)>]) -> (f64, Option<&'static str>) {
        let mut growth = Growth::default();
        for reading in readings {
            growth.read(reading.map(|(of, value)| Reading { of: of.to_owned(), value }));
        }
        (growth.total(), growth.gap())
    }

    #[test]
    fn a_counter_grows_from_its_first_reading() {
        assert_eq!(total(&[]), (0.0, None));
        assert_eq!(total(&[Some(("a", 5.0))]), (0.0, None));
        assert_eq!(total(&[Some(("a", 5.0)), Some(("a", 5.0)), Some(("a", 7.5))]), (2.5, None));
    }

    #[test]
    fn what_begins_meanwhile_is_counted_whole() {
        assert_eq!(total(&[None, Some(("a", 3.0)), Some(("a", 4.0))]), (4.0, None));
        assert_eq!(total(&[None, None]), (0.0, None));
    }

    #[test]
    fn what_goes_away_stays_counted() {
        let (sum, gap) = total(&[Some(("a", 1.0)), Some(("a", 3.0)), None, None]);
        assert_eq!(sum, 2.0);
        assert!(gap.unwrap().contains("went away"));
        // It could not be read for a moment.
        assert_eq!(total(&[Some(("a", 1.0)), None, Some(("a", 3.0))]), (2.0, None));
    }

    #[test]
    fn another_one_and_one_that_wraps_count_from_zero() {
        for of in ["a", "b"] {
            let (sum, gap) = total(&[Some(("a", 10.0)), Some(("a", 12.0)), Some((of, 3.0))]);
            assert_eq!(sum, 5.0);
            assert!(gap.unwrap().contains("began anew"));
        }
        // Also if the other one has counted more.
        assert_eq!(total(&[Some(("a", 10.0)), Some(("b", 30.0)), None]).0, 30.0);
    }
}
