//! CSDSTORE: measurements of machines, and what they predict.
//!
//! Modules:
//! - [`characterize`]: measured cost of kernels on a drive and on a host
//! - [`profile`]: the file of measurements of machines
//! - [`account`]: predicted time of a run on the machines of a profile
//! - [`machine`], [`group_limits`]: processors and memory of this machine, and of this process
//! - [`cgroup`]: groups that limit or count what a process takes
//! - [`energy`], [`rapl`]: energy, from the counters of its processors
//! - [`job_energy`]: energy of a job
//! - [`growth`]: counters of what may end while it is measured

pub mod account;
pub mod cgroup;
pub mod characterize;
pub mod energy;
pub mod group_limits;
pub mod growth;
pub mod job_energy;
pub mod machine;
pub mod profile;
pub mod rapl;
