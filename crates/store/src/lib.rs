//! CSDSTORE: arrays of drives, objects and layouts.
//!
//! The host's side of several drives. This crate connects to them, keeps named, typed, immutable
//! objects on them.
//!
//! It uses no clock, thread or random source directly (the reactor does), holds no whole object in
//! memory, and always reports a drive that is down.
//!
//! Modules, from the drives to objects:
//! - [`mod@array`]: the array file, and connections to all its drives
//! - [`link`]: a drive that is connected to again when its connection is lost
//! - [`source`]: input of put: raw bytes, CSV columns, `.npy` arrays, lists of edges
//! - [`layout`]: placement of chunks on drives
//! - [`extent`], [`extent_ranges`]: space for chunks on block namespaces
//! - [`mod@room`]: remaining capacity for objects
//! - [`catalogue`]: the index of all objects, on every drive
//! - [`object`]: put, get, read ranges, list, look up, remove
//! - [`objects`]: the same for threads that are no core
//! - [`mod@scrub`]: drives that check the chunks of objects
//! - [`mod@repair`]: lost pieces of protected objects, computed and stored again
//! - [`error`](mod@error), [`fault`]: errors, and the party at fault
//! - [`mod@in_flight`]: several objects at once
//! - [`atomic_file`]: files that appear atomically
//! - [`words`]: numbers in messages

pub mod array;
pub mod atomic_file;
pub mod catalogue;
pub mod error;
pub mod extent;
pub mod extent_ranges;
pub mod fault;
mod guarded;
pub mod in_flight;
pub mod in_place;
pub mod layout;
pub mod link;
mod mend_unit;
pub mod object;
pub mod objects;
mod pace;
mod pages;
mod pauses;
mod peers;
pub mod piece;
pub mod repair;
pub mod room;
pub mod scrub;
pub mod source;
mod steady;
mod sweep;
pub mod unwritten;
pub mod words;

pub use csd_initiator::Options;
pub use csd_kernels::ElementType;
pub use error::Error;
