//! Exports of a module: its memory and its functions ([`Entry`]).

/// Name of a program's memory.
pub(crate) const MEMORY: &str = "memory";

/// Function of type () -> i64 that a module exports and the engine calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Runs the program.
    Run,
    /// Merges two answers into one: stream 0 is the first, stream 1 the second.
    Fold,
    /// Returns the kind of record in its inputs.
    Records,
}

impl Entry {
    pub(crate) const ALL: [Self; 3] = [Self::Run, Self::Fold, Self::Records];

    /// Returns its name in a module.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Run => "csd_run",
            Self::Fold => "csd_fold",
            Self::Records => "csd_records",
        }
    }
}
