//! Median and quartiles of repeated measurements.
//!
//! Quartiles are linearly interpolated between the ordered values (the default of NumPy).
//! Invariant: `p25 <= median <= p75`, all greater than 0: a time below the resolution of the clock
//! counts as one nanosecond.

use crate::profile::{Energy, Source, Timing};

/// Distance between the quartiles, divided by the median, above which a measurement is called
/// unsteady.
pub const UNSTEADY: f64 = 0.25;
/// Relative distance of medians, of the smaller one, below which they count as equal.
const ALIKE: f64 = 0.1;
/// Resolution of the clock, seconds.
const RESOLUTION_S: f64 = 1e-9;

/// Values of one quantity, a value for each run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples(Vec<f64>);

/// Median and quartiles of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// Median.
    pub median: f64,
    /// First quartile.
    pub p25: f64,
    /// Third quartile.
    pub p75: f64,
    /// Number of values.
    pub n: u64,
}

impl Samples {
    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        self.0.push(value.max(RESOLUTION_S));
    }

    /// Adds the values of another.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend(&other.0);
    }

    /// Returns true if the medians differ by more than the sum of both interquartile ranges, and by
    /// more than a tenth.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        match (self.quartiles(), other.quartiles()) {
            (Some(a), Some(b)) => {
                let spread = (a.p75 - a.p25) + (b.p75 - b.p25);
                (a.median - b.median).abs() > spread.max(ALIKE * a.median.min(b.median))
            }
            (None, None) => false,
            _ => true,
        }
    }

    /// Returns median and quartiles; `None` without values.
    #[must_use]
    pub fn quartiles(&self) -> Option<Quartiles> {
        if self.0.is_empty() {
            return None;
        }
        let mut ordered = self.0.clone();
        ordered.sort_by(f64::total_cmp);
        // No more digits than the clock has.
        let rounded = |value: f64| (value * 1e9).round() / 1e9;
        let at = |part: f64| rounded(quantile(&ordered, part)).max(RESOLUTION_S);
        let n = ordered.len() as u64;
        Some(Quartiles { median: at(0.5), p25: at(0.25), p75: at(0.75), n })
    }

    /// Returns the timing for a profile's point; `None` without values.
    #[must_use]
    pub fn timing(&self) -> Option<Timing> {
        let Quartiles { median, p25, p75, n } = self.quartiles()?;
        Some(Timing { median, p25: Some(p25), p75: Some(p75), n: Some(n), prov: None })
    }

    /// Returns the energy for a profile's point; `None` without values.
    #[must_use]
    pub fn energy(&self, source: Source) -> Option<Energy> {
        let Quartiles { median, p25, p75, n } = self.quartiles()?;
        Some(Energy { median, p25: Some(p25), p75: Some(p75), n: Some(n), source })
    }
}

impl Quartiles {
    /// Returns true if the quartiles are too far apart for the median to mean much.
    #[must_use]
    pub fn is_unsteady(&self) -> bool {
        self.n > 1 && self.p75 - self.p25 > UNSTEADY * self.median
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn quantile(ordered: &[f64], part: f64) -> f64 {
    let at = part * (ordered.len() - 1) as f64;
    let (below, above) = (ordered[at.floor() as usize], ordered[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quartiles(values: &[f64]) -> Option<Quartiles> {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.push(*value));
        samples.quartiles()
    }

    #[test]
    fn quartiles_are_interpolated() {
        // numpy.percentile([4, 1, 3, 2], [50, 25, 75]) is [2.5, 1.75, 3.25].
        let expected = Quartiles { median: 2.5, p25: 1.75, p75: 3.25, n: 4 };
        assert_eq!(quartiles(&[4.0, 1.0, 3.0, 2.0]), Some(expected));
        assert_eq!(quartiles(&[7.0]), Some(Quartiles { median: 7.0, p25: 7.0, p75: 7.0, n: 1 }));
        assert_eq!(quartiles(&[]), None);
    }

    #[test]
    fn unsteady_is_a_wide_gap_between_quartiles() {
        assert!(quartiles(&[1.0, 2.0, 3.0]).unwrap().is_unsteady());
        assert!(!quartiles(&[1.0, 1.1, 1.2]).unwrap().is_unsteady());
        assert!(!quartiles(&[1.0]).unwrap().is_unsteady());
    }

    #[test]
    fn times_differ_by_more_than_their_spreads_and_a_tenth() {
        let samples = |values: &[f64]| {
            let mut samples = Samples::default();
            values.iter().for_each(|value| samples.push(*value));
            samples
        };
        let steady = samples(&[1.0, 1.0, 1.0]);
        let cases: [(&[f64], bool); 5] = [
            (&[1.09, 1.09, 1.09], false),
            (&[1.2, 1.2, 1.2], true),
            (&[1.0, 1.2, 1.4], false), // the median is off by a fifth, as is the spread
            (&[0.5], true),
            (&[], true),
        ];
        for (values, differ) in cases {
            assert_eq!(steady.differs(&samples(values)), differ, "{values:?}");
            assert_eq!(samples(values).differs(&steady), differ, "{values:?}");
        }
        assert!(!samples(&[]).differs(&samples(&[])));
    }

    #[test]
    fn a_time_too_short_to_tell_is_still_greater_than_nothing() {
        let found = quartiles(&[0.0, 0.0]).unwrap();
        assert!(found.p25 > 0.0 && found.p25 <= found.median && found.median <= found.p75);
    }
}
