//! The command line of `csd drive status`.

use clap::Args;

/// Options of `csd drive status`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd drive status                             all drives of the array
  csd drive status d1
  csd drive status nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:drive --json")]
pub(crate) struct Status {
    /// A drive's name in the array, or its URL [default: all drives of the array]
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: Option<String>,
}
