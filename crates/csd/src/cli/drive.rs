//! Options of `csd drive`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use csd_drive::limits::{MDTS, MDTS_MIN};
use csd_initiator::Address;
use csd_nvme::auth::{Group, Hash};

use super::secret::{parse_group, parse_hash};
use super::tuning::Tuning;
use super::{Listen, parse_listen, parse_nqn};
use crate::units::parse_size;

#[derive(Debug, Subcommand)]
pub(crate) enum Drive {
    /// Serve a drive over NVMe/TCP until SIGTERM, SIGINT or SIGHUP
    #[command(after_help = "\
Examples:
  csd drive serve --media memory --size 1G
  csd drive serve --media /data/d0.media --size 64G --kv 80% --listen 127.0.0.1:4421")]
    Serve(Box<Serve>),
    /// Check all checksums of media that no drive serves; exit code 1 if there is damage
    Check(Check),
    /// Show what a drive says of itself: health, space, limits, hosts
    ///
    /// A drive that cannot be reached, or whose health has a critical warning, makes exit code 4.
    Status(super::drive_status::Status),
    /// Show the last executions of kernels and programs: bytes, work, times, why some failed
    Log(super::drive_log::Log),
    /// List the services of drives (cleaning, checkpoints, scrub, other drives), pause and limit
    /// them while the drives run
    Service(super::drive_service::Service),
    /// Show the cores that drives chose for their latest background tasks, and why
    ///
    /// Only the counting of `--dedup` can move to another core: other work needs the data of the
    /// core where it arose.
    Trace(super::drive_trace::Trace),
}

/// Options of `csd drive check`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd array down && csd drive check csd-array/d0.media")]
pub(crate) struct Check {
    /// File or block device to check; nothing is written to it
    pub(crate) media: PathBuf,
}

/// Options of `csd drive serve`.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Media of the drive: `memory`, the path of a file, which is created if it does not exist, or
    /// a block device, which is opened for this drive alone
    #[arg(long, value_name = "memory|PATH")]
    pub(crate) media: PathBuf,
    /// Size of new media; a block device is used whole without it
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    pub(crate) size: Option<u64>,
    #[command(flatten)]
    pub(crate) tuning: Tuning,
    /// Namespaces that hosts see: `block` only namespace 1, which Linux hosts then call nvmeXn1;
    /// `kv` only 2 and 3; `csd` itself needs all
    #[arg(long, value_enum, value_name = "block|kv|all", default_value_t = Expose::All)]
    pub(crate) expose: Expose,
    /// Most bytes of one command's data (MDTS): a power of two from 128K. Values and reads of hosts
    /// are no longer than that
    #[arg(long, value_name = "SIZE", value_parser = parse_transfer_max, default_value = "16M")]
    pub(crate) transfer_max: u8,
    /// Address to listen on; of a name all its addresses. Port 0 lets the kernel choose
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4420")]
    #[arg(value_parser = parse_listen)]
    pub(crate) listen: Listen,
    /// Also serve the drive's own operating system, at a Unix socket of this path that only this
    /// user may open: `nvme+unix://PATH/NQN`. Its transfers do not count as the hosts'
    #[arg(long, value_name = "PATH", value_parser = parse_inside)]
    pub(crate) inside: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tunnel: super::tunnel::TunnelEnds,
    /// Drives that this drive may work with, so that data goes from drive to drive: a file with a
    /// line `peer URL [SECRET]` for each, and for this drive. The drive connects to no other
    /// address, and yields to its hosts when it serves a peer. The file is read again when it
    /// changes; with secrets in it only its owner may read it (mode 600)
    #[arg(long, value_name = "FILE")]
    pub(crate) peers: Option<PathBuf>,
    /// Let the host of this name connect (without authentication); may be repeated. With this or
    /// with --secrets, only hosts that are named or have a secret may connect
    #[arg(long, value_name = "NQN", value_parser = parse_nqn)]
    pub(crate) allow: Vec<String>,
    /// The same for every line of a file; empty lines and lines that begin with # are left out
    #[arg(long, value_name = "FILE")]
    pub(crate) allow_file: Option<PathBuf>,
    /// Let any host connect, also beyond loopback: every host that connects may read and write.
    /// Hosts that have a secret must still prove it
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
    /// Serve what is undamaged of damaged media, read-only. A key whose newest value was in a
    /// damaged place is missing, or has the value before
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Log to this file instead of standard error. When it is full it is renamed FILE.1, FILE.1 is
    /// renamed FILE.2, and so on
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Be as slow as a device of this profile: a file (`csd characterize` writes them), or the name
    /// of a profile of csdplan, such as fpga-verifier; DEVICE is needed if it has several
    #[arg(long, value_name = "FILE[:DEVICE]")]
    pub(crate) pace: Option<String>,
    /// Read all current values of the key-value namespaces, and the blocks of objects, again and
    /// again at this many bytes per second, such as 20M, and log what does not match its checksums
    /// [default: not at all]
    #[arg(long, value_name = "SIZE", value_parser = super::scrub::rate)]
    pub(crate) scrub: Option<u64>,
    /// Run in its own session: Ctrl-C in this terminal does not reach it, and Linux gives it a
    /// share of the CPUs of its own
    #[arg(long)]
    pub(crate) session: bool,
    /// Process that started this one, which must not outlive it
    #[arg(long, hide = true)]
    pub(crate) parent: Option<u32>,
    /// Write the drive's URL to this file once it serves
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

/// Parses a transfer limit. Returns it as a power of two of 4 KiB.
fn parse_transfer_max(text: &str) -> Result<u8, String> {
    let bytes = parse_size(text)?;
    let sizes = (MDTS_MIN..=MDTS).find(|mdts| bytes == 4096 << mdts);
    sizes.ok_or_else(|| "it is a power of two from 128K to 16M".to_owned())
}

/// Parses the path of a Unix socket, as a URL can name it.
fn parse_inside(text: &str) -> Result<PathBuf, String> {
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    Address::check_unix(&path)?;
    Ok(path)
}

/// Namespaces that hosts see.
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
