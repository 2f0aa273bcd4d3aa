//! [`Config`]: the options of a drive that its user can choose.
//!
//! Invariant: the default is a drive in memory that only this machine can reach.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use csd_kvlog::media::Direct;
use csd_reactor::{BackendKind, core_count};

use crate::controller::Access;
use crate::log::Log;
use crate::resources::Resources;
use crate::throttle::Model;
use crate::transport::budget::{self, Budget};

/// Kind of medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Memory, which is lost when the drive stops.
    Memory,
    /// A plain file, created when it does not exist, or a block device.
    File(PathBuf),
}

/// Limits of connections and of the memory for their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Most connections at once, admin queues included.
    pub connections: usize,
    /// Most memory for data between hosts and the medium, over all cores, in bytes; 0 for the
    /// default of each core.
    pub transfer_memory_bytes: u64,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self { connections: 2048, transfer_memory_bytes: 0 }
    }
}

impl HostLimits {
    /// Returns the memory of each of this runtime's cores.
    pub(crate) fn core_transfer_memory_bytes(&self) -> u64 {
        match self.transfer_memory_bytes {
            0 => budget::BYTES_DEFAULT,
            all => all / core_count() as u64,
        }
    }

    /// Makes the budget of one of this runtime's cores.
    pub(crate) fn core_budget(&self) -> Budget {
        // Connections go to the core with the fewest.
        let connections = self.connections.div_ceil(core_count());
        Budget::new(self.core_transfer_memory_bytes(), connections)
    }
}

/// Options of a drive.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses to listen on, at least one; port 0 lets the kernel choose, one for all.
    pub listen: Vec<SocketAddr>,
    /// Path of the Unix socket for the drive's own operating system; none without it.
    pub inside: Option<PathBuf>,
    /// NVMe Qualified Name of the subsystem; if empty, one is made from the drive's identifier.
    pub nqn: String,
    /// Hosts that may connect.
    pub access: Access,
    /// Limits of connections and of the memory for their data.
    pub host_limits: HostLimits,
    /// Medium.
    pub media: MediaKind,
    /// Size of a new medium in bytes; 0 for all of a block device.
    pub size_bytes: u64,
    /// True to serve the intact part of a damaged medium, read-only.
    pub salvage: bool,
    /// Direct I/O of a file or device.
    pub direct: Direct,
    /// Share of the kv namespaces in percent.
    pub kv_percent: u8,
    /// Share in percent that is not assigned to any namespace.
    pub reserve_percent: u8,
    /// Size of a logical block in bytes: 512 or 4096.
    pub block_bytes: u32,
    /// Resources other than the medium.
    pub resources: Resources,
    /// Number of cores.
    pub cores: usize,
    /// Back end of the reactor.
    pub backend: BackendKind,
    /// Microseconds to spin after work before sleeping.
    pub spin_us: u32,
    /// Longest wait for outstanding commands when the drive is asked to stop.
    pub drain: Duration,
    /// Addresses of the Prometheus endpoint, taken as those of `listen` are; may be empty.
    pub metrics: Vec<SocketAddr>,
    /// Device model that answers are delayed by, if any.
    pub throttle: Option<Model>,
    /// Bytes per second at which the drive reads its values and compares their checksums, over all
    /// cores; `None` if it does not.
    pub scrub_bytes_per_s: Option<u64>,
    /// Log of events.
    pub log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], csd_nvme::PORT))],
            inside: None,
            nqn: String::new(),
            access: Access::default(),
            host_limits: HostLimits::default(),
            media: MediaKind::Memory,
            size_bytes: 1 << 30,
            salvage: false,
            direct: Direct::Auto,
            kv_percent: 50,
            reserve_percent: 10,
            block_bytes: 4096,
            resources: Resources::default(),
            cores: 1,
            backend: BackendKind::Auto,
            spin_us: 50,
            drain: Duration::from_secs(5),
            metrics: Vec::new(),
            throttle: None,
            scrub_bytes_per_s: None,
            log: Log::default(),
        }
    }
}
