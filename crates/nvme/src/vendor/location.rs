//! [`Location`]: where a piece lies on a drive.
//!
//! Tasks of `combine`, page lists and sources of executions name pieces, each in a layout of its
//! own, which encodes and decodes this type.

use super::execute::SourceData;
use crate::wire::{codes, take};

codes! {
    /// Kind of a location.
    pub struct LocationKind: u8 {
        VALUE = 1: "a kv value",
        BLOCKS = 2: "bytes of a block namespace",
    }
}

/// Location of a piece on its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// A whole value.
    Value {
        /// kv namespace.
        nsid: u32,
        /// Key.
        key: [u8; 16],
    },
    /// Blocks, from the first byte of one on.
    Blocks {
        /// Block namespace.
        nsid: u32,
        /// Starting LBA.
        slba: u64,
    },
}

impl Location {
    /// Returns the piece of `bytes` bytes at this location as data of a source.
    #[must_use]
    pub fn source(self, bytes: u32) -> SourceData {
        match self {
            Self::Value { nsid, key } => {
                let (prefix, first) = (take(&key, 0), u32::from_be_bytes(take(&key, 12)));
                SourceData::KvChunks { nsid, prefix, first, count: 1, stride: 1 }
            }
            Self::Blocks { nsid, slba } => SourceData::Blocks { nsid, slba, skip: 0, bytes },
        }
    }
}
