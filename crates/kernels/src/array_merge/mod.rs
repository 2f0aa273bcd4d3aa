//! Array merge: merges two sorted arrays into one that has every value once.
//!
//! Duplicates are removed across the inputs and within each. Inputs that are not sorted are
//! refused, and so is NaN, which has no place in an order. -0.0 equals 0.0; zeros come out as 0.0,
//! so that the result does not depend on the order of the inputs. Work is counted in elements read.
//!
//! Needs a piece of each input at a time, not the whole. Invariants: the result does not depend on
//! the pieces that the inputs were cut into; the merges of the parts that [`range`] cuts are the
//! parts of the whole merge.

mod kernel;
pub(crate) mod key;
mod merger;
mod program;
pub mod range;
pub mod scalar;

pub use crate::numeric::ElementParameters as Parameters;
pub use kernel::KERNEL;
use std::fmt;

use crate::arch;
use crate::numeric::{Misaligned, Numeric};
use merger::Merger;

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 3;
/// Name of the kernel.
pub const NAME: &str = "array-merge";

/// One of the two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    Left,
    /// The second.
    Right,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Left { "left" } else { "right" })
    }
}

/// Reason why an input was refused. The part merged before it is no result then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A piece does not hold whole elements.
    #[error(transparent)]
    Misaligned(#[from] Misaligned),
    /// An element is smaller than the one before it.
    #[error("element {at} of the {side} input is smaller than the one before: sort it")]
    NotSorted {
        /// The input.
        side: Side,
        /// Index of the element in the input.
        at: u64,
    },
    /// An element is NaN.
    #[error("element {at} of the {side} input is NaN, which has no place in an order")]
    Nan {
        /// The input.
        side: Side,
        /// Index of the element in the input.
        at: u64,
    },
}

/// Next bytes of an input.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// True if the input ends with them.
    pub last: bool,
}

/// Number of bytes taken from each piece; the caller passes the rest again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// From the left piece.
    pub left: usize,
    /// From the right piece.
    pub right: usize,
}

/// Merge in progress.
#[derive(Clone, Debug)]
pub struct ArrayMerge(Machine);

#[derive(Clone, Debug)]
enum Machine {
    Narrow(Merger<i32>),
    Wide(Merger<i64>),
}

impl ArrayMerge {
    /// Starts a merge.
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self::with(parameters.element, arch::array_merge::best())
    }

    fn with(element: Numeric, version: Version) -> Self {
        Self(match element.bytes() {
            4 => Machine::Narrow(Merger::new(element, version.run.narrow)),
            _ => Machine::Wide(Merger::new(element, version.run.wide)),
        })
    }

    /// Merges until a piece that is not its input's last is used up. Passes the result's next bytes
    /// to `sink`, at most 64 KiB at a time.
    ///
    /// # Errors
    /// [`Error`]; the merge is over then, and every later call gives the same error.
    pub fn feed(
        &mut self,
        left: Piece<'_>,
        right: Piece<'_>,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<Taken, Error> {
        match &mut self.0 {
            Machine::Narrow(merger) => merger.feed([left, right], &mut sink),
            Machine::Wide(merger) => merger.feed([left, right], &mut sink),
        }
    }

    /// Returns the number of elements read from both inputs: the work done.
    #[must_use]
    pub fn elements(&self) -> u64 {
        match &self.0 {
            Machine::Narrow(merger) => merger.elements(),
            Machine::Wide(merger) => merger.elements(),
        }
    }
}

/// Merges two whole inputs, by the fastest version that this machine runs.
///
/// # Errors
/// [`Error`] with the input's fault.
pub fn merge(element: Numeric, left: &[u8], right: &[u8]) -> Result<Vec<u8>, Error> {
    whole(ArrayMerge::new(Parameters { element }), left, right)
}

fn whole(mut merge: ArrayMerge, left: &[u8], right: &[u8]) -> Result<Vec<u8>, Error> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let piece = |bytes| Piece { bytes, last: true };
    merge.feed(piece(left), piece(right), |bytes| merged.extend_from_slice(bytes))?;
    Ok(merged)
}

/// Compiled version of the kernel that this machine can run.
pub type Version = arch::Version<arch::array_merge::Both>;

impl Version {
    /// Returns every version that this machine can run, the one that [`ArrayMerge`] uses first.
    pub fn available() -> impl Iterator<Item = Self> {
        arch::array_merge::versions()
    }

    /// Starts a merge with this version.
    #[must_use]
    pub fn start(self, element: Numeric) -> ArrayMerge {
        ArrayMerge::with(element, self)
    }

    /// Merges as [`merge`](fn@merge) does.
    ///
    /// # Errors
    /// [`Error`] with the input's fault.
    pub fn merge(self, element: Numeric, left: &[u8], right: &[u8]) -> Result<Vec<u8>, Error> {
        whole(self.start(element), left, right)
    }
}
