//! Options of `csd repair`.

use clap::{Args, ValueEnum};

use super::scrub::rate;

/// Options of `csd repair`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd repair                                 all objects
  csd repair climate/grid.npy prices         these objects
  csd repair --rate 50M                      at most 50 MiB/s of each drive
  csd repair --on host                       all bytes through this host")]
pub(crate) struct Repair {
    /// Names of the objects [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The side that computes lost pieces: the drives that need them, which fetch others from their
    /// peers, or this host, which also does the work that drives cannot do
    #[arg(long, value_enum, default_value_t)]
    pub(crate) on: On,
    /// Bytes that each drive reads or writes in a second, such as 50M [default: no limit]
    #[arg(long, alias = "budget", value_name = "SIZE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
}

/// The side that computes lost pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// The drives, and the host for what they cannot
    #[default]
    Drives,
    /// This host
    Host,
}
