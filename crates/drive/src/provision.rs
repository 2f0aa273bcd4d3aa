//! What a drive is given beside its medium: memory, and what it may compute with.
//!
//! Never: what it does with it. Invariant: the default is a drive that anybody can try.

use crate::error::Error;
use crate::format::PAGE_BYTES;

/// What a drive is given beside its medium.
#[derive(Clone, Debug)]
pub struct Provision {
    /// Size of the memory namespace in bytes, a multiple of 4,096; 0 for none. It takes memory as
    /// it is written.
    pub memory_bytes: u64,
}

impl Default for Provision {
    fn default() -> Self {
        Self { memory_bytes: 64 << 20 }
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
