//! Measurements: each figure is reported with a bound that is measured in the same run.
//!
//! Runs of both sides alternate in pairs ([`frame`]). A result has medians and quartiles of the
//! pairs, and a verdict ([`report`]). Servers run as child processes ([`serve`]), which end with
//! their parent. Nothing here prints or panics on a failure: callers get an [`Error`]. Callers are
//! `csd bench` and, for what only developers measure, the programs of `src/bin`.
//!
//! Modules:
//!
//! - [`frame`]: alternating pairs of runs, progress and interruption
//! - [`report`]: quartiles, verdicts and tables; [`record`]: results as JSON lines
//! - [`serve`]: the servers as processes; [`floor`], [`long_floor`]: the servers that bound a
//!   drive; [`cpus`]: pinning; [`service`]: services of a drive;
//!   [`other_work`]: work of the machine that is not a drive's
//! - [`wire`]: blocking commands; [`client`]: a client that keeps a queue full
//! - [`workload`]: the operations of a run; [`block`]: the measurement of block I/O
//! - [`load`]: a load through the client library; [`kv`]: the measurement of values
//! - [`verify`]: the measurement of verify by pages, units and unrolling
//! - [`ec`]: the measurement of erasure coding on a host and in drives
//! - [`program`]: common options of the programs of `src/bin`; [`fio`]: runs of fio
//! - [`isal`]: ISA-L's functions; [`timing`]: rates and CPU time; [`random`]: numbers and bytes

pub mod block;
pub mod client;
pub mod cpus;
pub mod ec;
pub mod error;
pub mod fio;
pub mod floor;
pub mod frame;
pub mod isal;
pub mod kv;
pub mod load;
pub mod long_floor;
pub mod other_work;
pub mod program;
pub mod random;
pub mod record;
pub mod report;
pub mod serve;
pub mod service;
pub mod timing;
pub mod verify;
pub mod wire;
pub mod workload;

pub use error::Error;
