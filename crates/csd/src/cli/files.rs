//! Options of the commands that treat objects as files: `csd cat`, `du`, `cp`, `mv`, `sum`,
//! `sync`, `export`, `import`, and the order of `csd ls`.

use clap::{Args, ValueEnum};
use csd_store::layout::Scheme;

/// Options of `csd cat`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd cat logs/a.log logs/b.log | grep error
  csd cat climate/grid.npy > grid.npy        a NumPy array, with its header
  csd cat climate/grid.npy --raw | xxd       its numbers alone

An object that cannot be read is named, and the others are written all the same.")]
pub(crate) struct Cat {
    /// Names of the objects
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Write numbers without the header of a .npy file
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Options of `csd du`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd du                                     every folder, and the total
  csd du climate/ --depth 1                  the folders right below climate/

`size` is the data. `on drives` is what it takes there: chunks with their headers, parity, and whole
units of objects on blocks. Names, checksums of pages and what was deleted are not in it.")]
pub(crate) struct Du {
    /// Only objects whose names begin with this
    pub(crate) prefix: Option<String>,
    /// Show folders to this depth below the prefix [default: all]
    #[arg(long, short, value_name = "N")]
    pub(crate) depth: Option<usize>,
}

/// Order and form of `csd ls`.
#[derive(Args, Debug)]
pub(crate) struct Order {
    /// Also show date, bytes, layout, drives, code and digest of each object, and the total
    #[arg(long, short)]
    pub(crate) long: bool,
    /// Show names as a tree of folders with their sizes
    #[arg(long, conflicts_with = "long")]
    pub(crate) tree: bool,
    /// Sort by name, by size with the largest first, or by date with the newest first
    #[arg(long, value_enum, value_name = "name|size|date", default_value_t = Sort::Name)]
    pub(crate) sort: Sort,
    /// Reverse the order
    #[arg(long, short)]
    pub(crate) reverse: bool,
}

/// Key of the order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    Name,
    Size,
    Date,
}

/// Options of `csd cp` and `csd mv`.
#[derive(Args, Debug)]
pub(crate) struct Copy {
    /// Name of the object
    pub(crate) old: String,
    /// The other name; one that ends in `/` is a folder for the object
    pub(crate) new: String,
    /// Replace the object of that name, which stays until the other one is whole
    #[arg(long, short)]
    pub(crate) force: bool,
}

/// Options of `csd sum`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd sum climate/grid.npy                   as sha256sum prints it
  csd sum --prefix climate/ > list           every object below climate/, without the prefix
  sha256sum -c list                          compares files of these names
  csd sum -c list --prefix climate/          compares the objects
  csd sum --blake3 --raw prices              the digest that `csd stat` shows

The digest is that of the file that `csd get` writes. It is computed from the bytes on the drives,
and never taken from the catalogue.

Exit code 1 if a digest differs from the list, or an object cannot be read.")]
pub(crate) struct Sum {
    /// Names of the objects [default: all, or all whose names begin with the prefix]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Compare with a list of sha256sum or b3sum, `-` for standard input
    #[arg(long, short, value_name = "LIST", conflicts_with = "names")]
    pub(crate) check: Option<String>,
    /// BLAKE3, as b3sum, instead of SHA-256
    #[arg(long)]
    pub(crate) blake3: bool,
    /// Put this before every name to find its object
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,
    /// Leave out the headers of .npy files
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Options of `csd sync`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd sync data csd:climate/                 objects become as the files are
  csd sync csd:climate/ data                 files become as the objects are
  csd sync data csd:climate/ --dry-run       names what would be sent
  csd sync data csd:climate/ --delete        also removes objects that have no file

The word that begins with `csd:` names objects, and the other one is a folder of this machine. What
is equal by size and digest is not sent, so that an interrupted sync goes on when it is run again. A
changed object keeps its type, layout, placement and code.")]
pub(crate) struct Sync {
    /// Side that is read: a folder, or `csd:PREFIX/`
    pub(crate) from: String,
    /// Side that changes: `csd:PREFIX/`, or a folder, which is made if need be
    pub(crate) to: String,
    /// Compare, name what would be done, and change nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Delete what is on the side that changes and not on the other one. Asks first
    #[arg(long)]
    pub(crate) delete: bool,
    /// Delete without asking
    #[arg(long, requires = "delete")]
    pub(crate) yes: bool,
    /// Protect new objects against the loss of any K drives
    #[arg(long, value_name = "rs:N+K")]
    pub(crate) protect: Option<Scheme>,
}

/// Options of `csd export`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd export backup.tar                      all objects
  csd export climate.tar climate/            those of a folder
  csd export - climate/ | zstd > climate.tar.zst
  tar xf backup.tar                          files, as `csd get -r` writes them

A comment of each member, which tar ignores, has the type, shape, layout, code and digest of the
object, for `csd import`. The tar appears once it is whole. An object that cannot be read fails the
command; with --partial it is left out and named, and every object is read twice.")]
pub(crate) struct Export {
    /// The tar to write, `-` for standard output
    pub(crate) file: String,
    /// Only objects whose names begin with this
    pub(crate) prefix: Option<String>,
    /// Leave out objects that cannot be read, and name them (exit code 4)
    #[arg(long)]
    pub(crate) partial: bool,
    /// Overwrite the file if it exists
    #[arg(long, short)]
    pub(crate) force: bool,
}

/// Options of `csd import`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd import backup.tar                      objects as they were exported
  csd import backup.tar old/                 with old/ before their names
  zstd -d < climate.tar.zst | csd import -
  csd import data.tar data/                  the files of any tar

Members that `csd export` has written are compared with their digests before they count. Those of
other programs are stored as `csd put -r` stores files.")]
pub(crate) struct Import {
    /// The tar to read, `-` for standard input
    pub(crate) file: String,
    /// Put this before every name
    pub(crate) prefix: Option<String>,
    /// Replace objects that exist, each in one step
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Keep types and shapes alone: no layouts, chunk sizes, placements and codes, which other
    /// drives may not have room for
    #[arg(long)]
    pub(crate) plain: bool,
}
