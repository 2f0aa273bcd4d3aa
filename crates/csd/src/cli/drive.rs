//! Options of `csd drive`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, value_parser};
use csd_nvme::auth::{Group, Hash};
use csd_reactor::BackendKind;

use super::secret::{parse_group, parse_hash};
use super::{cores, parse_listen, parse_nqn};
use crate::log_file::{FILES, FILES_MAX};
use crate::units::{parse_percent, parse_size};

#[derive(Debug, Subcommand)]
pub(crate) enum Drive {
    /// Serve a drive over NVMe/TCP until SIGTERM or SIGINT
    #[command(after_help = "\
Examples:
  csd drive serve --media memory --size 1G
  csd drive serve --media /data/d0.media --size 64G --kv 80% --listen 127.0.0.1:4421")]
    Serve(Box<Serve>),
    /// Check all checksums of media that no drive serves; exit code 1 if there is damage
    Check(Check),
    /// Show the last executions of kernels and programs: bytes, work, times, why some failed
    Log(super::drive_log::Log),
}

/// Options of `csd drive check`.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// File or block device to check; nothing is written to it
    pub(crate) media: PathBuf,
}

/// Options of `csd drive serve`.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Where the bytes are kept: `memory`, the path of a file, which is created if it is not
    /// there, or a block device, which is opened for this drive alone
    #[arg(long, value_name = "memory|PATH")]
    pub(crate) media: String,
    /// Size of new media; a block device is used whole without it
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    /// Share of key-value namespaces in the media; the rest is blocks
    #[arg(long, value_parser = parse_percent, value_name = "PERCENT", default_value = "50%")]
    pub(crate) kv: u8,
    /// Share of the key-value part kept free for cleaning
    #[arg(long, value_parser = parse_percent, value_name = "PERCENT", default_value = "10%")]
    pub(crate) reserve: u8,
    /// Size of the memory namespace, whose bytes programs and hosts share; it takes RAM as it is
    /// written, and is empty after a start; 0 for none
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "64M")]
    pub(crate) memory: u64,
    /// Which namespaces hosts see: `block` only namespace 1, which Linux hosts then call nvmeXn1;
    /// `kv` only 2 and 3; `csd` itself needs all
    #[arg(long, value_enum, value_name = "block|kv|all", default_value_t = Expose::All)]
    pub(crate) expose: Expose,
    #[command(flatten)]
    pub(crate) programs: super::program::Programs,
    /// Address to listen on; port 0 lets the kernel choose
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4420")]
    #[arg(value_parser = parse_listen)]
    pub(crate) listen: SocketAddr,
    /// Let the host of this name connect (without authentication); may be repeated. With this or
    /// with --secrets, only hosts that are named or have a secret may connect
    #[arg(long, value_name = "NQN", value_parser = parse_nqn)]
    pub(crate) allow: Vec<String>,
    /// The same for every line of a file; empty lines and lines that begin with # are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) allow_file: Option<PathBuf>,
    /// Let any host connect, also beyond loopback: whoever connects may read and write. Hosts
    /// that have a secret must prove it even so
    #[arg(long)]
    pub(crate) allow_any_host: bool,
    /// Hash functions that authentication may use, best first: 256, 384, 512 [default: all]
    #[arg(long, value_name = "BITS", value_delimiter = ',', value_parser = parse_hash)]
    pub(crate) auth_hash: Vec<Hash>,
    /// Diffie-Hellman groups that authentication may use, best first: null, ffdhe2048, ffdhe3072,
    /// ffdhe4096, ffdhe6144, ffdhe8192 [default: all, ffdhe3072 first and null last]
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = parse_group)]
    pub(crate) auth_group: Vec<Group>,
    /// NVMe Qualified Name of the drive
    #[arg(long, value_name = "NQN", default_value = "nqn.2026-11.io.csdstore:drive")]
    pub(crate) nqn: String,
    /// Number of cores that serve
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = cores())]
    pub(crate) cores: u16,
    /// I/O backend; `auto` takes io_uring where the kernel allows it, else epoll
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto")]
    pub(crate) backend: BackendKind,
    /// Size of a logical block: 512 or 4096 bytes
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = parse_block)]
    pub(crate) block: u32,
    /// Whether to bypass the page cache (O_DIRECT); `auto` does where the file system takes it
    #[arg(long, value_enum, value_name = "auto|on|off", default_value_t = Direct::Auto)]
    pub(crate) direct: Direct,
    /// Serve what is undamaged of damaged media, read-only. A key whose newest value was in a
    /// damaged place is missing, or has the value before
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Most connections at once, admin queues included; further hosts get Controller Busy
    #[arg(long, value_name = "N", default_value_t = 2048)]
    #[arg(value_parser = value_parser!(u32).range(2..=1_000_000))]
    pub(crate) connections: u32,
    /// Most memory for data on its way between hosts and media, over all connections; at least
    /// 64M a core [default: 192M a core]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) transfer_memory: Option<u64>,
    /// Serve Prometheus metrics at this address (GET /metrics)
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_listen)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Log format
    #[arg(long, value_enum, value_name = "text|json", default_value_t = crate::log::Form::Text)]
    pub(crate) log: crate::log::Form,
    /// Log level
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = crate::log::Level::Info)]
    pub(crate) log_level: crate::log::Level,
    /// Log to this file instead of standard error. When it is full it is renamed FILE.1, FILE.1 is
    /// renamed FILE.2, and so on
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Most bytes of one file of the log; at least 4K
    #[arg(long, value_name = "SIZE", value_parser = parse_log_size, default_value = "8M")]
    pub(crate) log_size: u64,
    /// Most files of the log, FILE included; the oldest is deleted
    #[arg(long, value_name = "N", default_value_t = FILES)]
    #[arg(value_parser = value_parser!(u32).range(1..=FILES_MAX.into()))]
    pub(crate) log_files: u32,
    /// Be as slow as a device of this profile (`csd characterize` writes them); DEVICE is needed
    /// if it has several
    #[arg(long, value_name = "FILE[:DEVICE]")]
    pub(crate) pace: Option<String>,
    /// Longest wait for commands in flight after SIGTERM or SIGINT, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) drain: u16,
    /// How long a core polls before it sleeps, microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50)]
    pub(crate) spin: u32,
    /// Run in its own session: Ctrl-C in this terminal does not reach it, and Linux gives it a
    /// share of the CPUs of its own
    #[arg(long)]
    pub(crate) session: bool,
    /// Write the drive's URL to this file once it serves
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

/// Which namespaces hosts see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Expose {
    Block,
    Kv,
    All,
}

impl From<Expose> for csd_drive::Expose {
    fn from(expose: Expose) -> Self {
        match expose {
            Expose::Block => Self::Block,
            Expose::Kv => Self::Kv,
            Expose::All => Self::All,
        }
    }
}

/// Whether to bypass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direct {
    Auto,
    On,
    Off,
}

impl From<Direct> for csd_drive::media::Direct {
    fn from(direct: Direct) -> Self {
        match direct {
            Direct::Auto => Self::Auto,
            Direct::On => Self::On,
            Direct::Off => Self::Off,
        }
    }
}

fn parse_log_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0..4096 => Err("a file of the log has at least 4K".to_owned()),
        bytes => Ok(bytes),
    }
}

fn parse_block(text: &str) -> Result<u32, String> {
    match parse_size(text) {
        Ok(512) => Ok(512),
        Ok(4096) => Ok(4096),
        _ => Err("a logical block has 512 or 4096 bytes".to_owned()),
    }
}
