//! Options of `csd bench ec`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use csd_bench::record::Destination;
use csd_reactor::BackendKind;

/// Size of an encoding: blocks after encoding, and MB of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// n + k.
    pub(crate) blocks: u64,
    /// Size of a block, MB.
    pub(crate) block_mb: u64,
}

/// Options of `csd bench ec`.
#[derive(Args, Debug)]
pub(crate) struct Ec {
    /// Blocks after encoding (n + k, n = 2 k) and MB of a block, such as 24x64,48x64 [default: the
    /// paper's, with its powers]
    #[arg(long, value_name = "BLOCKSxMB,...", value_delimiter = ',', value_parser = size)]
    pub(crate) sizes: Vec<Size>,
    /// Powers of the drives, multiples of their pace [default: 1]
    #[arg(long, value_name = "POWER,...", value_delimiter = ',', value_parser = power)]
    pub(crate) drive_power: Vec<f64>,
    /// Powers of the host, shares of this machine's thread, at most 1 [default: 1]
    #[arg(long, value_name = "POWER,...", value_delimiter = ',', value_parser = share)]
    pub(crate) host_power: Vec<f64>,
    /// Profile whose drive's points rs-N-K set the pace of the drives: a file or a profile of
    /// csdplan; DEVICE is needed if it has several. `none`: as fast as they can
    #[arg(long, value_name = "PROFILE[:DEVICE]|none", default_value = "newport-encode")]
    pub(crate) pace: String,
    /// Number of drives that encode a block each at the same time
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) drives: u16,
    /// Number of rounds of the host, up to four times as many if its fastest one stands alone;
    /// drives encode once at a pace, else in each of these rounds
    #[arg(long, value_name = "N", default_value = "5")]
    #[arg(value_parser = value_parser!(u64).range(1..=1_000_000))]
    pub(crate) rounds: u64,
    /// Shared library of ISA-L [default: libisal.so.2, if the system has it]
    #[arg(long, value_name = "LIBRARY")]
    pub(crate) isal: Option<PathBuf>,
    /// I/O backend of the drives; `auto` takes io_uring where the kernel allows it, else epoll
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto")]
    pub(crate) backend: BackendKind,
    /// Write the times at power 1 to this file, for `csdplan ec --points`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the times at power 1 to this profile, as points rs-N-K
    #[arg(long, value_name = "FILE")]
    pub(crate) write_profile: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) record: Destination,
}

/// Parses a size, such as 24x64.
fn size(text: &str) -> Result<Size, String> {
    let parts = text.split_once('x');
    let parsed = parts.and_then(|(blocks, mb)| Some((blocks.parse().ok()?, mb.parse().ok()?)));
    match parsed {
        Some((blocks, block_mb)) => Ok(Size { blocks, block_mb }),
        None => Err("not BLOCKSxMB, such as 24x64".to_owned()),
    }
}

/// Parses a power.
fn power(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(power) if (0.001..=1000.0).contains(&power) => Ok(power),
        _ => Err("not a number from 0.001 to 1000".to_owned()),
    }
}

/// Parses a share.
fn share(text: &str) -> Result<f64, String> {
    power(text).ok().filter(|power| *power <= 1.0).ok_or("not a number from 0.001 to 1".to_owned())
}
