//! Lists of edges: the nodes of each edge, and what the text was taken for.
//!
//! - this module: options, what was taken, errors
//! - `lines`: lines of text
//! - `marks`: lines by which a format is known
//! - `list`: lines of two node numbers, also SNAP's and KONECT's
//! - `likeness`: lists that may be another program's graph
//! - `matrix_market`: matrices as lists of their entries
//! - `words`: words of a line
//!
//! A graph of another form must not become other edges without a word: a form is taken only if it
//! is certain or said. Weights are not used: a line with one is refused unless the user says to
//! ignore them. Invariant: no bytes make it panic. All edges are held in memory, 8 bytes each.

mod likeness;
mod lines;
mod list;
mod marks;
mod matrix_market;
mod words;

use std::fmt;
use std::io::BufRead;

use self::lines::Lines;
use self::marks::Mark;
use super::Error;
use crate::words::{counted, grouped};

/// Form of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As the text shows.
    #[default]
    Auto,
    /// Lines of two node numbers; `#` and `%` begin a comment.
    List,
    /// A list of the Stanford collection: comments begin with `#`, and may name the numbers of
    /// nodes and edges.
    Snap,
    /// A list of the Koblenz collection, which begins with `% sym` or `% asym`; numbers from 1.
    Konect,
    /// A MatrixMarket file of coordinates; numbers from 1.
    MatrixMarket,
}

impl Format {
    /// Returns the name that options and output have for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::List => "list",
            Self::Snap => "snap",
            Self::Konect => "konect",
            Self::MatrixMarket => "mtx",
        }
    }
}

/// The user's words about a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number of nodes [default: what the list says, or as many as the edges name].
    pub nodes: Option<u32>,
    /// Its form.
    pub format: Format,
    /// Number of the first node, 0 or 1.
    pub base: Option<u32>,
    /// False if every line is an edge both ways.
    pub directed: Option<bool>,
    /// True to ignore what follows the two nodes.
    pub ignore_weights: bool,
}

/// Form of a text as it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its form.
    pub format: Format,
    /// Number of the first node in the text; it is stored as 0.
    pub base: u32,
    /// False if every line is an edge both ways.
    pub directed: bool,
    /// Number of nodes.
    pub nodes: u64,
    /// Nodes that an edge names.
    pub nodes_with_edges: u64,
    /// Lines that are edges.
    pub lines: u64,
    /// Edges; a line that is one both ways is two.
    pub edges: u64,
    /// Lines of which something behind the nodes was ignored.
    pub lines_with_weights: u64,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.format {
            Format::Auto | Format::List => "list of edges",
            Format::Snap => "SNAP's list of edges",
            Format::Konect => "KONECT's list of edges",
            Format::MatrixMarket => "MatrixMarket",
        };
        let base = if self.base == 0 { "numbers from 0" } else { "numbers from 1, stored from 0" };
        let ways = if self.directed { "directed" } else { "each line both ways" };
        let with_edges = match self.nodes_with_edges {
            all if all == self.nodes => "all".to_owned(),
            some => grouped(some),
        };
        let (nodes, edges) = (counted(self.nodes, "node"), counted(self.edges, "edge"));
        write!(f, "{form}, {base}, {ways}: {nodes}, {with_edges} with edges, {edges}")?;
        match self.lines_with_weights {
            0 => Ok(()),
            lines => write!(f, ", weights of {} ignored", counted(lines, "line")),
        }
    }
}

/// The edges of a graph, from and to, with numbers from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edges {
    /// The edges.
    pub edges: Vec<[u32; 2]>,
    /// Its form as it was taken.
    pub taken: Taken,
}

/// Edges as a form lists them.
#[derive(Debug)]
struct Listed {
    format: Format,
    edges: Vec<[u32; 2]>,
    lines_with_weights: u64,
    base: u32,
    directed: bool,
    /// Number of nodes that the text names.
    nodes: Option<u64>,
}

/// Reads a list of edges.
///
/// # Errors
/// [`Error::Edges`] or [`Error::Read`].
pub fn read(name: &str, reader: impl BufRead, options: &Options) -> Result<Edges, Error> {
    let mut lines = Lines::new(name, reader);
    let mark = match options.format {
        Format::Auto | Format::MatrixMarket | Format::Konect => marks::first(&mut lines)?,
        Format::List | Format::Snap => None,
    };
    let listed = match (mark, options.format) {
        (Some(Mark::MatrixMarket(banner)), Format::Auto | Format::MatrixMarket) => {
            matrix_market::read(&mut lines, &banner, options)?
        }
        (_, Format::MatrixMarket) => {
            return Err(lines.wrong("a MatrixMarket file begins with %%MatrixMarket"));
        }
        (Some(Mark::Konect(ways)), Format::Auto | Format::Konect) => {
            list::read_konect(&mut lines, ways, options)?
        }
        (_, Format::Konect) => {
            return Err(lines.wrong("KONECT's lists begin with % sym, % asym or % bip"));
        }
        _ => list::read(&mut lines, options)?,
    };
    finish(&lines, listed, options)
}

/// Numbers nodes from 0, and adds the other direction of edges both ways.
fn finish<R>(lines: &Lines<'_, R>, listed: Listed, options: &Options) -> Result<Edges, Error> {
    let Listed { format, mut edges, lines_with_weights, base, directed, nodes } = listed;
    let count = edges.len() as u64;
    if edges.iter().flatten().any(|node| *node < base) {
        return Err(lines.wrong_file(": a node has the number 0, and numbers begin at 1"));
    }
    edges.iter_mut().flatten().for_each(|node| *node -= base);
    if !directed {
        let back = edges.iter().filter(|[from, to]| from != to).map(|[from, to]| [*to, *from]);
        let back: Vec<_> = back.collect();
        edges.extend(back);
    }
    let named = edges.iter().flatten().max().map_or(0, |node| u64::from(*node) + 1);
    let nodes = options.nodes.map(u64::from).or(nodes.filter(|nodes| *nodes >= named));
    let nodes = nodes.unwrap_or(named);
    if nodes == 0 {
        return Err(lines.wrong_file(" has no edges: the graph would be empty"));
    }
    // A bit for each node: few edges can name large numbers.
    let mut seen = vec![0u64; usize::try_from(named / 64 + 1).unwrap_or(0)];
    edges.iter().flatten().for_each(|node| seen[*node as usize / 64] |= 1 << (node % 64));
    let taken = Taken {
        format,
        base,
        directed,
        nodes,
        nodes_with_edges: seen.iter().map(|bits| u64::from(bits.count_ones())).sum(),
        lines: count,
        edges: edges.len() as u64,
        lines_with_weights,
    };
    Ok(Edges { edges, taken })
}

/// Returns a property that the text itself gives, unless the user says otherwise: an error then.
fn given<T: PartialEq>(said: Option<T>, found: T, option: &str) -> Result<T, String> {
    match said {
        Some(said) if said != found => Err(format!("{option} contradicts the file")),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests;
