//! Reads lists of edges (lines of two node numbers, from and to) and makes the rows of a graph.
//!
//! Weights are not used: a line with one is refused unless the user ignores weights. The empty
//! attributes `{}` that networkx writes are not weights. The graph is made in this host's memory:
//! about 12 bytes per edge and 12 per node.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use csd_kernels::page_rank::Graph;
use csd_store::ElementType;
use csd_store::layout::{CHUNK_BYTES, CHUNK_BYTES_MIN};
use csd_store::object::{Arrange, graph_starts};
use csd_store::source::Source;

use crate::report::Failure;

/// Largest number of nodes: node numbers have 32 bits, and one value means "none".
const NODES_MAX: u64 = u32::MAX as u64;

/// Options for reading lines of edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// Number of nodes [default: as many as the edges name].
    pub(crate) nodes: Option<u32>,
    /// True to ignore the rest of a line after the two nodes.
    pub(crate) ignore_weights: bool,
}

/// Reads a list of edges from a file or standard input, and makes a graph.
fn graph(path: &str, lines: Lines) -> Result<Graph, Failure> {
    let (name, reader): (&str, Box<dyn Read>) = match path {
        "-" => ("standard input", Box::new(io::stdin())),
        path => {
            let file = File::open(path);
            (path, Box::new(file.map_err(|error| Failure::os(path, &error))?))
        }
    };
    let edges = parse(name, BufReader::new(reader), lines.ignore_weights)?;
    let named = edges.iter().flatten().map(|node| u64::from(*node) + 1).max().unwrap_or(0);
    let nodes = lines.nodes.map_or(named, u64::from);
    if nodes > NODES_MAX {
        return Err(Failure::usage(format!("{name}: {nodes} nodes are more than {NODES_MAX}")));
    }
    let nodes = u32::try_from(nodes).expect("checked above");
    if nodes == 0 {
        return Err(Failure::usage(format!("{name} has no edges: the graph would be empty")));
    }
    Graph::from_edges(nodes, &edges).map_err(|error| Failure::usage(format!("{name}: {error}")))
}

/// A graph, ready to be stored.
pub(crate) struct Input {
    /// Its rows, followed by the numbers of outgoing edges.
    pub(crate) source: Source,
    /// Layout, with the chunks at which parts may begin.
    pub(crate) arrange: Arrange,
    /// Size of its chunks, bytes.
    pub(crate) chunk_bytes: Option<u64>,
}

/// Reads a list of edges and makes its graph. The default chunk size is small enough that small
/// graphs have parts for several drives.
pub(crate) fn input(path: &str, lines: Lines, chunk_bytes: Option<u64>) -> Result<Input, Failure> {
    let graph = graph(path, lines)?;
    let fitting = (graph.rows().len() / PARTS_MIN).next_power_of_two();
    let fitting = fitting.clamp(CHUNK_BYTES_MIN as usize, CHUNK_BYTES as usize) as u64;
    let chunk_bytes = chunk_bytes.unwrap_or(fitting);
    let parts_of = u32::try_from(chunk_bytes).unwrap_or(CHUNK_BYTES);
    let starts = graph_starts(graph.rows(), DRIVES, parts_of);
    let mut bytes = graph.rows().to_vec();
    bytes.extend(graph.out_degrees().iter().flat_map(|degree| degree.to_le_bytes()));
    let source = Source::raw(path, Box::new(Cursor::new(bytes)), ElementType::I32);
    Ok(Input { source, arrange: Arrange::Graph { starts }, chunk_bytes: Some(chunk_bytes) })
}

/// Least number of parts of a graph; fewer only if chunks would get too small.
const PARTS_MIN: usize = 16;
/// Number of drives that the parts are made for.
const DRIVES: usize = 4;

/// Returns the first word of a line, and the rest.
fn first_word(text: &str) -> (&str, &str) {
    let is_gap = |c: char| c.is_whitespace() || c == ',';
    let text = text.trim_start_matches(is_gap);
    let end = text.find(is_gap).unwrap_or(text.len());
    (&text[..end], text[end..].trim_matches(is_gap))
}

fn parse(name: &str, reader: impl BufRead, ignore_weights: bool) -> Result<Vec<[u32; 2]>, Failure> {
    let mut edges = Vec::new();
    for (number, line) in (1u64..).zip(reader.lines()) {
        let wrong = |why: &str| Failure::usage(format!("{name}, line {number}: {why}"));
        let line = line.map_err(|error| Failure::run(format!("cannot read {name}: {error}")))?;
        let text = line.split(['#', '%']).next().unwrap_or("").trim();
        if text.is_empty() {
            continue;
        }
        let (from, rest) = first_word(text);
        let (to, rest) = first_word(rest);
        if to.is_empty() {
            return Err(wrong("an edge is two node numbers, from and to"));
        }
        if !ignore_weights && !matches!(rest, "" | "{}") {
            let why = format!(
                "an edge is two node numbers, and {rest:?} follows them: weights are not used, \
                 and --ignore-weights drops them"
            );
            return Err(wrong(&why));
        }
        let node = |word: &str| {
            let why = format!("{word:?} is no node number from 0 to 4294967294");
            word.parse::<u32>().ok().filter(|node| *node != u32::MAX).ok_or_else(|| wrong(&why))
        };
        edges.push([node(from)?, node(to)?]);
    }
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_two_numbers_a_line_with_comments() {
        let text = "# nodes\n0 1\n\n2,3 % far\n  4\t5\n";
        assert_eq!(parse("x", text.as_bytes(), false).unwrap(), [[0, 1], [2, 3], [4, 5]]);
        for (wrong, why) in [
            ("0 1\n2", "x, line 2: an edge is two node numbers"),
            ("0 1 {}\n0 1 2", "x, line 2: an edge is two node numbers, and \"2\" follows"),
            ("0 1 {'weight': 3}", "x, line 1: an edge is two node numbers, and \"{'weight': 3}\""),
            ("0", "x, line 1: an edge is two node numbers, from"),
            ("0 -1", "x, line 1: \"-1\" is no node number"),
            ("0 4294967295", "x, line 1: \"4294967295\" is no node number"),
        ] {
            let failure = parse("x", wrong.as_bytes(), false).unwrap_err();
            assert!(failure.message.starts_with(why), "{}", failure.message);
        }
    }

    #[test]
    fn attributes_that_are_empty_are_no_weights_and_weights_can_be_ignored() {
        let plain = "0 1 {}\n2,3,{}\n4 5 { }\n";
        assert!(parse("x", plain.as_bytes(), false).unwrap_err().message.contains("line 3"));
        let edges = "0 1 {}\n0,2,{},\n1 2 {'weight': 0.5, 'color': 'red'}\n2 0 7.5 8\n3 0\n";
        let parsed = parse("x", edges.as_bytes(), true).unwrap();
        assert_eq!(parsed, [[0, 1], [0, 2], [1, 2], [2, 0], [3, 0]]);
        let failure = parse("x", "0 1 0.5".as_bytes(), false).unwrap_err();
        assert!(failure.message.contains("weights are not used"), "{}", failure.message);
        assert!(parse("x", "0".as_bytes(), true).is_err());
    }
}
