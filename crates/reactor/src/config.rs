//! [`Config`]: settings of a runtime.
//!
//! The default fits a laptop: one core, no root, no pinning.

use crate::backend::BackendKind;

/// Settings of a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Kernel interface to wait with.
    pub backend: BackendKind,
    /// Number of cores, at least one.
    pub cores: usize,
    /// True if each core is bound to a CPU.
    pub pin: bool,
    /// Maximum time that a core spins before it sleeps, µs; 0 never spins.
    pub spin_us: u32,
    /// Prefix of thread names: `name-0`, `name-1`, ...
    pub name: String,
    /// True if compute threads yield to all other threads, as a drive's must; false where the user
    /// waits for the computation.
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
