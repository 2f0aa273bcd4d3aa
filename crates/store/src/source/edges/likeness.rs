//! [`Likeness`]: whether a list of edges may be another program's graph without a mark.
//!
//! A METIS graph begins with the numbers of nodes and edges, and has a line of neighbours for each
//! node. Other programs write a line with the numbers of nodes and edges before the edges. Both can
//! look like edges; what fits to the last number is not taken for edges without a word.

use super::words::Words;
use crate::words::counted;

/// Counts of what a list holds.
#[derive(Debug, Default)]
pub(super) struct Likeness {
    /// False if the user has said the form.
    wanted: bool,
    /// The whole numbers of the first line, if it holds 2 to 4 of them.
    first: Option<Vec<u64>>,
    /// True once there was a first line.
    begun: bool,
    /// Lines with words behind the first one.
    lines: u64,
    /// Lines behind the first one, up to the last one with words, and all.
    last_line: u64,
    all_lines: u64,
    /// Words behind the first line.
    words: u64,
    /// Largest of the first two numbers of a line behind the first one.
    largest: u64,
}

impl Likeness {
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Notes a line without words, which counts if it is not a comment.
    pub(super) fn blank(&mut self, counts: bool) {
        self.all_lines += u64::from(self.begun && counts);
    }

    /// Notes a line with words.
    pub(super) fn line(&mut self, text: &str) {
        if !std::mem::replace(&mut self.begun, true) {
            let numbers: Option<Vec<u64>> = Words(text).map(|word| word.parse().ok()).collect();
            self.first = numbers.filter(|n| self.wanted && (2..=4).contains(&n.len()));
            return;
        }
        if self.first.is_none() {
            return;
        }
        self.lines += 1;
        self.all_lines += 1;
        self.last_line = self.all_lines;
        for (at, word) in Words(text).enumerate() {
            self.words += 1;
            if at < 2 {
                self.largest = self.largest.max(word.parse().unwrap_or(u64::MAX));
            }
        }
    }

    /// Returns true if lines to come can show a likeness.
    pub(super) fn is_possible(&self) -> bool {
        self.first.is_some()
    }

    /// Returns what the file may be, in words that follow its name.
    pub(super) fn finish(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        let (nodes, edges) = (counted(first[0], "node"), counted(first[1], "edge"));
        if self.is_metis(first) {
            return Some(format!(
                " may be a METIS graph ({nodes}, {edges}, a line for each node), which is not \
                 read: write lines of two node numbers, or say --format list if it has these"
            ));
        }
        let (count, sizes) = first.split_last()?;
        let is_sizes = sizes.len() <= 2 && sizes.iter().all(|size| *size == sizes[0]);
        let fits = *count > 0 && *count == self.lines && self.largest <= sizes[0];
        (is_sizes && fits).then(|| {
            let edges = counted(*count, "edge");
            format!(
                " may begin with the numbers of {nodes} and {edges}: remove this line, or say \
                 --format list if it is an edge"
            )
        })
    }

    /// Returns true if the numbers of lines and words are those of a METIS graph: `first` is nodes,
    /// edges, what else lines hold (digits 0 or 1), and numbers at each node.
    fn is_metis(&self, first: &[u64]) -> bool {
        let (nodes, edges, kind) = (first[0], first[1], first.get(2).copied().unwrap_or(0));
        let has = |digit: u64| kind / digit % 10 == 1;
        if nodes == 0 || edges == 0 || kind > 111 || [1, 10, 100].iter().any(|d| kind / d % 10 > 1)
        {
            return false;
        }
        let neighbours = edges.saturating_mul(if has(1) { 4 } else { 2 });
        let weights = if has(10) { first.get(3).copied().unwrap_or(1) } else { 0 };
        let at_nodes = nodes.saturating_mul(weights.saturating_add(u64::from(has(100))));
        (self.last_line..=self.all_lines).contains(&nodes)
            && self.words == neighbours.saturating_add(at_nodes)
    }
}
