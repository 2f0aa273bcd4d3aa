//! [`Placement`]: the namespace in which the chunks of an object lie.

/// Runs of units of the block allocator: (first unit, number of units).
pub type Extents = Vec<(u32, u32)>;

/// Kind of namespace for chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// As values; the drive allocates.
    Kv,
    /// As blocks; the catalogue holds the extents.
    Block,
}

/// Location of the chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// As values in the objects' kv namespace.
    Kv,
    /// In the block namespace: for every member, the units of its chunks in order.
    Block(Vec<Extents>),
}

impl Placement {
    /// Returns the kind of namespace.
    #[must_use]
    pub fn on(&self) -> On {
        match self {
            Self::Kv => On::Kv,
            Self::Block(_) => On::Block,
        }
    }
}
