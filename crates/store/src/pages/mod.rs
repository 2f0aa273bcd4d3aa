//! Page lists on drives: checksums of the pages of an object's pieces, in values that lie next to
//! the pieces ([`csd_nvme::vendor::pages`]).
//!
//! A writer that has the bytes sums pages itself ([`crate::object`]). Pieces that drives have made,
//! and those whose list is missing or damaged, get lists later, from checksums that their drive
//! computes ([`made`]). [`held`] reads which pieces have lists.

mod held;
mod made;

pub(crate) use held::{Held, Listed, damaged, page_bytes};
pub(crate) use made::{Group, Maker, Wanted, add, store};

/// Default size of a page, bytes.
pub const PAGE_BYTES: u32 = 4096;
/// Longest list, bytes, unless one piece needs more.
pub(crate) const LIST_BYTES: usize = 64 << 10;
