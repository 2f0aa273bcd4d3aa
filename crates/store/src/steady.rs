//! [`steadily`]: work on the catalogue that goes on after connections were lost.

use csd_reactor::{Instant, now};

use crate::array::{Array, Error as ArrayError};
use crate::error::{Error, NameError};
use crate::pauses::Pauses;

/// Does `work`, and again over other connections if some were lost, for as long as an answer of a
/// drive is waited for. The work may have been done in part before.
///
/// # Errors
/// The error of the work.
pub(crate) async fn steadily<T>(
    array: &Array,
    mut work: impl AsyncFnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let (mut since, mut pauses): (Option<Instant>, _) = (None, Pauses::new());
    loop {
        let error = match work().await {
            Err(error) if is_lost(&error) && !array.lost().is_empty() => error,
            done => return done,
        };
        let since = *since.get_or_insert_with(now);
        if since.elapsed() >= array.redial().options.command_timeout {
            return Err(error);
        }
        pauses.wait().await;
        array.renew().await;
    }
}

/// Returns true if connections that are gone may be the reason. A drive that did not answer looks
/// as one that alone can tell how far a writer came; the writer may be this one.
fn is_lost(error: &Error) -> bool {
    let is_too_few = matches!(error, Error::Array(ArrayError::TooFew { .. }));
    let is_undecided = matches!(error, Error::Name(NameError::Undecided { .. }));
    error.is_lost() || is_too_few || is_undecided
}
