//! [`Pauses`]: exponential backoff between attempts to connect again.

use std::time::Duration;

use csd_reactor::sleep;

/// First pause; each further one is three times as long.
const FIRST: Duration = Duration::from_millis(100);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(1);

/// Pauses that grow.
pub(crate) struct Pauses(Duration);

impl Pauses {
    pub(crate) fn new() -> Self {
        Self(FIRST)
    }

    /// Waits for the next pause.
    pub(crate) async fn wait(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 3).min(LONGEST);
    }
}
