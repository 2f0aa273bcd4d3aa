//! [`CoreId`]: the number of a core, and the error for a core that is gone.

use std::fmt;

/// Number of a core within its runtime (or its simulated machine), from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoreId(pub usize);

impl fmt::Display for CoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Error: the core has finished, crashed or never existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the core is gone")]
pub struct CoreGone;
