//! The operating system of a drive: a Linux root folder that runs on the drive's own blocks.
//!
//! It is an OCI bundle that `runc` runs; `runc` and `unshare` make its namespaces. Its root is
//! read-only, below an overlay on an ext4 file system in the drive's block namespace. That file
//! system also has its `/data`. The blocks come in as a file by `csd attach`, through the inside of
//! the drive.
//!
//! - [`config`] writes the bundle's `config.json`, [`seccomp`] the filter of system calls in it
//! - [`os_folder`] names the files of one operating system, [`record`] is the state that survives
//!   its commands
//! - [`volume`] makes and recognizes the file system, [`filesystem`] names its kinds, [`ocfs2`] is
//!   the one that hosts mount, too
//! - `users` has its user namespace, `devices` its `/dev`
//! - `processors` has the processors that its programs see
//! - [`network`] has its tunnel and OpenSSH, `log` its log; `keep` keeps their processes;
//!   `in_place` writes files that are mounted inside
//! - [`up`], [`down`], [`status`], [`exec`] and [`service`] are the commands
//! - [`mounts`], [`cgroups`], [`process`] and [`tools`] ask and change this machine
//!
//! Invariants: whatever is made is named by the record or lies in the folder, before it is made;
//! [`down`] removes only that; a namespace is formatted only if every byte of it was read as zero
//! while no host could write.

pub mod cgroups;
pub mod config;
mod devices;
pub mod down;
mod error;
pub mod exec;
pub mod filesystem;
mod in_place;
mod keep;
mod log;
pub mod mounts;
pub mod network;
pub mod ocfs2;
pub mod os_folder;
pub mod process;
mod processors;
pub mod record;
pub mod seccomp;
pub mod service;
pub mod status;
pub mod tools;
pub mod up;
mod users;
pub mod volume;

pub use error::Error;

/// A drive as its own operating system uses it.
pub trait Drive {
    /// Sets that only the inside of the drive changes its blocks, or that hosts do as well.
    ///
    /// # Errors
    /// Says why the drive did not.
    fn reserve(&self, inside_only: bool) -> Result<(), String>;

    /// Makes all blocks read as zeros.
    ///
    /// # Errors
    /// Says why the drive did not.
    fn clear(&self) -> Result<(), String>;
}
