//! Objects as people use files: `csd ls`, `cat`, `du`, `cp` and `mv`, folders with `csd put -r`
//! and `csd get -r`, `csd sync`, and digests with `csd sum`.
//!
//! Each command connects to the array once, however many objects it takes. Invariants: every
//! object that fails is named, as soon as it has failed, and does not keep others from being done.
//!
//! Modules: [`sync_work`] compares ([`compare`]) and sends for a sync, [`like`] keeps options of an
//! object; [`walk`] lists files, [`listing`] objects; [`upload`] and [`download`] do one of them,
//! [`mod@in_flight`] several at once, until a signal ([`interruptible`]); [`hash`] and
//! [`digest_list`] make digests and lists of them; [`tally`] counts what failed; the others are the commands.

mod cat;
mod compare;
mod copy;
mod digest_list;
mod download;
mod du;
mod get_folder;
mod hash;
mod in_flight;
mod interruptible;
mod like;
mod listing;
mod ls;
mod put_folder;
mod sum;
mod sync;
mod sync_work;
mod tally;
mod tree;
mod upload;
mod walk;

pub(crate) use cat::cat;
pub(crate) use copy::{cp, mv};
pub(crate) use du::du;
pub(crate) use get_folder::get_folder;
pub(crate) use ls::ls;
pub(crate) use put_folder::put_folder;
pub(crate) use sum::sum;
pub(crate) use sync::sync;
