//! [`IdleGroup`]: the cores that did no foreground work in the last window, and a choice among them
//! (Park et al., section IV.A, "Core Selection Module").

use crate::monitor::Window;

/// The idle cores of a window (`G`), and all its cores by utilisation.
#[derive(Clone, Debug, Default)]
pub struct IdleGroup {
    idle: Vec<usize>,
    least_used: usize,
}

impl IdleGroup {
    /// Builds the group again from a window: the cores that were not active in it.
    pub fn rebuild(&mut self, window: &Window) {
        self.idle.clear();
        self.idle.extend((0..window.cores()).filter(|core| !window.is_active[*core]));
        self.least_used = (0..window.cores())
            .min_by(|a, b| window.utilisation[*a].total_cmp(&window.utilisation[*b]))
            .unwrap_or_default();
    }

    /// Returns the idle cores, in ascending order.
    #[must_use]
    pub fn idle(&self) -> &[usize] {
        &self.idle
    }

    /// Returns the core with the lowest utilisation; of equals, the one with the lowest number.
    #[must_use]
    pub fn least_used(&self) -> usize {
        self.least_used
    }

    /// Returns one of the idle cores, by a random number; `None` if there is none.
    #[must_use]
    pub fn pick(&self, random: u64) -> Option<usize> {
        let cores = self.idle.len();
        // The high half of the product: uniform, without a division.
        let index = (u128::from(random) * cores as u128) >> 64;
        self.idle.get(usize::try_from(index).unwrap_or(cores)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(is_active: &[bool], utilisation: &[f64]) -> IdleGroup {
        let mut group = IdleGroup::default();
        let window = Window { is_active: is_active.to_vec(), utilisation: utilisation.to_vec() };
        group.rebuild(&window);
        group
    }

    /// The example of Fig. 4, whose cores are numbered from 1: cores 2, 4 and 5 are active in the
    /// first window, and core 3 in place of core 4 in the second.
    #[test]
    fn the_group_is_that_of_the_papers_example() {
        let first =
            group(&[false, true, false, true, true, false], &[0.0, 0.7, 0.0, 0.4, 0.9, 0.0]);
        assert_eq!(first.idle(), [0, 2, 5]);
        let second =
            group(&[false, true, true, false, true, false], &[0.0, 0.7, 0.4, 0.0, 0.9, 0.0]);
        assert_eq!(second.idle(), [0, 3, 5]);
    }

    #[test]
    fn picks_are_uniform_and_of_idle_cores_alone() {
        let group = group(&[false, true, false, false], &[0.0, 0.1, 0.0, 0.0]);
        let picked: Vec<_> =
            (0..3).map(|third| group.pick(u64::MAX / 3 * third + 5).unwrap()).collect();
        assert_eq!(picked, [0, 2, 3]);
        assert_eq!([group.pick(0), group.pick(u64::MAX)], [Some(0), Some(3)]);
    }

    #[test]
    fn without_an_idle_core_the_least_used_one_is_known() {
        let busy = group(&[true, true, true], &[0.5, 0.2, 0.2]);
        assert_eq!(busy.pick(7), None);
        assert_eq!(busy.least_used(), 1);
    }
}
