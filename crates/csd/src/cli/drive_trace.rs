//! The command line of `csd drive trace`.

use clap::Args;

/// Options of `csd drive trace`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd drive trace                              all drives of the array
  csd drive trace d1 --last 100
  csd drive service policy dedup adaptive d1   another policy from now on")]
pub(crate) struct Trace {
    /// A drive's name in the array, or its URL [default: all drives of the array]
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: Option<String>,
    /// Only the latest decisions, this many of each drive
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) last: usize,
}
