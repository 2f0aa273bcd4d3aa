//! [`Presence`]: notices that a medium is no longer what it was, so that nothing is acknowledged
//! that cannot be found again.
//!
//! Each sync looks whether the file still has a name and its length, which costs one call of the
//! system. A sync a second reads the drive's identifier in the superblock. A medium at rest is not
//! looked at. Not noticed: bytes that someone else overwrites elsewhere.

use std::time::Duration;

use csd_reactor::{Buffer, Instant, now};

use super::Media;
use crate::error::MediaError;

/// Pause between two looks at the identifier.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes that a medium has as long as it is the same.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    offset: u64,
    bytes: [u8; 16],
    looked: Instant,
}

impl Presence {
    /// Expects these bytes from now on.
    pub(super) fn new(offset: u64, bytes: [u8; 16]) -> Self {
        Self { offset, bytes, looked: now() }
    }

    /// Returns what to read if the bytes have not been read for a while.
    pub(super) fn due(&mut self) -> Option<Self> {
        let is_due = self.looked.elapsed() >= PAUSE;
        is_due.then(|| {
            self.looked = now();
            self.clone()
        })
    }

    /// Reads the bytes.
    ///
    /// # Errors
    /// [`MediaError::Gone`] when they are others. A medium that cannot be read tells nothing.
    pub(super) async fn check(&self, media: &Media) -> Result<(), MediaError> {
        let (result, found) = media.read(self.offset, Buffer::zeroed(self.bytes.len())).await;
        if result.is_err() || found[..] == self.bytes {
            return Ok(());
        }
        Err(MediaError::Gone("its superblock was overwritten by someone else".to_owned()))
    }
}
