//! [`Options`]: how a host connects.

use std::time::Duration;

use csd_nvme::auth::Secrets;
use csd_nvme::tcp::Digests;

/// How to connect to a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// NVMe Qualified Name of this host.
    pub host_nqn: String,
    /// Host identifier; all zero draws a random one for each controller.
    pub host_id: [u8; 16],
    /// Secrets of this host and of drives; a drive whose secret is here must prove that it has it.
    pub secrets: Secrets,
    /// I/O queues wanted, each a connection of its own; the drive may allow fewer.
    pub io_queues: u16,
    /// Entries of an I/O queue wanted, at least 2; the drive may allow fewer.
    pub entries: u16,
    /// Digests wanted; the drive may agree to fewer.
    pub digests: Digests,
    /// Keep-alive timeout; a keep-alive goes out every half of it. Zero: none.
    pub keep_alive: Duration,
    /// Longest that connecting may take, all steps together.
    pub connect_timeout: Duration,
    /// Longest that a command may take before the controller is given up.
    pub command_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host_nqn: "nqn.2026-11.io.csdstore:host".to_owned(),
            host_id: [0; 16],
            secrets: Secrets::default(),
            io_queues: 1,
            entries: 128,
            digests: Digests::default(),
            keep_alive: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            command_timeout: Duration::from_secs(30),
        }
    }
}
