//! How to serve a drive: everything that its user can choose.
//!
//! Never: what follows from it. Invariant: the default is a drive in memory that only this machine
//! can reach.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use csd_reactor::{BackendKind, core_count};

use crate::controller::Access;
use crate::log::Log;
use crate::media::Direct;
use crate::pace::Model;
use crate::provision::Provision;
use crate::transport::budget::{self, Budget};

/// What keeps a drive's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// Memory: gone when the drive stops.
    Memory,
    /// A plain file, created when it does not exist, or a block device.
    File(PathBuf),
}

/// How much of its hosts a drive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLimits {
    /// Most connections at once, admin queues included.
    pub connections: usize,
    /// Most memory for data on its way, over all cores, in bytes; 0 for the default of each core.
    pub transfer_memory_bytes: u64,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self { connections: 2048, transfer_memory_bytes: 0 }
    }
}

impl HostLimits {
    /// The memory of each of this runtime's cores.
    pub(crate) fn core_transfer_memory_bytes(&self) -> u64 {
        match self.transfer_memory_bytes {
            0 => budget::BYTES_DEFAULT,
            all => all / core_count() as u64,
        }
    }

    /// What each of this runtime's cores has for data on its way.
    pub(crate) fn core_budget(&self) -> Budget {
        // Connections go to the core with the fewest.
        let connections = self.connections.div_ceil(core_count());
        Budget::new(self.core_transfer_memory_bytes(), connections)
    }
}

/// How to serve a drive.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// NVMe Qualified Name of the subsystem; empty for one made from the drive's identifier.
    pub nqn: String,
    /// Who may connect.
    pub access: Access,
    /// How much of its hosts it takes.
    pub host_limits: HostLimits,
    /// What keeps the bytes.
    pub media: MediaKind,
    /// Size of a new medium in bytes; 0 for all of a block device.
    pub size_bytes: u64,
    /// Serves what is whole of a damaged medium, and writes nothing to it.
    pub salvage: bool,
    /// Whether a file or device is used past the page cache.
    pub direct: Direct,
    /// Share of the kv namespaces in percent.
    pub kv_percent: u8,
    /// Share kept free for the drive's own work in percent.
    pub reserve_percent: u8,
    /// Size of a logical block in bytes: 512 or 4096.
    pub block_bytes: u32,
    /// What it is given beside its medium.
    pub provision: Provision,
    /// Number of cores.
    pub cores: usize,
    /// Back end of the reactor.
    pub backend: BackendKind,
    /// Microseconds to spin after work before sleeping.
    pub spin_us: u32,
    /// Longest wait for commands in flight when the drive is asked to stop.
    pub drain: Duration,
    /// Address of the Prometheus endpoint; none without it.
    pub metrics: Option<SocketAddr>,
    /// The device whose pace it keeps, if any.
    pub pace: Option<Model>,
    /// Where events are told.
    pub log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], csd_nvme::PORT)),
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
            provision: Provision::default(),
            cores: 1,
            backend: BackendKind::Auto,
            spin_us: 50,
            drain: Duration::from_secs(5),
            metrics: None,
            pace: None,
            log: Log::default(),
        }
    }
}
