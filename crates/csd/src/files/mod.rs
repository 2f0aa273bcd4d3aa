//! Objects as people use files: `csd ls`, `cat`, `du`, `sum`, `cp` and `mv`; several files with
//! `csd put --each`; folders with `csd put -r`, `get -r`, `rm -r` and `sync`; tars with
//! `csd export` and `import`.
//!
//! Each command connects to the array for all its objects together. Invariant: an object that fails
//! is named as soon as it has failed, and does not keep others from being done, except in a tar.
//!
//! Modules, besides the commands:
//! - [`walk`] lists files, [`listing`] objects; [`mod@tree`] makes folders of names
//! - [`upload`] and [`download`] do one of them, several at once, until a signal
//! - [`sync_work`] compares ([`compare`]) and sends for a sync; [`like`] keeps options of an object
//! - [`hash`] makes digests, [`digest_list`] lists of them, [`checked`] compares them
//! - [`tar_writer`] and [`tar_reader`] have the form of tars, [`about`] the description of a member

mod about;
mod cat;
mod checked;
mod compare;
mod copy;
mod digest_list;
mod download;
mod du;
mod export;
mod get_folder;
mod hash;
mod import;
mod like;
mod listing;
mod ls;
mod put_each;
mod put_folder;
mod remove_folder;
mod sum;
mod sync;
mod sync_work;
mod tar_reader;
mod tar_writer;
mod tree;
mod upload;
mod walk;

pub(crate) use cat::cat;
pub(crate) use copy::{cp, mv};
pub(crate) use du::du;
pub(crate) use export::export;
pub(crate) use get_folder::get_folder;
pub(crate) use import::import;
pub(crate) use listing::as_folder;
pub(crate) use ls::ls;
pub(crate) use put_each::put_each;
pub(crate) use put_folder::put_folder;
pub(crate) use remove_folder::remove_folder;
pub(crate) use sum::sum;
pub(crate) use sync::sync;
