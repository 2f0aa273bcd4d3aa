//! CSDSTORE: arrays of drives, objects, layouts and runs.
//!
//! What it is: what a host makes of several drives. It connects to them, keeps named, typed,
//! immutable objects on them, and runs kernels over these objects in the drives, on the host, or
//! on both.
//!
//! What it never does: name a clock, a thread or a random source (the reactor does), hold a whole
//! object in memory, or hide that a drive is down.
//!
//! Modules, in the order of an object's way:
//! - [`mod@array`]: the array file, and connections to all its drives
//! - [`source`]: what put reads: raw bytes, CSV columns, `.npy` arrays
//! - [`layout`]: which chunk is on which drive
//! - [`extent`]: room for chunks on block namespaces
//! - [`mod@room`]: what objects can still take
//! - [`catalogue`]: what every drive knows of every object
//! - [`object`]: put, get, list, look up, remove
//! - [`run`]: kernels over objects
//! - [`characterize`]: what kernels cost on a drive and on a host
//! - [`account`]: what a run would take on the machines of a profile
//! - [`profile`]: what machines were measured to do
//! - [`error`](mod@error), [`fault`]: what went wrong, and whose fault it is
//! - [`whole`]: files that appear when they are whole

pub mod account;
pub mod array;
pub mod catalogue;
pub mod characterize;
pub mod error;
pub mod extent;
pub mod fault;
pub mod layout;
pub mod object;
pub mod profile;
pub mod room;
pub mod run;
pub mod source;
pub mod whole;

pub use csd_initiator::Options;
pub use csd_kernels::ElementType;
