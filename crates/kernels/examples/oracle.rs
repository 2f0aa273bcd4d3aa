//! Runs the kernels over raw little-endian files, for comparison with other libraries.
//!
//! Usage: `oracle vector-add TYPE LEFT RIGHT OUT`, `oracle array-merge TYPE LEFT RIGHT PARTS OUT`,
//! `oracle dense COLUMNS ROWS VECTOR OUT`, `oracle sparse NODES EDGES PARTS OUT`, `oracle verify
//! PAGE_BYTES UNROLL DATA OUT`, `oracle encode N K LENGTHS DATA OUT`, `oracle decode N K SOURCES
//! WANTED DATA OUT` (lists with commas; DATA holds the pieces one after another).
//! `tests/oracle/check.py` runs it, by `make oracle`. Inputs of kernels arrive in pieces of an odd
//! size, as in a drive.

use std::error::Error;
use std::num::NonZeroUsize;

use csd_kernels::array_merge::{self, ArrayMerge, Piece, range};
use csd_kernels::erasure::Code;
use csd_kernels::page_rank::{Dense, Graph, Iteration, Options, Progress, Sparse};
use csd_kernels::vector_add::{self, VectorAdd};
use csd_kernels::verify::{Plan, Verify};
use csd_kernels::{ElementType, Numeric};

type Failure = Box<dyn Error>;

/// Bytes of a piece: whole elements of every type, but pieces end anywhere in rows and pages.
const PIECE: usize = 65_536 + 24;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (result, out) = match arguments[..] {
        ["vector-add", element, left, right, out] => (add(element, left, right)?, out),
        ["array-merge", element, left, right, parts, out] => {
            (merge(element, left, right, parts.parse()?)?, out)
        }
        ["dense", columns, rows, vector, out] => (dense(columns.parse()?, rows, vector)?, out),
        ["sparse", nodes, edges, parts, out] => {
            (sparse(nodes.parse()?, edges, parts.parse()?)?, out)
        }
        ["verify", page, unroll, data, out] => {
            (verify(Plan::new(page.parse()?, 1, 1, unroll.parse()?)?, data)?, out)
        }
        ["encode", n, k, lengths, data, out] => {
            (encode(&Code::new(n.parse()?, k.parse()?)?, &list(lengths)?, data)?, out)
        }
        ["decode", n, k, sources, wanted, data, out] => {
            let code = Code::new(n.parse()?, k.parse()?)?;
            (decode(&code, &list(sources)?, &list(wanted)?, data)?, out)
        }
        _ => return Err("wrong use: see the head of examples/oracle.rs".into()),
    };
    std::fs::write(out, result)?;
    Ok(())
}

fn numeric(name: &str) -> Result<Numeric, Failure> {
    Ok(Numeric::try_from(name.parse::<ElementType>()?)?)
}

fn add(element: &str, left: &str, right: &str) -> Result<Vec<u8>, Failure> {
    let (left, right) = (std::fs::read(left)?, std::fs::read(right)?);
    let mut add = VectorAdd::new(vector_add::Parameters { element: numeric(element)? });
    let mut sum = vec![0; left.len()];
    let pieces = left.chunks(PIECE).zip(right.chunks(PIECE)).zip(sum.chunks_mut(PIECE));
    for ((left, right), sum) in pieces {
        add.feed(left, right, sum)?;
    }
    Ok(sum)
}

/// Merges part by part, each part in pieces.
fn merge(element: &str, left: &str, right: &str, parts: NonZeroUsize) -> Result<Vec<u8>, Failure> {
    let element = numeric(element)?;
    let inputs = [std::fs::read(left)?, std::fs::read(right)?];
    let splitters = range::splitters(element, &inputs.concat(), parts)?;
    let left = range::parts(element, &inputs[0], &splitters)?;
    let right = range::parts(element, &inputs[1], &splitters)?;
    let mut merged = Vec::new();
    for (left, right) in left.into_iter().zip(right) {
        let size = element.bytes();
        let left = &inputs[0][left.start * size..left.end * size];
        let right = &inputs[1][right.start * size..right.end * size];
        let mut merge = ArrayMerge::new(array_merge::Parameters { element });
        let (mut a, mut b) = (0, 0);
        while a < left.len() || b < right.len() {
            let (to, other_to) = (left.len().min(a + PIECE), right.len().min(b + PIECE));
            let taken = merge.feed(
                Piece { bytes: &left[a..to], last: to == left.len() },
                Piece { bytes: &right[b..other_to], last: other_to == right.len() },
                |bytes| merged.extend_from_slice(bytes),
            )?;
            a += taken.left;
            b += taken.right;
        }
    }
    Ok(merged)
}

fn dense(columns: usize, rows: &str, vector: &str) -> Result<Vec<u8>, Failure> {
    let (rows, vector) = (std::fs::read(rows)?, std::fs::read(vector)?);
    let vector: Vec<f32> =
        vector.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
    if vector.len() != columns || columns == 0 {
        return Err("the vector has another length".into());
    }
    let (mut product, mut sums) = (Dense::new(vector), Vec::new());
    for piece in rows.chunks(PIECE) {
        product.feed(piece, &mut sums)?;
    }
    product.finish()?;
    Ok(sums.iter().flat_map(|sum| sum.to_le_bytes()).collect())
}

/// Computes ranks, each part of the rows by its own product.
fn sparse(nodes: u32, edges: &str, parts: usize) -> Result<Vec<u8>, Failure> {
    let edges = std::fs::read(edges)?;
    let words: Vec<u32> =
        edges.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let graph = Graph::from_edges(nodes, words.as_chunks::<2>().0)?;
    // Here the tolerance is a total; networkx has it per node.
    let options = Options { tolerance: f64::from(nodes) * 1e-6, ..Options::default() };
    let mut iteration = Iteration::new(graph.out_degrees().to_vec(), options)?;
    loop {
        let vector = iteration.contributions();
        let mut sums = Vec::with_capacity(nodes as usize);
        for part in graph.parts(parts) {
            let mut product = Sparse::new(&vector);
            for piece in graph.rows()[part.bytes].chunks(PIECE) {
                product.feed(piece, &mut sums)?;
            }
            product.finish()?;
        }
        match iteration.advance(&sums) {
            Progress::Again => {}
            Progress::Converged => break,
            Progress::Exhausted => return Err("the ranks did not settle".into()),
        }
    }
    println!("{}", iteration.iterations());
    Ok(iteration.ranks().iter().flat_map(|rank| rank.to_le_bytes()).collect())
}

fn verify(plan: Plan, data: &str) -> Result<Vec<u8>, Failure> {
    let (mut verify, mut checksums) = (Verify::new(plan), Vec::new());
    for piece in std::fs::read(data)?.chunks(PIECE) {
        verify.feed(piece, &mut checksums);
    }
    verify.finish(&mut checksums);
    Ok(checksums.iter().flat_map(|checksum| checksum.to_le_bytes()).collect())
}

fn list(text: &str) -> Result<Vec<usize>, Failure> {
    Ok(text.split(',').map(str::parse).collect::<Result<_, _>>()?)
}

fn encode(code: &Code, lengths: &[usize], data: &str) -> Result<Vec<u8>, Failure> {
    let data = std::fs::read(data)?;
    let mut rest = &*data;
    let mut pieces = Vec::new();
    for length in lengths {
        let (piece, after) = rest.split_at_checked(*length).ok_or("too few bytes")?;
        pieces.push(piece);
        rest = after;
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let mut parity = vec![0; longest * code.parity()];
    let mut rooms: Vec<&mut [u8]> = parity.chunks_mut(longest.max(1)).collect();
    code.encode(&pieces, &mut rooms)?;
    Ok(parity)
}

fn decode(
    code: &Code,
    sources: &[usize],
    wanted: &[usize],
    data: &str,
) -> Result<Vec<u8>, Failure> {
    let data = std::fs::read(data)?;
    let length = (data.len() / sources.len()).max(1);
    let mut decoded = vec![0; length * wanted.len()];
    let pieces: Vec<&[u8]> = data.chunks(length).collect();
    let mut rooms: Vec<&mut [u8]> = decoded.chunks_mut(length).collect();
    code.decoder(sources, wanted)?.decode(&pieces, &mut rooms)?;
    Ok(decoded)
}
