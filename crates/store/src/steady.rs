//! [`steadily`]: work on the catalogue that goes on after connections were lost.

use std::time::Duration;

use csd_reactor::{Instant, now, sleep};

use crate::array::{Array, Error as ArrayError};
use crate::error::Error;

/// Pause before lost connections are replaced; each further one is three times as long.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Does `work`, and again over other connections if some were lost, for as long as an answer of a
/// drive is waited for. The work may have been done in part before.
///
/// # Errors
/// That of the work.
pub(crate) async fn steadily<T>(
    array: &Array,
    mut work: impl AsyncFnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let (mut since, mut pause): (Option<Instant>, _) = (None, PAUSE);
    loop {
        let error = match work().await {
            Err(error) if is_lost(&error) && !array.lost().is_empty() => error,
            done => return done,
        };
        let since = *since.get_or_insert_with(now);
        if since.elapsed() >= array.redial().options.command_timeout {
            return Err(error);
        }
        sleep(pause).await;
        pause = (pause * 3).min(PAUSE_MAX);
        array.renew().await;
    }
}

/// Returns true if connections that are gone may be the reason.
fn is_lost(error: &Error) -> bool {
    error.is_lost() || matches!(error, Error::Array(ArrayError::TooFew { .. }))
}
