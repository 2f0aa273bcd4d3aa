//! [`Link`]: a drive of a run, connected to again when its connection is lost.
//!
//! Programs are idempotent: an execution whose completion is unknown is run again. A drive may have
//! been restarted in the meantime, so the contents of its memory are sent again.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

use csd_store::array::{Array, Drive, DriveIndex};
use csd_store::link::{self, Persistence};

pub(crate) use csd_store::link::TRIES;

use crate::error::Error;

/// A drive of a run, as one core sees it.
pub(crate) struct Link {
    link: link::Link,
    /// Number of the connection on which the drive's memory was prepared for the step.
    prepared: Cell<Option<u32>>,
}

impl Deref for Link {
    type Target = link::Link;

    fn deref(&self) -> &link::Link {
        &self.link
    }
}

impl Link {
    /// Returns links to these members of the array; to those that are down only if the run can do
    /// without them.
    ///
    /// # Errors
    /// When one of the others is down.
    pub(crate) fn all(
        array: &Array,
        members: &[DriveIndex],
        may_be_down: bool,
    ) -> Result<Vec<Self>, Error> {
        let link = |&index: &DriveIndex| {
            let link = link::Link::new(array, index, Persistence::brief())?;
            if !may_be_down {
                link.up()?;
            }
            Ok(Self { link, prepared: Cell::new(None) })
        };
        members.iter().map(link).collect()
    }

    /// Records that the drive's memory was prepared on the connection of this number.
    pub(crate) fn note_prepared(&self, renewals: u32) {
        self.prepared.set(Some(renewals));
    }

    /// Returns true if the drive's memory was prepared on this connection.
    pub(crate) fn is_prepared(&self) -> bool {
        self.prepared.get() == Some(self.renewals())
    }

    /// Calls `body` with the drive, and again after a connection was lost and replaced.
    ///
    /// # Errors
    /// The error of the drive, or the reason why it is lost: see [`Error::is_lost`].
    pub(crate) async fn run<T, E: Into<Error>>(
        &self,
        body: impl AsyncFn(&Rc<Drive>) -> Result<T, E>,
    ) -> Result<T, Error> {
        self.link
            .run_with(Error::is_lost, async |drive| body(drive).await.map_err(Into::into))
            .await
    }
}
