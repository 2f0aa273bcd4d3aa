//! [`EdgeLines`]: options for lists of edges, of `csd put --graph` and `csd run page-rank --edges`.

use clap::{Args, ValueEnum, value_parser};
use csd_store::source::edges::{Format, Options};

/// Options for a list of edges. The option that names it has the id `list`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct EdgeLines {
    /// Number of nodes of the graph [default: what the list says, or as many as the edges name]
    #[arg(long, value_name = "N", requires = "list")]
    pub(crate) nodes: Option<u32>,
    /// Form of the list of edges [default: auto]
    #[arg(long, value_enum, requires = "list")]
    pub(crate) format: Option<EdgeFormat>,
    /// Number of the first node in the list, which is stored as node 0 [default: 0, or what the
    /// form says; a list whose least number is 1 is refused]
    #[arg(long, value_name = "0|1", requires = "list")]
    #[arg(value_parser = value_parser!(u32).range(0..=1))]
    pub(crate) base: Option<u32>,
    /// yes: a line is an edge from its first node to its second. no: each line is an edge both ways
    /// [default: yes, or what the form says]
    #[arg(long, value_enum, requires = "list")]
    pub(crate) directed: Option<Directed>,
    /// Drop what follows the two nodes on lines of edges, such as weights, which are not used
    #[arg(long, requires = "list")]
    pub(crate) ignore_weights: bool,
}

/// Form of a list of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EdgeFormat {
    /// As the file shows; what is not certain is refused
    Auto,
    /// Lines of two node numbers, comments from # or % on
    List,
    /// The Stanford collection: comments from # on
    Snap,
    /// The Koblenz collection: begins with % sym or % asym
    Konect,
    /// MatrixMarket, coordinates: the entry in row i, column j is the edge from i to j
    Mtx,
}

/// Directions in which a line is an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Directed {
    /// One way
    Yes,
    /// Both ways
    No,
}

impl From<&EdgeLines> for Options {
    fn from(lines: &EdgeLines) -> Self {
        Self {
            nodes: lines.nodes,
            format: match lines.format {
                None | Some(EdgeFormat::Auto) => Format::Auto,
                Some(EdgeFormat::List) => Format::List,
                Some(EdgeFormat::Snap) => Format::Snap,
                Some(EdgeFormat::Konect) => Format::Konect,
                Some(EdgeFormat::Mtx) => Format::MatrixMarket,
            },
            base: lines.base,
            directed: lines.directed.map(|directed| directed == Directed::Yes),
            ignore_weights: lines.ignore_weights,
        }
    }
}
