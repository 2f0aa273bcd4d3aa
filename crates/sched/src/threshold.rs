//! [`Threshold`]: the utilisation below which a core is worth moving work to, from mean and
//! deviation of all cores. Park et al., section IV.A, name these two and leave the rule open.

use crate::monitor::Window;

/// Utilisation below which a core stands out from the others.
///
/// With mean `m` and standard deviation `s` of the utilisation of all cores, the threshold is
/// `m - factor * s`. Cores that are all about equally busy have a deviation near 0, and none is
/// below it, so that work stays where it arose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Deviations below the mean.
    pub factor: f64,
}

impl Default for Threshold {
    fn default() -> Self {
        Self { factor: 1.0 }
    }
}

impl Threshold {
    /// Returns the threshold of a window, from 0 to 1; 0 if it has no cores.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of cores are small")]
    pub fn of(&self, window: &Window) -> f64 {
        let cores = window.utilisation.len().max(1) as f64;
        let mean = window.utilisation.iter().sum::<f64>() / cores;
        let squares: f64 =
            window.utilisation.iter().map(|share| (share - mean) * (share - mean)).sum();
        (mean - self.factor * (squares / cores).sqrt()).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(utilisation: &[f64]) -> f64 {
        let is_active = vec![true; utilisation.len()];
        Threshold::default().of(&Window { is_active, utilisation: utilisation.to_vec() })
    }

    #[test]
    fn it_is_one_deviation_below_the_mean() {
        // Mean 0.5, deviation 0.25.
        assert!((of(&[0.25, 0.75, 0.25, 0.75]) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn no_core_is_below_it_when_all_are_equally_busy() {
        assert!(of(&[0.9; 6]) <= 0.9);
        assert!(of(&[0.9; 6]) > 0.9 - 1e-12);
        assert!(of(&[]).abs() < 1e-12);
    }

    #[test]
    fn it_is_never_negative() {
        assert!(of(&[0.0, 0.0, 0.0, 1.0]).abs() < 1e-12);
    }
}
