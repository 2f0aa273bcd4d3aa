//! Options of `csd run`, and those of `csd put` that runs need.

use clap::builder::RangedI64ValueParser;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum, value_parser};
use csd_kernels::page_rank;
use csd_kernels::registry::{self, BUILTIN};

use crate::cli::edges::EdgeLines;
use crate::cli::kernel::KernelRun;
use crate::cli::ways::Ways;

/// A kernel to run.
#[derive(Debug)]
pub(crate) enum Run {
    /// A kernel that declares its options itself.
    Kernel(KernelRun),
    /// Page rank, which iterates on the host.
    PageRank(PageRank),
}

impl Run {
    /// Returns the command's words, as JSON output names it.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Kernel(run) => format!("run {}", run.kernel.name()),
            Self::PageRank(_) => format!("run {}", page_rank::NAME),
        }
    }
}

impl Subcommand for Run {
    fn augment_subcommands(command: Command) -> Command {
        let command = command.subcommand_required(true).arg_required_else_help(true);
        BUILTIN.into_iter().fold(command, |command, kernel| {
            match (kernel.usage(), kernel.name()) {
                (Some(usage), name) => command.subcommand(KernelRun::command(name, usage)),
                (None, page_rank::NAME) => {
                    command.subcommand(PageRank::augment_args(Command::new(page_rank::NAME)))
                }
                // It does not run over objects: `csd kv range`.
                (None, _) => command,
            }
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        registry::by_name(name).is_some()
    }
}

impl FromArgMatches for Run {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let chosen = matches.subcommand();
        let chosen = chosen.and_then(|(name, given)| Some((registry::by_name(name)?, given)));
        let (kernel, given) =
            chosen.ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        match kernel.usage() {
            Some(usage) => KernelRun::from_matches(kernel, usage, given).map(Self::Kernel),
            None => PageRank::from_arg_matches(given).map(Self::PageRank),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Rank the nodes of a graph, or of a dense matrix, by page rank
///
/// A graph comes from a list of edges (csd put --graph, or --edges here); a matrix of f32 is
/// put with --layout rows. The vector goes to every drive in each step, and counts as crossed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  csd run page-rank links --edges links.txt          make the graph, then rank it
  csd run page-rank links --top 20 --on host --check
  csd put matrix.npy --layout rows; csd run page-rank matrix.npy -o ranks")]
pub(crate) struct PageRank {
    /// Name of the graph or matrix
    pub(crate) name: String,
    /// Make the graph of this list of edges first: lines of two numbers, from and to
    #[arg(id = "list", long = "edges", value_name = "FILE")]
    pub(crate) edges: Option<String>,
    #[command(flatten)]
    pub(crate) lines: EdgeLines,
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

/// Returns a parser of numbers from 1.
fn from_one() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..)
}

/// Options for the layout of an object.
#[derive(Args, Debug)]
pub(crate) struct Arrange {
    /// Distribution of the object over the drives
    #[arg(long, value_enum, default_value_t = Layout::Spread)]
    pub(crate) layout: Layout,
    /// Lie as this object does: same drives, chunks and cuts, so that kernels can take both
    #[arg(long, value_name = "OBJECT", conflicts_with_all = ["layout", "list"])]
    pub(crate) align: Option<String>,
    /// The source is a list of edges, lines of two node numbers: store the graph's rows
    #[arg(id = "list", long = "graph", conflicts_with_all = ["layout", "csv", "element"])]
    pub(crate) graph: bool,
    #[command(flatten)]
    pub(crate) lines: EdgeLines,
}

/// Distribution of an object over the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// Chunk by chunk over the drives
    Spread,
    /// All of it on one drive
    Whole,
    /// By ranges of its values, which are sorted: for array-merge
    Range,
    /// By whole rows of a two-dimensional .npy array: for page-rank
    Rows,
}
