//! Options of `csd repair`.

use clap::Args;

use super::scrub::rate;

/// Options of `csd repair`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd repair                                 all objects
  csd repair climate/grid.npy prices         these objects
  csd repair --rate 50M                      at most 50 MiB/s of each drive")]
pub(crate) struct Repair {
    /// Names of the objects [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Bytes that each drive reads or writes in a second, such as 50M [default: no limit]
    #[arg(long, alias = "budget", value_name = "SIZE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
}
