//! Waits for an address or a medium that another process still uses.
//!
//! The kernel closes the sockets and files of a killed process some time after its end. So a drive
//! that is restarted at once may find those of its predecessor in use.

use std::io::ErrorKind;
use std::time::Duration;

use csd_reactor::{now, sleep};

use crate::error::Error;
use crate::log::{Level, Log};

/// Longest wait.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Calls `open` until its error is no longer that another process has what it opens, or
/// [`WAIT_MAX`] is over. The log says once that the drive waits.
///
/// # Errors
/// Those of `open`.
pub(crate) async fn wait_until_free<T, E: Into<Error>>(
    log: &Log,
    open: impl AsyncFn() -> Result<T, E>,
) -> Result<T, Error> {
    let begun = now();
    let mut logged = false;
    loop {
        let error = match open().await.map_err(Into::into) {
            Err(error) if begun.elapsed() < WAIT_MAX => error,
            opened => return opened,
        };
        let (event, field) = match &error {
            Error::Medium(csd_kvlog::Error::Media { path, source })
                if source.kind() == ErrorKind::ResourceBusy =>
            {
                (
                    "waiting for the medium, which another process has open",
                    ("media", path.display().to_string()),
                )
            }
            Error::Listen { address, source, .. } if source.kind() == ErrorKind::AddrInUse => (
                "waiting for the address, at which another process listens",
                ("address", address.to_string()),
            ),
            _ => return Err(error),
        };
        if !std::mem::replace(&mut logged, true) {
            let seconds = WAIT_MAX.as_secs().to_string();
            log.write(Level::Warn, event, &[field, ("seconds_at_most", seconds)]);
        }
        sleep(PAUSE).await;
    }
}
