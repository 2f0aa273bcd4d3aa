//! The command line of `csd mount`.

use std::path::PathBuf;

use clap::Args;

/// Options of `csd mount`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd mount mnt                        every object is a file below mnt
  csd mount mnt climate/               those of the folder climate
  umount mnt                           ends the command; without root: fusermount3 -u mnt")]
pub(crate) struct Mount {
    /// Folder to mount on
    pub(crate) folder: PathBuf,
    /// Folder of the array to show [default: all of it]
    #[arg(value_name = "PREFIX/")]
    pub(crate) prefix: Option<String>,
}
