//! Options of the commands that search and count text: `csd grep`, `csd wc`.

use clap::{Args, ValueEnum};
use csd_run::Mode;

use super::{GLOBAL, cores};

/// Options of `csd grep`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  csd grep ERROR access.log                  lines with ERROR, found in the drives
  csd grep -c 'timeout|refused' a.log b.log  how many lines of each
  csd grep -in 'disk [0-9]+ failed' sys.log  with line numbers, in any case
  csd grep -v '^#' settings                  lines that are no comments
  csd grep -F 'f(x)' code.txt                this text, and no expression
  csd grep -q ready state && echo ready      the exit code alone")]
pub(crate) struct Grep {
    /// Regular expression
    ///
    /// The syntax is that of ripgrep and of the crate regex, which has neither back-references nor
    /// look-around. A character is a byte, unless the pattern begins with `(?u)`.
    pub(crate) pattern: String,
    /// Names of the objects
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Upper and lower case are the same
    #[arg(short, long)]
    pub(crate) ignore_case: bool,
    /// Select the lines without a match
    #[arg(short = 'v', long)]
    pub(crate) invert_match: bool,
    /// Print the number of lines of each object
    #[arg(short, long)]
    pub(crate) count: bool,
    /// Print the number of each line
    #[arg(short = 'n', long)]
    pub(crate) line_number: bool,
    /// Print the names of objects with such a line; an object is read only until it is found
    #[arg(short = 'l', long, alias = "files-with-matches", conflicts_with = "count")]
    pub(crate) names_only: bool,
    /// The pattern is text, and no expression
    #[arg(short = 'F', long)]
    pub(crate) fixed_strings: bool,
    /// Take any bytes for text, as always: for commands that are written for grep
    #[arg(short = 'a', long)]
    pub(crate) text: bool,
    /// Colour matches, names and numbers of lines
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    pub(crate) color: Colour,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless $NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Options of `csd wc`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  csd wc access.log                          lines, words and bytes
  csd wc -l a.log b.log                      lines of each, and of all")]
pub(crate) struct Wc {
    /// Names of the objects
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Print the number of newlines
    #[arg(short, long)]
    pub(crate) lines: bool,
    /// Print the number of words: rows of bytes between white space, as in the C locale
    #[arg(short, long)]
    pub(crate) words: bool,
    /// Print the number of bytes, for which nothing is read
    #[arg(short = 'c', long)]
    pub(crate) bytes: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Options that select the place where a text is read.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Read in the drives, on the host, or on both
    #[arg(long, value_enum, default_value_t = Side::Drives)]
    pub(crate) on: Side,
    /// Cores of the host that work [default: 1]
    #[arg(long, value_name = "N", value_parser = cores())]
    pub(crate) cores: Option<u16>,
}

/// Sides that may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// The drives, where the chunks are
    Drives,
    /// The host; chunks cross the wire
    Host,
    /// Both, until no chunk is left
    Split,
}

impl From<Side> for Mode {
    fn from(side: Side) -> Self {
        match side {
            Side::Drives => Self::Drives,
            Side::Host => Self::Host,
            Side::Split => Self::Split,
        }
    }
}

/// Returns the global options as `csd grep` has them: `-v` and `-q` are those of grep.
pub(super) fn globals_of_grep(globals: &[clap::Arg]) -> Vec<clap::Arg> {
    let of = |id: &str| globals.iter().find(|one| one.get_id() == id).cloned();
    let verbose = of("verbose").map(|verbose| verbose.short(None));
    let help = "Print nothing: the exit code says whether there is such a line";
    let quiet = of("quiet").map(|quiet| quiet.help(help).help_heading(GLOBAL));
    verbose.into_iter().chain(quiet).collect()
}
