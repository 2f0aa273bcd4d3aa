//! [`Ways`]: options that select where a computation runs, and its checks.

use clap::{Args, ValueEnum, value_parser};

use crate::cli::account::Account;

/// Options that select where a computation runs, and its checks.
#[derive(Args, Clone, Debug)]
pub(crate) struct Ways {
    /// Compute in the drives, on the host, or on both
    #[arg(long, value_enum, default_value_t = Who::Drives)]
    pub(crate) on: Who,
    /// Cores of the host that compute [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) cores: Option<u16>,
    /// Cores of each drive that work on one execution, as far as it has them [default: 1; with
    /// --auto all]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) drive_cores: Option<u16>,
    /// Also compute on the drives and on the host, compare all that is written byte for byte, and
    /// fail when answers differ (exit code 3)
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) account: Account,
}

/// Selection of drives and host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Who {
    /// The drives, where the chunks are
    Drives,
    /// The host; chunks cross the wire
    Host,
    /// Both, until no chunk is left
    Split,
    /// All three, side by side and compared
    All,
}
