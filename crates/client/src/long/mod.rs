//! Long objects: values of any length, in pieces that a manifest publishes.
//!
//! An object that fits into one value is that value, as any client of the standard reads it. A
//! longer one is stored in pieces under keys of their own, then its manifest under the object's
//! key; the pieces of the version that it replaced are deleted last. A value that would itself be
//! read as a manifest is stored as a long object. Invariants: pieces are never changed; a crash
//! leaves the old version or the new one, and perhaps pieces of neither, which no manifest names; a
//! reader whose version is replaced gets [`crate::Error::Replaced`], not bytes of two versions.
//!
//! Two hosts that replace one object at the same time both succeed, in some order; pieces of one of
//! them may stay behind. NVMe has no command that would prevent this.
//!
//! - `manifest`: the layout
//! - `put`: storing
//! - `remove`: deleting
//! - `get`: reading
//! - `orphans`: pieces that no manifest names

mod get;
mod manifest;
mod orphans;
mod put;
mod remove;

pub use get::{Object, Within};
pub use manifest::{MANIFEST_BYTES, Manifest, PIECE_MARK, is_piece};
pub use orphans::unchanged;
pub use put::Put;
