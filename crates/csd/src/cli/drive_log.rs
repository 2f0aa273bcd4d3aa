//! The command line of `csd drive log`.

use clap::Args;

/// Options of `csd drive log`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd drive log                                all drives of the array
  csd drive log d1 --failed
  csd drive log nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:drive --json")]
pub(crate) struct Log {
    /// A drive's name in the array, or its URL [default: all drives of the array]
    #[arg(value_name = "NAME|URL")]
    pub(crate) drive: Option<String>,
    /// Only executions that failed
    #[arg(long)]
    pub(crate) failed: bool,
}
