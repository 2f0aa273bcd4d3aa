//! The log of media errors: their number since the drive's start, and the last one.
//!
//! Vendor specific log page C1h of the drive, next to the health log, which has the number alone.
//! The drive counts; this is the layout. Invariant: texts are cut between characters.

use super::executions::cut;
use crate::wire::{layout, text_of};

/// Version of the layout.
pub const VERSION: u16 = 1;

/// Names of the operations, by their number less 1.
pub const OPERATIONS: [&str; 4] = ["read", "write", "discard", "sync"];

layout! {
    /// Media errors.
    pub struct MediaErrors[512] {
        /// [`VERSION`].
        version / set_version: u16 @ 0,
        /// Operation of the last one, counted from 1 in [`OPERATIONS`]; 0 if there was none.
        operation / set_operation: u8 @ 2,
        /// Number of accesses of the media that failed, and of values found damaged.
        count / set_count: u64 @ 8,
        /// Offset of the last one on the medium in bytes; 0 for a sync.
        offset / set_offset: u64 @ 16,
        /// Its length in bytes; 0 for a sync.
        bytes / set_bytes: u64 @ 24,
        /// Place of the medium, such as a path, in UTF-8, cut to fit, zero-terminated.
        place / set_place: [192] @ 64,
        /// Reason of the last one in UTF-8, cut to fit, zero-terminated.
        reason / set_reason: [256] @ 256,
    }
}

impl MediaErrors {
    /// Returns a log of no errors.
    pub fn none() -> Self {
        let mut log = Self::zeroed();
        log.set_version(VERSION);
        log
    }

    /// Returns the operation of the last one; `None` if there was none, or one of a later version.
    pub fn operation_text(&self) -> Option<&'static str> {
        OPERATIONS.get(usize::from(self.operation().checked_sub(1)?)).copied()
    }

    /// Returns the place of the medium; empty if it is not UTF-8.
    pub fn place_text(&self) -> String {
        text_of(&self.place()).unwrap_or_default().to_owned()
    }

    /// Returns the reason of the last one; empty if it is not UTF-8.
    pub fn reason_text(&self) -> String {
        text_of(&self.reason()).unwrap_or_default().to_owned()
    }

    /// Sets the last error's place and reason.
    pub fn explain(&mut self, place: &str, reason: &str) -> &mut Self {
        self.set_place(&cut(place)).set_reason(&cut(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_is_told_in_words() {
        let mut log = MediaErrors::none();
        assert_eq!((log.operation_text(), log.count()), (None, 0));
        log.set_operation(4).set_count(2).explain(&"ä".repeat(200), "No space left on device");
        assert_eq!(log.operation_text(), Some("sync"));
        assert_eq!(log.place_text(), "ä".repeat(95), "cut between characters");
        assert_eq!(log.reason_text(), "No space left on device");
        log.set_operation(200);
        assert_eq!(log.operation_text(), None);
    }
}
