//! [`Options`]: settings of a host's connections.

use std::time::Duration;

use csd_nvme::auth::Secrets;
use csd_nvme::tcp::Digests;
use csd_reactor::Class;

/// Longest time of connecting, in multiples of the longest wait for one answer.
pub const CONNECT_ANSWERS: u32 = 16;

/// Settings of a host's connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// NVMe Qualified Name of this host.
    pub host_nqn: String,
    /// Host identifier; all zeros: a random one for each controller.
    pub host_id: [u8; 16],
    /// Secrets of this host and of drives. A drive with a secret here must prove that it knows it.
    pub secrets: Secrets,
    /// Requested I/O queues, each a connection of its own; the drive may allow fewer.
    pub io_queues: u16,
    /// Requested entries of an I/O queue, at least 2; the drive may allow fewer.
    pub entries: u16,
    /// Requested digests; the drive may agree to fewer.
    pub digests: Digests,
    /// Keep-alive timeout; a keep-alive is sent every half of it. Zero: none.
    pub keep_alive: Duration,
    /// Maximum time until the drive's machine accepts a connection.
    pub reach_timeout: Duration,
    /// Maximum time without an answer while connecting; and, if that is shorter, until the machine
    /// accepts a connection. All steps together take at most [`CONNECT_ANSWERS`] times as long.
    pub connect_timeout: Duration,
    /// Maximum time of a command before the controller is closed.
    pub command_timeout: Duration,
    /// Class of the tasks that serve the connections. A drive that works with another drive yields
    /// to its own hosts.
    pub class: Class,
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
            reach_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(30),
            command_timeout: Duration::from_secs(30),
            class: Class::Foreground,
        }
    }
}
