//! [`SplitRule`]: places where the inputs of a program may be split for several cores.

/// Places where the inputs of a program may be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRule {
    /// Number of streams that are split, all at the same byte offsets: the first ones.
    pub split_streams: usize,
    /// Number of streams that the program reads; every part reads the others whole.
    pub streams: usize,
    /// Size of an item of each split stream, bytes. No item is split.
    pub item_bytes: u64,
    /// Number of bytes that the program writes for an item.
    pub written_bytes: u64,
    /// Number of items that stay together.
    pub unit_items: u64,
}

impl SplitRule {
    /// One stream that may be split anywhere; nothing is written.
    pub const ANYWHERE: Self =
        Self { split_streams: 1, streams: 1, item_bytes: 1, written_bytes: 0, unit_items: 1 };

    /// Returns the rule for one stream of elements of this size; nothing is written.
    #[must_use]
    pub const fn elements(bytes: usize) -> Self {
        Self { item_bytes: bytes as u64, ..Self::ANYWHERE }
    }
}
