//! Objects as people use files: `csd ls`, `cat`, `du`, `cp` and `mv`.
//!
//! Each command connects to the array once, however many objects it takes. Invariants: every
//! object that fails is named, as soon as it has failed, and does not keep others from being done.
//!
//! Modules: [`listing`] lists objects by prefix, [`tally`] counts what failed; the others are the
//! commands.

mod cat;
mod copy;
mod du;
mod listing;
mod ls;
mod tally;
mod tree;

pub(crate) use cat::cat;
pub(crate) use copy::{cp, mv};
pub(crate) use du::du;
pub(crate) use ls::ls;
