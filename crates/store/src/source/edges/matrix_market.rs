//! MatrixMarket files of coordinates: the entry in row i and column j is the edge from i to j.
//!
//! Source: NIST, "The Matrix Market Exchange Formats". Entries of a symmetric or skew-symmetric
//! matrix stand for both directions, and are listed once. An entry is an edge whatever its value.

use std::io::BufRead;

use super::lines::Lines;
use super::words::node;
use super::{Format, Listed, Options, given};
use crate::source::Error;

/// Content of the banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Banner {
    has_values: bool,
    symmetric: bool,
    /// True if no entry lies on the diagonal.
    skew: bool,
}

fn banner(words: &str) -> Result<Banner, String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let [object, form, field, symmetry] = words[..] else {
        return Err("its first line is not %%MatrixMarket and four words".to_owned());
    };
    let refused = |what: &str, known: &str| Err(format!("{what:?} is not read, but {known}"));
    if object != "matrix" {
        return refused(object, "matrix");
    }
    if form != "coordinate" {
        return refused(form, "coordinate: store a dense matrix as .npy with --layout rows");
    }
    let has_values = match field {
        "pattern" => false,
        "real" | "integer" => true,
        field => return refused(field, "pattern, real and integer"),
    };
    let (symmetric, skew) = match symmetry {
        "general" => (false, false),
        "symmetric" => (true, false),
        "skew-symmetric" => (true, true),
        symmetry => return refused(symmetry, "general, symmetric and skew-symmetric"),
    };
    Ok(Banner { has_values, symmetric, skew })
}

/// Reads the lines behind the banner, which has these words.
pub(super) fn read<R: BufRead>(
    lines: &mut Lines<'_, R>,
    words: &str,
    options: &Options,
) -> Result<Listed, Error> {
    let banner = banner(words).map_err(|why| lines.wrong(&why))?;
    let base = given(options.base, 1, "--base 0").map_err(|why| lines.wrong(&why))?;
    let directed = given(options.directed, !banner.symmetric, "--directed");
    let directed = directed.map_err(|why| lines.wrong(&why))?;
    let (mut edges, mut sizes) = (Vec::new(), None);
    // Whether entries lie below and above the diagonal.
    let mut triangles = [false; 2];
    while let Some(line) = lines.next()? {
        if line.is_empty() || line.starts_with('%') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((nodes, count)) = sizes else {
            let found = size(&words, options);
            sizes = Some(found.map_err(|why| lines.wrong(&why))?);
            continue;
        };
        let found = entry(&words, banner, nodes, options.ignore_weights);
        let [row, column] = found.map_err(|why| lines.wrong(&why))?;
        triangles[usize::from(row < column)] |= row != column;
        if banner.symmetric && triangles == [true; 2] {
            return Err(lines.wrong("entries of a symmetric matrix are listed in one triangle"));
        }
        if edges.len() as u64 == count {
            return Err(lines.wrong(&format!("it has more than {count} entries")));
        }
        edges.push([row, column]);
    }
    let Some((nodes, count)) = sizes else {
        return Err(lines.wrong("the line with rows, columns and entries is missing"));
    };
    if edges.len() as u64 != count {
        let why = format!(" has {} of {count} entries: it is not whole", edges.len());
        return Err(lines.wrong_file(&why));
    }
    let lines_with_weights = if banner.has_values { count } else { 0 };
    let (format, nodes) = (Format::MatrixMarket, Some(nodes));
    Ok(Listed { format, edges, lines_with_weights, base, directed, nodes })
}

/// Reads rows, columns and entries; returns the numbers of nodes and entries.
fn size(words: &[&str], options: &Options) -> Result<(u64, u64), String> {
    let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
    let Some([rows, columns, entries]) = numbers.as_deref() else {
        return Err("the numbers of rows, columns and entries are three whole numbers".to_owned());
    };
    if rows != columns {
        return Err(format!(
            "{rows} rows and {columns} columns are no graph: it has one for each \
                            node"
        ));
    }
    if *rows > u64::from(u32::MAX) {
        return Err(format!("{rows} nodes are more than {}", u32::MAX));
    }
    given(options.nodes.map(u64::from), *rows, "--nodes")?;
    Ok((*rows, *entries))
}

/// Reads an entry: row and column, from 1.
fn entry(
    words: &[&str],
    banner: Banner,
    nodes: u64,
    ignore_weights: bool,
) -> Result<[u32; 2], String> {
    let (row, column) = match (words, banner.has_values) {
        ([row, column], false) => (row, column),
        ([row, column, value], true) if value.parse::<f64>().is_ok() => (row, column),
        (_, false) => return Err("an entry of a pattern is a row and a column".to_owned()),
        (_, true) => return Err("an entry is a row, a column and a number".to_owned()),
    };
    if banner.has_values && !ignore_weights {
        return Err("an entry has a value: weights are not used, and --ignore-weights drops them"
            .to_owned());
    }
    let (row, column) = (node(row)?, node(column)?);
    if [row, column].iter().any(|number| *number == 0 || u64::from(*number) > nodes) {
        return Err(format!("rows and columns are from 1 to {nodes}"));
    }
    if banner.skew && row == column {
        return Err("a skew-symmetric matrix has no entry on its diagonal".to_owned());
    }
    Ok([row, column])
}
