//! Defaults of a drive's memory in a control group with a memory limit: shares of that limit.
//!
//! Without them a drive that fills its index is killed by the kernel, where one with a limit
//! answers Capacity Exceeded. A limit that the machine's memory does not reach is none.

use csd_drive::transport::budget::{BYTES_DEFAULT, BYTES_MIN};
use csd_measure::machine;

use crate::cli::tuning::Tuning;
use crate::units::size;

/// Shares of a control group's memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GroupShares {
    limit_bytes: u64,
    /// For data between hosts and media, over all cores: a quarter, at most the usual default, at
    /// least the least that cores need.
    pub(crate) transfer_bytes: u64,
    /// For the index of keys: half.
    pub(crate) index_bytes: u64,
}

impl GroupShares {
    /// Returns the shares of a drive with so many cores; `None` without a limit.
    pub(crate) fn of_this_process(cores: u16) -> Option<Self> {
        machine::memory_limit_bytes().map(|limit| Self::of(limit, cores.into()))
    }

    fn of(limit_bytes: u64, cores: u64) -> Self {
        let transfer_bytes = (limit_bytes / 4).clamp(BYTES_MIN * cores, BYTES_DEFAULT * cores);
        Self { limit_bytes, transfer_bytes, index_bytes: limit_bytes / 2 }
    }

    /// Names the limit and the defaults that follow from it, where options do not set others.
    pub(crate) fn text(&self, tuning: &Tuning) -> String {
        let transfer = tuning.transfer_memory.is_none();
        let transfer = transfer.then(|| format!("--transfer-memory {}", size(self.transfer_bytes)));
        let index = tuning.index_memory.is_none();
        let index = index.then(|| format!("--index-memory {}", size(self.index_bytes)));
        let defaults: Vec<String> = transfer.into_iter().chain(index).collect();
        let follows = match defaults.is_empty() {
            true => String::new(),
            false => format!(", so the defaults are {}", defaults.join(" and ")),
        };
        format!("this process is limited to {} of memory{follows}", size(self.limit_bytes))
    }
}

#[test]
fn shares_follow_the_limit_within_what_cores_need() {
    let shares = |limit_mib: u64, cores| {
        let shares = GroupShares::of(limit_mib << 20, cores);
        (shares.transfer_bytes >> 20, shares.index_bytes >> 20)
    };
    assert_eq!(shares(512, 1), (128, 256));
    assert_eq!(shares(128, 2), (128, 64));
    assert_eq!(shares(64 << 10, 1), (192, 32 << 10));
}
