//! Lines by which the form of a list is known.

use std::io::BufRead;

use super::lines::Lines;
use crate::source::Error;

/// Form that the first line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// `%%MatrixMarket`, and the words behind it in lower case.
    MatrixMarket(String),
    /// `% sym`, `% asym` or `% bip`.
    Konect(Ways),
}

/// Directions of KONECT's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ways {
    Both,
    One,
    /// Rows and columns number nodes of their own.
    Bipartite,
}

/// Reads the first line that is not blank; if it has no mark, it is returned once more.
pub(super) fn first<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<Option<Mark>, Error> {
    loop {
        match lines.next()? {
            None => return Ok(None),
            Some("") => {}
            Some(line) => {
                let mark = mark(line);
                if mark.is_none() {
                    lines.back();
                }
                return Ok(mark);
            }
        }
    }
}

fn mark(line: &str) -> Option<Mark> {
    let line = line.to_lowercase();
    if let Some(banner) = line.strip_prefix("%%matrixmarket") {
        return Some(Mark::MatrixMarket(banner.to_owned()));
    }
    match line.strip_prefix('%')?.split_whitespace().next()? {
        "sym" => Some(Mark::Konect(Ways::Both)),
        "asym" => Some(Mark::Konect(Ways::One)),
        "bip" => Some(Mark::Konect(Ways::Bipartite)),
        _ => None,
    }
}

/// Content of a comment of SNAP's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comment {
    /// `Nodes: 5 Edges: 7`
    Counts { nodes: u64, edges: u64 },
    /// `Undirected graph`
    Undirected,
}

/// Reads a comment, without the mark before it.
pub(super) fn comment(text: &str) -> Option<Comment> {
    let text = text.trim_matches(|c: char| c == '#' || c.is_whitespace()).to_lowercase();
    if text.starts_with("undirected graph") {
        return Some(Comment::Undirected);
    }
    let number = |field: &str| -> Option<u64> {
        let rest = text.split_once(field)?.1.trim_start();
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    Some(Comment::Counts { nodes: number("nodes:")?, edges: number("edges:")? })
}

/// Returns true for the first word of a line of DIMACS.
pub(super) fn is_dimacs(word: &str) -> bool {
    matches!(word, "c" | "p" | "e" | "a")
}
