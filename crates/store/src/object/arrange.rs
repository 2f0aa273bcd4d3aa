//! [`Arrange`]: the rule by which a put cuts an object.

/// Rule for cutting an object.
#[derive(Clone, Debug)]
pub enum Arrange {
    /// Chunk by chunk over the drives.
    Spread,
    /// All chunks on one drive, drawn at random.
    Whole,
    /// By ranges of its values, which must be sorted.
    Range,
    /// By whole rows of a matrix.
    Rows,
    /// By whole rows of a graph, from these bytes and first rows on; the last pair is the beginning
    /// of the numbers of outgoing edges and the number of nodes.
    Graph {
        /// For each row that may begin a part: its first byte and its number.
        starts: Vec<(u64, u64)>,
    },
    /// By groups of a table's rows, from these bytes and first rows on; the last pair is the end of
    /// the rows and their number.
    Table {
        /// For each group its first byte, 0 for the first one, and the number of its first row.
        starts: Vec<(u64, u64)>,
    },
}
