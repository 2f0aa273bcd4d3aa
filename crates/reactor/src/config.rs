//! How a runtime is to run: [`Config`].
//!
//! Never starts anything. Invariant: the default fits a laptop: one core, no root, no pinning.

use crate::backend::BackendKind;

/// How to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The kernel interface to wait with.
    pub backend: BackendKind,
    /// How many cores, at least one.
    pub cores: usize,
    /// Whether each core is bound to a CPU.
    pub pin: bool,
    /// Longest spin before a core sleeps, µs; 0 never spins.
    pub spin_us: u32,
    /// Threads are called `name-0`, `name-1`, ...
    pub name: String,
    /// Whether the compute lane yields to everything else that wants the CPU, as a drive's must;
    /// false where the computation is what its user waits for.
    pub compute_yields: bool,
}

impl Default for Config {
    fn default() -> Self {
        let name = "core".to_owned();
        Self {
            backend: BackendKind::Auto,
            cores: 1,
            pin: false,
            spin_us: 50,
            name,
            compute_yields: true,
        }
    }
}
