//! Options of `csd scrub`.

use clap::Args;

use crate::units::parse_size;

/// Options of `csd scrub`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  csd scrub                                  all objects
  csd scrub climate/grid.npy prices          these objects
  csd scrub --rate 50M                       at most 50 MiB/s in each drive
  csd scrub --deep                           also prove parity
  csd scrub --repair                         rebuild what is bad, from other pieces
  csd scrub --from prices                    go on where an interrupted scrub says")]
pub(crate) struct Scrub {
    /// Names of the objects [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Begin at this name, in the order of `csd ls`
    #[arg(long, value_name = "NAME", conflicts_with = "names")]
    pub(crate) from: Option<String>,
    /// Also prove, without moving their bytes, that the parity of protected objects is that of
    /// their chunks; every piece is read twice
    #[arg(long)]
    pub(crate) deep: bool,
    /// Also rebuild bad pieces of protected objects from others, as `csd repair` does, and damaged
    /// page checksums of all objects, and mend damaged copies of names
    #[arg(long)]
    pub(crate) repair: bool,
    /// Bytes that each drive reads in a second, such as 50M [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    pub(crate) rate: Option<u64>,
}

/// Parses a number of bytes per second.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("a drive reads at least 1 byte in a second".to_owned()),
        bytes => Ok(bytes),
    }
}
