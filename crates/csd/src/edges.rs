//! Reads lists of edges and makes the rows of a graph.
//!
//! The graph is made in this host's memory: about 12 bytes per edge and 12 per node.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};

use csd_kernels::page_rank::Graph;
use csd_store::ElementType;
use csd_store::layout::{CHUNK_BYTES, CHUNK_BYTES_MIN};
use csd_store::object::{Arrange, graph_starts};
use csd_store::source::{Source, edges};
use serde_json::json;

use crate::cli::edges::EdgeLines;
use crate::report::Failure;
use crate::taken::Taken;

/// Reads a list of edges from a file or standard input, and makes a graph. Returns also what the
/// list was taken for.
fn graph(path: &str, lines: &EdgeLines) -> Result<(Graph, Taken), Failure> {
    let (name, reader): (&str, Box<dyn Read>) = match path {
        "-" => ("standard input", Box::new(io::stdin())),
        path => {
            let file = File::open(path);
            (path, Box::new(file.map_err(|error| Failure::os(path, &error))?))
        }
    };
    let read = edges::read(name, BufReader::new(reader), &lines.into());
    let edges::Edges { edges, taken } =
        read.map_err(|error| Failure::at_fault(error.fault(), error))?;
    let nodes = u32::try_from(taken.nodes).map_err(|_| {
        Failure::usage(format!("{name}: {} nodes are more than {}", taken.nodes, u32::MAX))
    })?;
    let graph = Graph::from_edges(nodes, &edges);
    let graph = graph.map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    Ok((graph, describe(name, &taken)))
}

/// Describes what a list was taken for.
fn describe(name: &str, taken: &edges::Taken) -> Taken {
    let json = json!({
        "format": taken.format.name(),
        "base": taken.base,
        "directed": taken.directed,
        "nodes": taken.nodes,
        "nodes_with_edges": taken.nodes_with_edges,
        "lines": taken.lines,
        "edges": taken.edges,
        "lines_with_weights": taken.lines_with_weights,
    });
    Taken { text: format!("{name}: {taken}"), json }
}

/// A graph, ready to be stored.
pub(crate) struct Input {
    /// Its rows, followed by the numbers of outgoing edges.
    pub(crate) source: Source,
    /// Layout, with the chunks at which parts may begin.
    pub(crate) arrange: Arrange,
    /// Size of its chunks, bytes.
    pub(crate) chunk_bytes: Option<u64>,
    /// Its form as it was taken.
    pub(crate) taken: Taken,
}

/// Reads a list of edges and makes its graph. The default chunk size is small enough that small
/// graphs have parts for several drives.
pub(crate) fn input(
    path: &str,
    lines: &EdgeLines,
    chunk_bytes: Option<u64>,
) -> Result<Input, Failure> {
    let (graph, taken) = graph(path, lines)?;
    let fitting = (graph.rows().len() / PARTS_MIN).next_power_of_two();
    let fitting = fitting.clamp(CHUNK_BYTES_MIN as usize, CHUNK_BYTES as usize) as u64;
    let chunk_bytes = chunk_bytes.unwrap_or(fitting);
    let parts_of = u32::try_from(chunk_bytes).unwrap_or(CHUNK_BYTES);
    let starts = graph_starts(graph.rows(), DRIVES, parts_of);
    let mut bytes = graph.rows().to_vec();
    bytes.extend(graph.out_degrees().iter().flat_map(|degree| degree.to_le_bytes()));
    let source = Source::raw(path, Box::new(Cursor::new(bytes)), ElementType::I32);
    let (arrange, chunk_bytes) = (Arrange::Graph { starts }, Some(chunk_bytes));
    Ok(Input { source, arrange, chunk_bytes, taken })
}

/// Least number of parts of a graph; fewer only if chunks would get too small.
const PARTS_MIN: usize = 16;
/// Number of drives that the parts are made for.
const DRIVES: usize = 4;
