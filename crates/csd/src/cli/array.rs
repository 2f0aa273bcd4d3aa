//! Options of `csd array`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, value_parser};
use csd_reactor::BackendKind;

use super::cores;
use crate::units::parse_size;

#[derive(Debug, Subcommand)]
pub(crate) enum Array {
    /// Start drives as processes on this machine and write the array file
    ///
    /// Run again, it starts only the drives that are not running. Media files stay over down and
    /// up; drives in memory come up empty.
    Up(Up),
    /// Show every drive of the array
    Status,
    /// Delete what puts that were cut off, or lost their name to another, left on the drives
    ///
    /// Others may go on using the array meanwhile. A put that was cut off and still has its name
    /// shows in `csd ls --all`; `csd rm` deletes it.
    Reclaim,
    /// Stop the drives that `csd array up` started
    ///
    /// Sends SIGTERM, waits, and kills after 10 s with a warning.
    Down(Down),
}

/// Options of `csd array up`.
#[derive(Args, Debug)]
pub(crate) struct Up {
    /// Number of drives [default: 2, or as the array file says]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) drives: Option<u16>,
    /// Folder for the drives' media and logs
    #[arg(long, value_name = "FOLDER", default_value = "./csd-array")]
    pub(crate) dir: PathBuf,
    /// Size of each drive's media
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "1G")]
    pub(crate) size: u64,
    /// Where drives keep their bytes
    #[arg(long, value_enum, default_value_t = Media::File)]
    pub(crate) media: Media,
    /// Cores of each drive
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = cores())]
    pub(crate) cores: u16,
    /// I/O backend of the drives
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto")]
    pub(crate) backend: BackendKind,
}

/// Where the drives of an array keep their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Media {
    /// A file each, in the array's folder
    File,
    /// Memory, lost when a drive stops
    Memory,
}

/// Options of `csd array down`.
#[derive(Args, Debug)]
pub(crate) struct Down {
    /// Also delete media, logs and the array file
    #[arg(long)]
    pub(crate) delete: bool,
}
