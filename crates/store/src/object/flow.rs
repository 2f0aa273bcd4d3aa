//! [`Flow`]: progress, rate and early end of a copy.

use std::cell::Cell;
use std::rc::Rc;

use super::Progress;
use crate::array::Array;
use crate::pace::Pace;

/// Limits of a copy.
#[derive(Clone)]
pub(super) struct Flow {
    pub(super) progress: Progress,
    pub(super) pace: Rc<Pace>,
    /// True once it must end early.
    pub(super) stop: Rc<Cell<bool>>,
}

impl Flow {
    /// Returns a flow without limits.
    pub(super) fn free(array: &Array, progress: &Progress) -> Self {
        let pace = Rc::new(Pace::new(array.slots().len(), None));
        Self { progress: progress.clone(), pace, stop: Rc::default() }
    }
}
