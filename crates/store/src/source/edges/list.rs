//! Lines of two node numbers, from and to.

use std::io::BufRead;

use super::likeness::Likeness;
use super::lines::Lines;
use super::marks::{Comment, Ways, comment, is_dimacs};
use super::words::{first_word, node};
use super::{Format, Listed, Options, given};
use crate::source::Error;
use crate::words::counted;

/// Reads the nodes of a line, and whether something follows them.
fn edge(text: &str, ignore_weights: bool) -> Result<([u32; 2], bool), String> {
    let (from, rest) = first_word(text);
    if is_dimacs(from) {
        return Err(format!(
            "a line that begins with {from:?} is of a DIMACS file, which is not read: its edges \
             are `sed -n 's/^[ea] //p' FILE | csd put - NAME --graph --base 1 --directed yes|no`"
        ));
    }
    let (to, rest) = first_word(rest);
    if to.is_empty() {
        return Err("an edge is two node numbers, from and to".to_owned());
    }
    // networkx writes `{}` for no attributes.
    let has_weight = !matches!(rest, "" | "{}");
    if has_weight && !ignore_weights {
        return Err(format!(
            "an edge is two node numbers, and {rest:?} follows them: weights are not used, and \
             --ignore-weights drops them"
        ));
    }
    Ok(([node(from)?, node(to)?], has_weight))
}

/// Reads a list of edges, which may be SNAP's.
pub(super) fn read<R: BufRead>(
    lines: &mut Lines<'_, R>,
    options: &Options,
) -> Result<Listed, Error> {
    let (mut edges, mut lines_with_weights, mut counts) = (Vec::new(), 0, None);
    let mut undirected = false;
    let mut likeness = Likeness::new(options.format == Format::Auto);
    let mut failed = None;
    while let Some(line) = lines.next()? {
        let is_mark = |c: char| c == '#' || (c == '%' && options.format != Format::Snap);
        let (text, behind) = line.split_once(is_mark).unwrap_or((line, ""));
        if options.format != Format::List {
            match comment(behind) {
                Some(Comment::Undirected) => undirected = true,
                Some(Comment::Counts { nodes, edges }) => counts = Some((nodes, edges)),
                None => {}
            }
        }
        if text.trim().is_empty() {
            likeness.blank(line.is_empty());
            continue;
        }
        likeness.line(text);
        if failed.is_some() {
            continue;
        }
        match edge(text, options.ignore_weights) {
            Ok((nodes, has_weight)) => {
                edges.push(nodes);
                lines_with_weights += u64::from(has_weight);
            }
            // The lines to come may show that the file is of another form.
            Err(why) if likeness.is_possible() => failed = Some(lines.wrong(&why)),
            Err(why) => return Err(lines.wrong(&why)),
        }
    }
    if let Some(why) = likeness.finish() {
        return Err(lines.wrong_file(&why));
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let wrong = |why: String| lines.wrong_file(&why);
    let directed = directed(undirected, options).map_err(wrong)?;
    let base = base(&edges, counts.map(|(nodes, _)| nodes), options).map_err(wrong)?;
    let format = match (options.format, counts) {
        (Format::Snap, _) | (Format::Auto, Some(_)) => Format::Snap,
        _ => Format::List,
    };
    if let Some((_, said)) = counts.filter(|(_, said)| *said != edges.len() as u64) {
        let (said, found) = (counted(said, "edge"), counted(edges.len() as u64, "line"));
        return Err(wrong(format!(
            " has a comment that says {said}, and {found} of edges: if it is whole, --format list \
             takes it as it is"
        )));
    }
    let nodes = counts.map(|(nodes, _)| nodes);
    Ok(Listed { format, edges, lines_with_weights, base, directed, nodes })
}

fn directed(undirected: bool, options: &Options) -> Result<bool, String> {
    match (undirected, options.directed) {
        (true, None) => {
            Err(" has a comment that says that the graph is undirected: --directed no \
                             takes each line both ways, --directed yes as it is listed"
                .to_owned())
        }
        (_, said) => Ok(said.unwrap_or(true)),
    }
}

/// Returns the number of the first node. Lists of both kinds exist: one that begins at 1 is certain
/// only if there are as many nodes as its largest number.
fn base(edges: &[[u32; 2]], nodes: Option<u64>, options: &Options) -> Result<u32, String> {
    if let Some(base) = options.base {
        return Ok(base);
    }
    let numbers = || edges.iter().flatten().copied();
    match (numbers().min(), numbers().max()) {
        (Some(1), Some(last)) => {
            if options.nodes.map(u64::from).or(nodes) == Some(last.into()) {
                return Ok(1);
            }
            Err(": the least node number is 1, and numbers may begin at 0 or at 1: --base 0 or \
                 --base 1 says it"
                .to_owned())
        }
        _ => Ok(0),
    }
}

/// Reads the lines of a list of KONECT's behind the first one.
pub(super) fn read_konect<R: BufRead>(
    lines: &mut Lines<'_, R>,
    ways: Ways,
    options: &Options,
) -> Result<Listed, Error> {
    if ways == Ways::Bipartite {
        return Err(lines.wrong(
            "its graph is bipartite: left and right nodes have numbers of their own, and no graph \
             here has these",
        ));
    }
    let base = given(options.base, 1, "--base 0").map_err(|why| lines.wrong(&why))?;
    let directed = given(options.directed, ways == Ways::One, "--directed");
    let directed = directed.map_err(|why| lines.wrong(&why))?;
    let (mut edges, mut lines_with_weights, mut counts) = (Vec::new(), 0, None);
    while let Some(line) = lines.next()? {
        if let Some(comment) = line.strip_prefix('%') {
            // Numbers of edges, left nodes and right nodes.
            let numbers: Option<Vec<u64>> =
                comment.split_whitespace().map(|word| word.parse().ok()).collect();
            counts = counts.or(numbers.filter(|numbers| numbers.len() == 3));
        } else if !line.is_empty() {
            let found = edge(line, options.ignore_weights);
            let (nodes, has_weight) = found.map_err(|why| lines.wrong(&why))?;
            edges.push(nodes);
            lines_with_weights += u64::from(has_weight);
        }
    }
    if let Some(said) = counts.as_ref().map(|counts| counts[0])
        && said != edges.len() as u64
    {
        let (said, found) = (counted(said, "edge"), counted(edges.len() as u64, "line"));
        let why = format!(" has a comment that says {said}, and {found} of edges: it is not whole");
        return Err(lines.wrong_file(&why));
    }
    let nodes = counts.map(|counts| counts[1].max(counts[2]));
    let format = Format::Konect;
    Ok(Listed { format, edges, lines_with_weights, base, directed, nodes })
}
