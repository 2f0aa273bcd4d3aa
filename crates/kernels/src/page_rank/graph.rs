//! [`Graph`]: rows of incoming edges, from a list of edges.
//!
//! Invariant: a row's sources ascend, so equal lists of edges in any order give equal rows.

use std::ops::Range;

/// Graph in the form that page rank reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    rows: Vec<u8>,
    out_degrees: Vec<u32>,
    edges: usize,
}

/// Error: an edge names a node that the graph does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("edge {edge} names node {node}, but there are {nodes} nodes, from 0")]
pub struct NoSuchNode {
    /// Index of the edge.
    pub edge: usize,
    /// The node.
    pub node: u32,
    /// Number of nodes.
    pub nodes: u32,
}

/// Part of a graph that one drive holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its rows.
    pub rows: Range<u32>,
    /// Byte range of these rows in [`Graph::rows`].
    pub bytes: Range<usize>,
}

impl Graph {
    /// Builds the graph of `nodes` nodes with these edges, each from its first node to its second.
    /// Parallel edges count as often as they are listed; self-loops are edges as any other.
    ///
    /// # Errors
    /// [`NoSuchNode`] with the first edge that names one.
    pub fn from_edges(nodes: u32, edges: &[[u32; 2]]) -> Result<Self, NoSuchNode> {
        let count = nodes as usize;
        let mut out_degrees = vec![0u32; count];
        let mut in_degrees = vec![0u32; count];
        for (edge, pair) in edges.iter().enumerate() {
            if let Some(&node) = pair.iter().find(|node| **node >= nodes) {
                return Err(NoSuchNode { edge, node, nodes });
            }
            out_degrees[pair[0] as usize] += 1;
            in_degrees[pair[1] as usize] += 1;
        }
        // By source first, so that each row gets its sources in ascending order.
        let mut at = starts(&out_degrees, 0);
        let mut targets = vec![0u32; edges.len()];
        for [source, target] in edges {
            targets[at[*source as usize]] = *target;
            at[*source as usize] += 1;
        }
        let mut words = vec![[0u8; 4]; count + edges.len()];
        let mut at = starts(&in_degrees, 1);
        for (degree, at) in in_degrees.iter().zip(&at) {
            words[at - 1] = degree.to_le_bytes();
        }
        let mut targets = targets.into_iter();
        for (source, degree) in (0..nodes).zip(&out_degrees) {
            for target in targets.by_ref().take(*degree as usize) {
                words[at[target as usize]] = source.to_le_bytes();
                at[target as usize] += 1;
            }
        }
        Ok(Self { rows: words.into_flattened(), out_degrees, edges: edges.len() })
    }

    /// Returns the rows in the form that [`Sparse`](super::Sparse) reads.
    #[must_use]
    pub fn rows(&self) -> &[u8] {
        &self.rows
    }

    /// Returns the number of outgoing edges of each node.
    #[must_use]
    pub fn out_degrees(&self) -> &[u32] {
        &self.out_degrees
    }

    /// Returns the number of edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// Cuts the rows into this many parts of about equal size, no row split; parts may be empty.
    #[must_use]
    pub fn parts(&self, count: usize) -> Vec<Part> {
        let words = self.rows.as_chunks::<4>().0;
        let mut parts = Vec::with_capacity(count);
        let (mut row, mut at) = (0u32, 0);
        for part in 1..=count {
            let (first, start) = (row, at);
            let goal = (words.len() as u128 * part as u128).div_ceil(count as u128);
            while at < words.len() && (at as u128) < goal {
                at += 1 + u32::from_le_bytes(words[at]) as usize;
                row += 1;
            }
            parts.push(Part { rows: first..row, bytes: start * 4..at * 4 });
        }
        parts
    }
}

/// Returns the index of each node's first entry, for nodes with these numbers of entries, each
/// preceded by `extra` more.
fn starts(degrees: &[u32], extra: usize) -> Vec<usize> {
    let mut at = 0;
    let start = |degree: &u32| {
        let start = at + extra;
        at = start + *degree as usize;
        start
    };
    degrees.iter().map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(graph: &Graph) -> Vec<u32> {
        graph.rows().as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    #[test]
    fn rows_hold_their_sources_in_order_parallel_edges_and_loops_too() {
        let edges = [[2, 0], [1, 0], [2, 0], [1, 1], [0, 3]];
        let graph = Graph::from_edges(4, &edges).unwrap();
        assert_eq!(words(&graph), [3, 1, 2, 2, 1, 1, 0, 1, 0]);
        assert_eq!((graph.out_degrees(), graph.edges()), (&[1, 2, 2, 0][..], 5));
        let mut turned = edges;
        turned.reverse();
        assert_eq!(Graph::from_edges(4, &turned).unwrap(), graph);
    }

    #[test]
    fn an_edge_to_nowhere_is_named() {
        let error = Graph::from_edges(2, &[[0, 1], [1, 2]]).unwrap_err();
        assert_eq!(error.to_string(), "edge 1 names node 2, but there are 2 nodes, from 0");
        assert_eq!(Graph::from_edges(0, &[]).unwrap().rows(), &[] as &[u8]);
    }

    #[test]
    fn parts_cover_the_rows_and_split_none() {
        let edges: Vec<[u32; 2]> = (0..50).map(|i| [i % 7, i * i % 11]).collect();
        let graph = Graph::from_edges(12, &edges).unwrap();
        for count in [1, 2, 3, 12, 40] {
            let parts = graph.parts(count);
            assert_eq!(parts.len(), count);
            let (mut row, mut byte) = (0, 0);
            for part in &parts {
                assert_eq!((part.rows.start, part.bytes.start), (row, byte));
                (row, byte) = (part.rows.end, part.bytes.end);
            }
            assert_eq!((row, byte), (12, graph.rows().len()));
        }
    }
}
