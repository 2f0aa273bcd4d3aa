//! What a module exports: its memory and the functions that are called ([`Entry`]).

/// Name of a program's memory.
pub(crate) const MEMORY: &str = "memory";

/// A function of type () -> i64 that a module exports, to be called from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The program.
    Run,
    /// Makes one answer of two: stream 0 is the first, stream 1 the second.
    Fold,
    /// Says what a record of its inputs is.
    Records,
}

impl Entry {
    pub(crate) const ALL: [Self; 3] = [Self::Run, Self::Fold, Self::Records];

    /// Its name in a module.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Run => "csd_run",
            Self::Fold => "csd_fold",
            Self::Records => "csd_records",
        }
    }
}
