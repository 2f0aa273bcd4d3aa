//! Options of the commands that search and count text: `csd grep`, `wc`, `top-k`, `histogram`.

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

/// Options of `csd top-k`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  csd top-k access.log                       the ten most frequent lines
  csd top-k -k 3 --field 7 access.log        the three most frequent seventh words of lines
  csd top-k --field 2 -d , cells.csv         second fields between commas; quotes mean nothing
  csd top-k --words a.txt b.txt              words of both

Lines are those of `sort | uniq -c | sort -rn` in the C locale. Counts are exact. The different
items of each chunk cross the network, and those of all objects are in this host's memory, at most
1 GiB.")]
pub(crate) struct TopK {
    /// Names of the objects
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Number of items to show
    #[arg(short = 'k', long, value_name = "K", default_value_t = 10)]
    pub(crate) number: usize,
    #[command(flatten)]
    pub(crate) items: Items,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Options of `csd histogram`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  csd histogram latencies.txt                lines that are numbers, in ten bins
  csd histogram --field 4 access.log         the fourth words of lines
  csd histogram -f 2 -d , --min 0 --max 100 --bins 20 cells.csv

What is no number is counted apart. The different items of each chunk cross the network, and those
of all objects are in this host's memory, at most 1 GiB.")]
pub(crate) struct Histogram {
    /// Names of the objects
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Number of bins, all equally wide
    #[arg(short, long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) bins: u16,
    /// Lower bound of the first bin [default: the least number]
    #[arg(long, value_name = "NUMBER", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) min: Option<f64>,
    /// Upper bound of the last bin, which includes it [default: the greatest number]
    #[arg(long, value_name = "NUMBER", value_parser = finite, allow_negative_numbers = true)]
    pub(crate) max: Option<f64>,
    #[command(flatten)]
    pub(crate) items: Items,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Part of each line that is counted; the whole line by default.
#[derive(Args, Clone, Debug)]
pub(crate) struct Items {
    /// Count words: rows of bytes between white space, as in the C locale
    #[arg(short, long, conflicts_with = "field")]
    pub(crate) words: bool,
    /// Count the word of this number of each line, from 1, or the field with --delimiter
    ///
    /// Lines that have fewer count nothing.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) field: Option<u32>,
    /// Byte between fields, such as `,`; a field may be empty
    #[arg(short, long, value_name = "BYTE", value_parser = delimiter, requires = "field")]
    pub(crate) delimiter: Option<u8>,
}

/// Parses a byte between fields; `\t` is a tab.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if *byte != b'\n' => Ok(*byte),
        _ => Err("one byte other than a newline, or \\t for a tab".to_owned()),
    }
}

/// Parses a finite number.
fn finite(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "no number".to_owned())?;
    if number.is_finite() { Ok(number) } else { Err("no finite number".to_owned()) }
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
