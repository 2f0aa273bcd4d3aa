//! Options of `csd run`, and those of `csd put` that runs need.

use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand, ValueEnum, value_parser};

use crate::cli::account::Account;
use crate::units::parse_size;

#[derive(Debug, Subcommand)]
pub(crate) enum Run {
    /// Count the elements that equal a number (IEEE 754: -0.0 equals 0.0)
    #[command(after_help = "\
Examples:
  csd run count prices --equal 10.5
  csd run count samples --equal -1 --on host --cores 2
  csd run count samples --equal -1 --on all --json")]
    Count(Count),
    /// Add two arrays element by element
    ///
    /// Both inputs lie alike: put the second with --align. Integers wrap; a sum that is NaN is the
    /// positive quiet NaN.
    #[command(after_help = "\
Examples:
  csd put a.npy; csd put b.npy --align a.npy
  csd run vector-add a.npy b.npy -o sum
  csd run vector-add a.npy b.npy -o sum --on split --cores 2 --check")]
    VectorAdd(Pair),
    /// Merge two sorted arrays into one, every value once
    ///
    /// Both inputs are cut by ranges of values: put the first with --layout range, the second with
    /// --align. -0.0 equals 0.0 and is written as 0.0; NaN has no place in an order.
    #[command(after_help = "\
Examples:
  csd put a.npy --layout range; csd put b.npy --align a.npy
  csd run array-merge a.npy b.npy -o merged
  csd run array-merge a.npy b.npy -o merged --on host --check")]
    ArrayMerge(Pair),
    /// Rank the nodes of a graph, or of a dense matrix, by page rank
    ///
    /// A graph comes from a list of edges (csd put --graph, or --edges here); a matrix of f32 is
    /// put with --layout rows. The vector goes to every drive in each step, and counts as crossed.
    #[command(after_help = "\
Examples:
  csd run page-rank links --edges links.txt          make the graph, then rank it
  csd run page-rank links --top 20 --on host --check
  csd put matrix.npy --layout rows; csd run page-rank matrix.npy -o ranks")]
    PageRank(PageRank),
    /// Compute the CRC-32C of every page
    ///
    /// Prints the digest: the CRC-32C of all checksums, little-endian and in order. It does not
    /// depend on drives, chunks, or how pages are worked on.
    #[command(after_help = "\
Examples:
  csd run verify data
  csd run verify data --page-bytes 64K --unroll 4 --units 8 --check
  csd run verify data --auto --on drives
  csd run verify data -o checksums")]
    Verify(Verify),
}

impl Run {
    /// The command's words, as JSON output names it.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Count(_) => "run count",
            Self::VectorAdd(_) => "run vector-add",
            Self::ArrayMerge(_) => "run array-merge",
            Self::PageRank(_) => "run page-rank",
            Self::Verify(_) => "run verify",
        }
    }
}

/// Who computes, and how that is checked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Ways {
    /// Who computes
    #[arg(long, value_enum, default_value_t = Who::Drives)]
    pub(crate) on: Who,
    /// Cores of the host that compute [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) cores: Option<u16>,
    /// Cores of each drive that work on one execution, as far as it has them
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) drive_cores: u16,
    /// Also compute on the drives and on the host, compare all that is written byte for byte, and
    /// fail when answers differ (exit code 3)
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) account: Account,
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

/// Options of `csd run count`.
#[derive(Args, Debug)]
pub(crate) struct Count {
    /// Name of the object
    pub(crate) name: String,
    /// The number to count, in the object's type
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) equal: String,
    #[command(flatten)]
    pub(crate) ways: Ways,
}

/// Options of kernels over two objects that write a third.
#[derive(Args, Debug)]
pub(crate) struct Pair {
    /// Name of the first object
    pub(crate) left: String,
    /// Name of the second object
    pub(crate) right: String,
    /// Name of the object to write, as key-value chunks beside the inputs
    #[arg(long, short, value_name = "NAME")]
    pub(crate) output: String,
    #[command(flatten)]
    pub(crate) ways: Ways,
}

/// Options of `csd run page-rank`.
#[derive(Args, Debug)]
pub(crate) struct PageRank {
    /// Name of the graph or matrix
    pub(crate) name: String,
    /// Make the graph of this list of edges first: lines of two numbers, from and to
    #[arg(long, value_name = "FILE")]
    pub(crate) edges: Option<String>,
    /// Number of nodes of that graph [default: as many as the edges name]
    #[arg(long, value_name = "N", requires = "edges")]
    pub(crate) nodes: Option<u32>,
    /// Drop what follows the two nodes on lines of edges, such as weights, which are not used
    #[arg(long, requires = "edges")]
    pub(crate) ignore_weights: bool,
    /// Share of a rank that follows edges
    #[arg(long, value_name = "SHARE", default_value_t = 0.85)]
    pub(crate) damping: f64,
    /// Stop when a step changes all ranks together by less than this (L1 distance)
    #[arg(long, value_name = "CHANGE", default_value = "1e-4")]
    pub(crate) tolerance: f64,
    /// Most steps
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = from_one())]
    pub(crate) iterations: u32,
    /// Nodes to print, highest rank first
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub(crate) top: usize,
    /// Also store the ranks as an object, f64 (of a matrix f32)
    #[arg(long, short, value_name = "NAME")]
    pub(crate) output: Option<String>,
    #[command(flatten)]
    pub(crate) ways: Ways,
}

/// Options of `csd run verify`.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// Name of the object
    pub(crate) name: String,
    /// Size of a page, a power of two that divides the object's chunks
    #[arg(long, value_parser = parse_size, value_name = "SIZE", default_value = "4K")]
    pub(crate) page_bytes: u64,
    /// Pages that an execution takes at a time, made whole chunks [default: by what is left]
    #[arg(long, value_name = "N", conflicts_with = "auto", value_parser = from_one())]
    pub(crate) pages_per_unit: Option<u32>,
    /// Executions of a drive under way at once [default: 4]
    #[arg(long, value_name = "N", conflicts_with = "auto", value_parser = units())]
    pub(crate) units: Option<u16>,
    /// Pages that advance together in one stream of instructions, 1 to 8
    #[arg(long, value_name = "N", conflicts_with = "auto", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u8).range(1..=8))]
    pub(crate) unroll: u8,
    /// Try plans on a sample of each drive's chunks, and take the fastest
    #[arg(long)]
    pub(crate) auto: bool,
    /// Also store the checksums as an object of i32
    #[arg(long, short, value_name = "NAME")]
    pub(crate) output: Option<String>,
    #[command(flatten)]
    pub(crate) ways: Ways,
}

/// A number from 1.
fn from_one() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..)
}

/// A number of executions.
fn units() -> RangedI64ValueParser<u16> {
    value_parser!(u16).range(1..=64)
}

/// How `csd put` cuts an object.
#[derive(Args, Debug)]
pub(crate) struct Arrange {
    /// How the object is cut over the drives
    #[arg(long, value_enum, default_value_t = Layout::Spread)]
    pub(crate) layout: Layout,
    /// Lie as this object does: same drives, chunks and cuts, so that kernels can take both
    #[arg(long, value_name = "OBJECT", conflicts_with_all = ["layout", "graph"])]
    pub(crate) align: Option<String>,
    /// The source is a list of edges, lines of two node numbers: store the graph's rows
    #[arg(long, conflicts_with_all = ["layout", "csv", "element"])]
    pub(crate) graph: bool,
    /// Number of nodes of the graph [default: as many as the edges name]
    #[arg(long, value_name = "N", requires = "graph")]
    pub(crate) nodes: Option<u32>,
    /// Drop what follows the two nodes on lines of edges, such as weights, which are not used
    #[arg(long, requires = "graph")]
    pub(crate) ignore_weights: bool,
}

/// How an object is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// Chunk by chunk over the drives
    Spread,
    /// By ranges of its values, which are sorted: for array-merge
    Range,
    /// By whole rows of a two-dimensional .npy array: for page-rank
    Rows,
}
