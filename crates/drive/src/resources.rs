//! What a drive is given beside its medium: memory, and what it may compute with.
//!
//! Never: what it does with it. Invariant: by default nobody's programs are taken,
//! and none are shared.

use std::sync::Arc;

use crate::error::Error;
use crate::format::PAGE_BYTES;
use crate::namespace::compute::{Admission, Engine, Limits};
use crate::namespace::{NSID_BLOCK, NSID_KV, NSID_OBJECTS};

/// Which namespaces hosts see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expose {
    /// All of them.
    #[default]
    All,
    /// The block namespace: on a Linux host it is then the drive's only block device.
    Block,
    /// The key-value namespaces.
    Kv,
}

impl Expose {
    /// Whether hosts see this namespace.
    pub fn has(self, nsid: u32) -> bool {
        match self {
            Self::All => true,
            Self::Block => nsid == NSID_BLOCK,
            Self::Kv => matches!(nsid, NSID_KV | NSID_OBJECTS),
        }
    }
}

/// What a drive is given beside its medium.
#[derive(Clone, Debug)]
pub struct Provision {
    /// Which namespaces hosts see.
    pub expose: Expose,
    /// Size of the memory namespace in bytes, a multiple of 4,096; 0 for none. It takes memory as
    /// it is written.
    pub memory_bytes: u64,
    /// What runs programs that hosts load; without any, none can be loaded.
    pub engines: Vec<Arc<dyn Engine>>,
    /// Whose programs are taken.
    pub admission: Admission,
    /// What one execution of a program may take.
    pub limits: Limits,
    /// Programs and memory range sets belong to all hosts, not to the one that made them.
    pub shared_compute: bool,
}

impl Default for Provision {
    fn default() -> Self {
        Self {
            expose: Expose::All,
            memory_bytes: 64 << 20,
            engines: Vec::new(),
            admission: Admission::Digests(Vec::new()),
            limits: Limits::default(),
            shared_compute: false,
        }
    }
}

impl Provision {
    /// That all of it is possible.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the option.
    pub fn check(&self) -> Result<(), Error> {
        if self.memory_bytes.is_multiple_of(PAGE_BYTES) {
            return Ok(());
        }
        Err(Error::Usage(format!("--memory is a multiple of {PAGE_BYTES} bytes")))
    }
}
