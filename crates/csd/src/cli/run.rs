//! Options of `csd run`.

use clap::{Args, Subcommand, ValueEnum};

use super::cores;

#[derive(Debug, Subcommand)]
pub(crate) enum Run {
    /// Count the elements that equal a number (IEEE 754: -0.0 equals 0.0)
    #[command(after_help = "\
Examples:
  csd run count prices --equal 10.5
  csd run count samples --equal -1 --on host --cores 2
  csd run count samples --equal -1 --on all --json")]
    Count(Count),
}

/// Options of `csd run count`.
#[derive(Args, Debug)]
pub(crate) struct Count {
    /// Name of the object
    pub(crate) name: String,
    /// The number to count, in the object's type
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) equal: String,
    /// Who computes
    #[arg(long, value_enum, default_value_t = Who::Drives)]
    pub(crate) on: Who,
    /// Cores of the host that compute [default: 1]
    #[arg(long, value_name = "N", value_parser = cores())]
    pub(crate) cores: Option<u16>,
    /// Also compute on the drives and on the host, and fail when answers differ (exit code 3)
    #[arg(long)]
    pub(crate) check: bool,
}

/// Who computes.
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
