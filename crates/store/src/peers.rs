//! [`Peers`]: drives in a task of the program `combine`, numbered as its executor finds them.
//!
//! Performs no I/O.

use csd_nvme::status::Status;

use crate::array::{Drive, DriveIndex};

/// Drives of a task: the executor is number 0, its peers follow in the order in which they are
/// named.
pub(crate) struct Peers {
    executor: DriveIndex,
    nqns: Vec<String>,
}

impl Peers {
    /// Begins the numbers of a task that `executor` executes.
    pub(crate) fn of(executor: &Drive) -> Self {
        Self { executor: executor.index, nqns: Vec::new() }
    }

    /// Returns the number of a drive.
    pub(crate) fn number(&mut self, drive: &Drive) -> u8 {
        if drive.index == self.executor {
            return 0;
        }
        let nqn = &drive.controller.address().nqn;
        let known = self.nqns.iter().position(|peer| peer == nqn);
        let position = known.unwrap_or_else(|| {
            self.nqns.push(nqn.clone());
            self.nqns.len() - 1
        });
        u8::try_from(position + 1).expect("a stripe has at most 48 pieces")
    }

    /// Returns the names of all peers.
    pub(crate) fn into_nqns(self) -> Vec<String> {
        self.nqns
    }
}

/// Returns true if an execution of `combine` has failed because of one of its sources, or of the
/// blocks of a target: the host finds out which.
pub(crate) fn is_of_piece(status: Option<Status>) -> bool {
    let of_piece = [
        Status::SOURCE_MISSING,
        Status::UNRECOVERED_ERROR,
        Status::UNRECOVERED_READ_ERROR,
        Status::COMPARE_FAILURE,
    ];
    status.is_some_and(|status| of_piece.contains(&status))
}
