//! [`Failed`]: reason why a run has no outcome.

use crate::error::Error;
use crate::ledger::Partial;

/// Reason why there is no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failed {
    /// A drive or the network failed.
    #[error(transparent)]
    Run(#[from] Error),
    /// Drives were lost during the run.
    #[error(transparent)]
    Partial(#[from] Partial),
    /// The cores could not run.
    #[error(transparent)]
    Runtime(#[from] csd_reactor::Error),
}

impl Failed {
    /// Returns the names of the drives that were lost, each with the reason.
    #[must_use]
    pub fn lost(&self) -> Vec<(String, String)> {
        match self {
            Self::Partial(partial) => partial.lost.clone(),
            Self::Run(error) if error.is_lost() => error
                .drive()
                .map(|drive| (drive.to_owned(), error.to_string()))
                .into_iter()
                .collect(),
            Self::Run(_) | Self::Runtime(_) => Vec::new(),
        }
    }
}
