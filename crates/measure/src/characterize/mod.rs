//! Characterizing: measures the cost of kernels in a drive and on a host, and writes a profile.
//!
//! For each kernel and working set it measures load, compute and store times separately, and
//! pipelined, in the drive by number of its cores, and on Host(1..n). Drive and host take turns
//! within each repetition, after a warm-up that does not count. Writes only the blocks that the
//! caller allows, and starts no drive. Invariant: every number of the profile from here was
//! measured, is a count, or is marked as inferred.
//!
//! Modules, in the order of a measurement:
//! - [`region`]: location of working sets
//! - [`host`], `working_set_storage`, `contention`: the host's side
//! - [`inside`]: the drive's side
//! - [`quantiles`]: medians and quartiles
//! - `meter`: energy, if a counter can be read
//! - `plan`, `bench`: the measurements and their order
//! - `intake`: ingest bandwidth of the host from all drives at once
//! - `merge`, `build`: the resulting profile

mod bench;
mod build;
mod contention;
pub mod host;
pub mod inside;
mod intake;
mod merge;
mod meter;
mod plan;
pub mod quantiles;
pub mod region;
mod working_set_storage;

use std::io;
use std::path::PathBuf;

pub use crate::profile::Overlap;
pub use bench::characterize;
pub use build::{About, Machine, Watts, build_profile};
pub use contention::Contention;
pub use intake::{Intake, intake};
pub use meter::{Counter, Meter};
pub use plan::{
    Cell, DataArea, Found, Limited, Options, Overloaded, Step, Subject, Survey, survey,
};
pub use working_set_storage::StorageKind;

/// Reason why there is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A command to the drive failed.
    #[error(transparent)]
    Drive(#[from] csd_initiator::Error),
    /// The cores could not run.
    #[error(transparent)]
    Runtime(#[from] csd_reactor::Error),
    /// A scratch file cannot be made.
    #[error("scratch file {}: {source}", .path.display())]
    Scratch {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The requested measurement is impossible on this drive.
    #[error("{0}")]
    Unable(String),
    /// The caller asked it to end.
    #[error("interrupted: the measurement is not complete, and there is no profile")]
    Interrupted,
    /// Drive and host computed different answers, or one run another answer than the run before.
    #[error("{0}")]
    Differ(String),
}
