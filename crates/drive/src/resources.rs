//! [`Resources`] of a drive other than its medium: memory, and engines and limits of programs.
//!
//! Invariant: by default the drive takes no programs, and hosts share none.

use std::sync::Arc;

use csd_kernels::program::{Engine, Limits};
use csd_kvlog::IndexKind;
use csd_kvlog::format::PAGE_BYTES;
use csd_nvme::vendor::{NSID_BLOCK, NSID_KV, NSID_OBJECTS};
use csd_sched::Policy;

use crate::compute::Admission;
use crate::dedup;
use crate::error::Error;
use crate::kv_store::KvStore;
use crate::limits::{MDTS, MDTS_MIN};
use crate::peers;
use crate::tunnel;

/// Namespaces that hosts see.
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
    /// Returns true if hosts see this namespace.
    pub fn has(self, nsid: u32) -> bool {
        match self {
            Self::All => true,
            Self::Block => nsid == NSID_BLOCK,
            Self::Kv => matches!(nsid, NSID_KV | NSID_OBJECTS),
        }
    }
}

/// Resources of a drive other than its medium.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Namespaces that hosts see.
    pub expose: Expose,
    /// Maximum Data Transfer Size (MDTS) of one command, as a power of two of 4 KiB: `MDTS_MIN` to
    /// `MDTS` of [`crate::limits`].
    pub mdts: u8,
    /// Kind of the indexes of the users' kv namespace.
    pub kv_index: IndexKind,
    /// Most memory for the keys of all kv namespaces in bytes, `None` for no limit.
    pub index_memory_bytes: Option<u64>,
    /// True if changes of the users' kv namespace are answered before they are durable.
    pub volatile_cache: bool,
    /// Size of the memory namespace in bytes, a multiple of 4,096; 0 for none. Its pages are
    /// allocated when they are written.
    pub memory_bytes: u64,
    /// Engines of programs that hosts load. Without an engine hosts can load none.
    pub engines: Vec<Arc<dyn Engine>>,
    /// Rule by which programs of hosts are admitted.
    pub admission: Admission,
    /// Limits of one execution of a program.
    pub limits: Limits,
    /// Tunnel between hosts and the drive's own operating system, if there is one.
    pub tunnel: Option<tunnel::Options>,
    /// Drives that this drive may work with, if there are any.
    pub peers: Option<peers::Directory>,
    /// Chunks of values that are counted, if any are.
    pub dedup: Option<dedup::Options>,
    /// Policy by which a core is chosen for work that any core can do.
    pub policy: Policy,
    /// True if programs and memory range sets belong to all hosts, not to the one that made them.
    pub shared_compute: bool,
    /// Store that takes the log's place for the users' kv namespace, for comparisons.
    pub kv_store: Option<Arc<dyn KvStore>>,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            expose: Expose::All,
            mdts: MDTS,
            kv_index: IndexKind::default(),
            index_memory_bytes: None,
            volatile_cache: false,
            memory_bytes: 64 << 20,
            engines: Vec::new(),
            admission: Admission::Digests(Vec::new()),
            limits: Limits::default(),
            tunnel: None,
            peers: None,
            dedup: None,
            policy: Policy::default(),
            shared_compute: false,
            kv_store: None,
        }
    }
}

impl Resources {
    /// Returns the most bytes of one command's data.
    #[must_use]
    pub const fn transfer_bytes_max(&self) -> u32 {
        4096 << self.mdts
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the option.
    pub fn check(&self) -> Result<(), Error> {
        if !(MDTS_MIN..=MDTS).contains(&self.mdts) {
            let wrong = "--transfer-max is a power of two from 128K to 16M";
            return Err(Error::Usage(wrong.to_owned()));
        }
        if let Some(dedup) =
            self.dedup.filter(|it| it.share && it.chunk_bytes < dedup::SHARED_BYTES_MIN)
        {
            return Err(Error::Usage(format!(
                "--dedup-share is for chunks of {} bytes and more, not {}",
                dedup::SHARED_BYTES_MIN,
                dedup.chunk_bytes
            )));
        }
        if self.memory_bytes.is_multiple_of(PAGE_BYTES) {
            return Ok(());
        }
        Err(Error::Usage(format!("--memory is a multiple of {PAGE_BYTES} bytes")))
    }
}

/// Refuses a kind of index whose entries cannot point into all of the log.
pub(crate) fn check_index(kind: IndexKind, log_bytes: u64) -> Result<(), Error> {
    if log_bytes <= kind.log_bytes_max() {
        return Ok(());
    }
    let most = kind.log_bytes_max() >> 40;
    let has = log_bytes.div_ceil(1 << 40);
    Err(Error::Usage(format!(
        "--kv-index {kind} is for key-value parts of up to {most} TiB, and this medium's has {has} \
         TiB: say --kv-index ordered"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_too_long_for_an_index_is_refused_in_words() {
        assert!(check_index(IndexKind::Hash, 16 << 40).is_ok());
        assert!(check_index(IndexKind::Ordered, 1 << 60).is_ok());
        let refused = check_index(IndexKind::Hash, (16 << 40) + 1).unwrap_err().to_string();
        let words = "up to 16 TiB, and this medium's has 17 TiB: say --kv-index ordered";
        assert!(refused.contains(words), "{refused}");
    }
}
