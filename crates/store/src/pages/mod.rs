//! Page lists on drives: checksums of the pages of an object's pieces, in values that lie next to
//! the pieces ([`csd_nvme::vendor::pages`]).
//!
//! A writer that has the bytes sums pages itself ([`crate::object`]). Pieces that drives have made,
//! and those whose list is missing or damaged, get lists later, from checksums that their drive
//! computes ([`page_list_writer`]). [`page_list_reader`] reads which pieces have lists.

mod page_list_reader;
mod page_list_writer;

pub(crate) use page_list_reader::{Listed, ListedPieces, damaged, page_bytes};
pub(crate) use page_list_writer::{Group, Maker, Wanted, add, store};

/// Default size of a page, bytes.
pub const PAGE_BYTES: u32 = 4096;
/// Longest list, bytes, unless one piece needs more.
pub(crate) const LIST_BYTES: usize = 64 << 10;
